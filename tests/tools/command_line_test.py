"""The command line from outside: files in, files, text and exit codes out. MLAPROLOG names the program."""
import json
import pathlib
import re
import struct
import subprocess
import unittest

import safetensors_bytes
from command_line import PROGRAM, CommandLineTest
from safetensors_bytes import Tensor

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "cases"
# The spelling of options, that of metadata, and the first version of the operator that has the scenario.
SCENARIOS = {
    "non-quant": ("non_quant", 1), "partial": ("partial", 1), "partial-kv-int8": ("partial_kv_per_channel", 1),
    "partial-kv-per-group": ("partial_kv_per_group", 3), "full-int8": ("full_int8", 2),
    "full-int8-kv-int8": ("full_int8_kv_per_tensor", 2), "full-int8-kv-per-group": ("full_int8_kv_per_group", 3),
    "full-mxfp8": ("full_mxfp8", 3), "full-mxfp8-kv-fp8": ("full_mxfp8_kv_per_tensor", 3),
    "full-mxfp8-kv-per-group": ("full_mxfp8_kv_per_group", 3), "full-fp8": ("full_fp8", 3),
    "full-fp8-kv-fp8": ("full_fp8_kv_per_tensor", 3), "full-fp8-kv-per-group": ("full_fp8_kv_per_group", 3),
    "full-hif8": ("full_hif8", 3), "full-hif8-kv-hif8": ("full_hif8_kv_per_tensor", 3),
    "full-hif8-kv-per-group": ("full_hif8_kv_per_group", 3)}
CACHE_MODES = ("PA_BSND", "PA_NZ", "PA_BLK_BSND", "PA_BLK_NZ", "BSND", "TND")
OPERATORS = {1: "aclnnMlaProlog", 2: "aclnnMlaPrologV2WeightNz", 3: "aclnnMlaPrologV3WeightNz"}


def modes_of(scenario):
    return ("PA_BSND", "BSND", "TND") if "per-group" in scenario else CACHE_MODES


def leads_of(mode):
    """Options that make the tokens (T) and (B, S), where the mode takes them."""
    tokens, batch = ("--tokens", "9"), ("--batch", "2", "--seq", "3")
    return {"BSND": (batch,), "TND": (tokens,)}.get(mode, (tokens, batch))


def may_smooth(scenario):
    return scenario != "non-quant" and "mxfp8" not in scenario


class NewCase(CommandLineTest):
    def test_same_seed_same_bytes(self):
        for scenario in SCENARIOS:
            options = ("--tokens", "5", "--scenario", scenario, "--query-norm")
            first = self.new_case("a", *options).read_bytes()
            self.assertEqual(first, self.new_case("b", *options, MLAP_NUM_THREADS="1").read_bytes())
            self.assertEqual(first, self.new_case("c", *options, "--seed", "1", MLAP_NUM_THREADS="3").read_bytes())
            self.assertNotEqual(first, self.new_case("d", *options, "--seed", "2").read_bytes())

    def test_contents_are_what_the_help_says(self):
        path = self.new_case("a", "--batch", "3", "--seq", "7", "--scenario", "partial-kv-int8", "--smooth",
                             "--cache-mode", "PA_NZ", "--blocks", "2")
        tensors, metadata = safetensors_bytes.read(path)
        self.assertEqual(metadata["scenario"], "partial_kv_per_channel")
        self.assertEqual(metadata["cache_mode"], "PA_NZ")
        self.assertEqual(tensors["token_x"].shape, (3, 7, 96))
        self.assertEqual(tensors["kv_cache"].shape, (2, 16, 1, 64))
        self.assertEqual(tensors["weight_uq_qr"].dtype, "I8")
        self.assertEqual(tensors["weight_uq_qr"].shape, (8, 4, 16, 32))
        slots = struct.unpack("<21q", tensors["cache_index"].data)
        self.assertEqual(len(set(slots)), 21)
        self.assertTrue(all(0 <= slot < 32 for slot in slots))
        self.assertNotEqual(list(slots), sorted(slots))
        smooth = struct.unpack("<64f", tensors["smooth_scales_cq"].data)
        self.assertTrue(all(0.5 <= scale < 2.0 for scale in smooth))
        half = 32  # bytes of a row's half: 16 bf16
        cos = tensors["rope_cos"].data
        for row in range(21):
            self.assertEqual(cos[row * 64:row * 64 + half], cos[row * 64 + half:row * 64 + 64])

    def test_contents_are_pinned(self):
        """A seed's bytes must never change, here or on another machine."""
        tensors, _ = safetensors_bytes.read(self.new_case("a", "--tokens", "2", "--scenario", "partial"))
        pinned = {
            "token_x": "483f523f17bf4c3c8c3f5fbfe6bf823e",
            "weight_dq": "c8b92a3c53bc683c8e3bd0bcf93b09bc",
            "weight_uq_qr": "ba23081400e225f8582212efef13dad0",
            "dequant_scale_w_uq_qr": "47a3d1393e9fcf3987c3e13957abd539",
            "rope_cos": "5cbf40bf333f80bf213f933d423fb43b",
            "cache_index": "13000000000000000f00000000000000",
            "kv_cache": "5a3e563daf3ebe3ff53fd63f1dbfa1be",
            "rmsnorm_gamma_cq": "803f743f7f3f833f8b3f8b3f983f8b3f",
        }
        for name, expected in pinned.items():
            self.assertEqual(tensors[name].data[:16].hex(), expected, name)

    def test_model_list(self):
        listing = self.call("new-case", "--model", "list", soc=None).stdout
        rows = {line.split()[0]: line for line in listing.splitlines()}
        for model in ("deepseek-v3", "deepseek-v2", "kimi-k2", "longcat-flash", "longcat-flash-lite",
                      "openpangu-ultra", "youtu-llm", "mistral-large-3"):
            self.assertIn("accepts it", rows[model])
        self.assertIn("refuses it", rows["minicpm3"])

    def test_sequences_of_blocks(self):
        """actual_seq_len ascends to T, and cache_index lists distinct pages for each sequence."""
        for seed in ("1", "2", "3"):
            tensors, _ = safetensors_bytes.read(self.new_case(
                "a", "--tokens", "70", "--sequences", "5", "--cache-mode", "PA_BLK_NZ", "--seed", seed))
            ends = struct.unpack("<5i", tensors["actual_seq_len"].data)
            self.assertEqual(ends[-1], 70)
            lengths = [end - begin for begin, end in zip((0, *ends), ends)]
            self.assertGreaterEqual(min(lengths), 0)
            pages = sum((length + 15) // 16 for length in lengths)
            self.assertEqual(tensors["cache_index"].shape, (pages,))
            self.assertEqual(len(set(struct.unpack(f"<{pages}q", tensors["cache_index"].data))), pages)

    def test_metadata(self):
        path = self.new_case("a", "--scenario", "full-int8-kv-int8", "--query-norm", "--qc-qr-scale", "1.5",
                             "--kc-scale", "0.25", "--cache-mode", "PA_NZ", "--soc", "ascend910_93")
        _, metadata = safetensors_bytes.read(path)
        for key, value in (("weight_quant_mode", "2"), ("kv_cache_quant_mode", "1"), ("query_quant_mode", "1"),
                           ("query_norm_flag", "true"), ("qc_qr_scale", "1.5"), ("kc_scale", "0.25"),
                           ("cache_mode", "PA_NZ"), ("soc", "ascend910_93"), ("scenario", "full_int8_kv_per_tensor")):
            self.assertEqual(metadata[key], value, key)
        for scenario, soc in (("partial", "ascend910b"), ("full-hif8", "ascend950")):
            _, metadata = safetensors_bytes.read(self.new_case("a", "--scenario", scenario))
            self.assertEqual(metadata["soc"], soc)

    def test_every_spelling_of_a_scenario(self):
        for label, (metadata, _) in SCENARIOS.items():
            for spelling in {label, metadata, label.replace("-", "_"), metadata.replace("_", "-")}:
                with self.subTest(spelling):
                    args = ("new-case", self.path("a"), "--force", "--model", "tiny", "--scenario", spelling)
                    self.assertIn(f"  case     {label}, PA_BSND", self.call(*args).stdout)
                    self.assertEqual(safetensors_bytes.read(self.path("a"))[1]["scenario"], metadata)

    def test_what_the_device_refuses_is_said(self):
        def errors(*args, soc=None):
            return self.call("new-case", self.path("a"), "--force", "--tokens", "1", *args, soc=soc).stderr
        tiny = ("--model", "tiny")
        hint = "mlaprolog: {} refuses this case; run it with MLAP_SOC=none\n"
        self.assertEqual(errors(*tiny), hint.format("Ascend910B3"))
        self.assertEqual(errors(*tiny, soc="none"), "")
        self.assertEqual(errors(*tiny, "--soc", "ascend950"), hint.format("Ascend950PR_9599").rstrip("\n") +
                         ", or with run --native, which keeps the roundings of ascend950\n")
        youtu = ("--model", "youtu-llm", "--hidden", "1024")
        self.assertEqual(errors(*youtu, "--heads", "17"), hint.format("Ascend910B3"))
        self.assertEqual(errors(*youtu, "--heads", "1"), "")
        self.assertEqual(errors(*youtu, "--heads", "1", soc="ascend950"), "")  # through V3
        self.assertIn("mlaprolog: the operator refuses this case: ",
                      errors(*youtu, "--heads", "1", "--scenario", "full-fp8", soc="ascend910b"))


class Run(CommandLineTest):
    def test_every_scenario_and_cache_mode(self):
        for scenario, (_, first_version) in SCENARIOS.items():
            for mode in modes_of(scenario):
                for lead in leads_of(mode):
                    for extra in ((), ("--query-norm", "--qc-qr-scale", "1.5", "--kc-scale", "0.7"), ("--smooth",)):
                        if "--smooth" in extra and not may_smooth(scenario):
                            continue
                        with self.subTest(scenario=scenario, mode=mode, lead=lead, extra=extra):
                            path = self.new_case("a", *lead, "--scenario", scenario, "--cache-mode", mode, *extra)
                            text = self.call("run", path, "--check").stdout
                            self.assertIn("within the accepted error", text)
                            needs_v3 = mode not in ("PA_BSND", "PA_NZ") or "--query-norm" in extra
                            operator = OPERATORS[3 if needs_v3 else first_version]
                            self.assertIn(f"  ran      {operator} as", text)

    def test_versions_agree(self):
        """Every version that has a case gives the same bytes; others are refused."""
        for scenario, (_, first_version) in SCENARIOS.items():
            path = self.new_case("a", "--scenario", scenario, "--tokens", "5")
            results = set()
            for version in (1, 2, 3):
                with self.subTest(scenario=scenario, version=version):
                    args = ("run", path, "--version", version, "-o", self.path("out"))
                    if version >= first_version or (scenario, version) == ("full-int8", 1):
                        self.assertIn(f"  ran      {OPERATORS[version]} as", self.call(*args).stdout)
                        results.add(self.path("out").read_bytes())
                    else:
                        self.refuse(*args, words=("--version: expected 3", OPERATORS[version]))
            self.assertEqual(len(results), 1, scenario)

    def test_what_a_version_has_no_argument_for(self):
        for missing, options in (("query_norm", ("--query-norm",)), ("qc_qr_scale", ("--qc-qr-scale", "2")),
                                 ("kc_scale", ("--kc-scale", "2")), ("actual_seq_len", ("--cache-mode", "PA_BLK_BSND"))):
            path = self.new_case("a", *options)
            for version in (1, 2):
                self.refuse("run", path, "--version", version, words=("--version: expected 3", missing))
            self.call("run", path, "--version", "3", "--check")

    def test_the_device_is_the_options_else_the_variables_else_the_files(self):
        sizes = ("--model", "youtu-llm", "--heads", "1", "--tokens", "2", "--scenario", "full-int8")
        for in_file, variable, option, expected in (
                ("ascend950", None, (), "Ascend950PR_9599"), ("ascend950", "none", (), "mlaprolog-cpu"),
                ("ascend950", "none", ("--soc", "ascend910b"), "Ascend910B3"),
                ("ascend910b", None, ("--soc", "ascend950"), "Ascend950PR_9599"), ("auto", None, (), "Ascend910B3")):
            path = self.path("a")
            self.call("new-case", path, "--force", *sizes, "--soc", in_file, soc=None)
            with self.subTest(in_file=in_file, variable=variable, option=option):
                text = self.call("run", path, "--check", *option, soc=variable).stdout
                self.assertRegex(text, rf"  ran      aclnnMlaPrologV[23]WeightNz as {expected},")

    def test_roundings_of_the_other_device_are_told_apart(self):
        """The same case under both devices' rules differs, and each run agrees with its own reference."""
        path = self.path("a")
        self.call("new-case", path, "--model", "youtu-llm", "--heads", "1", "--tokens", "4", "--scenario",
                  "full-int8-kv-int8", soc=None)
        queries = []
        for soc in ("ascend910b", "ascend950"):
            self.call("run", path, "--check", "--soc", soc, "-o", self.path("out"), soc=None)
            queries.append(safetensors_bytes.read(self.path("out"))[0]["query"].data)
        self.assertNotEqual(*queries)

    def test_a_size_the_device_accepts(self):
        path = self.path("youtu")
        self.call("new-case", path, "--model", "youtu-llm", "--heads", "1", "--tokens", "2", "--scenario", "partial")
        self.call("run", path, "--check", "--repeat", "3", soc=None)

    def test_odd_sizes(self):
        for scenario in SCENARIOS:
            with self.subTest(scenario):
                hidden, q_rank = ("64", "96") if "mxfp8" in scenario else ("37", "21")
                path = self.new_case("a", "--hidden", hidden, "--q-rank", q_rank, "--heads", "3", "--nope", "7", "--rope",
                                     "6", "--kv-rank", "33", "--scenario", scenario, "--tokens", "5", "--query-norm")
                self.call("run", path, "--check")

    def test_output_file(self):
        path = self.new_case("a", "--tokens", "3")
        self.call("run", path, "-o", self.path("out"))
        results, metadata = safetensors_bytes.read(self.path("out"))
        self.assertEqual(sorted(results), ["kr_cache", "kv_cache", "query", "query_rope"])
        self.assertEqual(results["query"].shape, (3, 4, 64))
        self.assertEqual(metadata["scenario"], "non_quant")
        inputs, _ = safetensors_bytes.read(path)
        self.assertEqual(results["kv_cache"].shape, inputs["kv_cache"].shape)
        slots = struct.unpack("<3q", inputs["cache_index"].data)
        rows = len(inputs["kv_cache"].data) // 128
        for row in range(rows):
            before, after = (t["kv_cache"].data[row * 128:row * 128 + 128] for t in (inputs, results))
            (self.assertNotEqual if row in slots else self.assertEqual)(before, after)

    def test_output_file_has_every_output(self):
        path = self.new_case("a", "--tokens", "3", "--scenario", "full-mxfp8-kv-fp8", "--query-norm")
        self.call("run", path, "-o", self.path("out"))
        results, _ = safetensors_bytes.read(self.path("out"))
        self.assertEqual({name: (tensor.dtype, tensor.shape) for name, tensor in results.items()}, {
            "query": ("F8_E4M3", (3, 4, 64)), "query_rope": ("BF16", (3, 4, 32)), "kv_cache": ("F8_E4M3", (3, 16, 1, 64)),
            "kr_cache": ("BF16", (3, 16, 1, 32)), "dequant_scale_q_nope": ("F32", (3, 4, 1)),
            "query_norm": ("F8_E4M3", (3, 64)), "dequant_scale_q_norm": ("U8", (3, 2))})

    def test_plain_weights_give_the_same_results(self):
        for scenario in SCENARIOS:
            he, hcq = (64, 32) if "mxfp8" in scenario else (40, 24)
            path = self.new_case("nz", "--tokens", "4", "--scenario", scenario, "--hidden", he, "--q-rank", hcq,
                                 "--heads", "3", "--nope", "10", "--rope", "8", "--kv-rank", "20")
            tensors, metadata = safetensors_bytes.read(path)
            sizes = {"weight_dq": (he, hcq), "weight_uq_qr": (hcq, 54), "weight_dkv_kr": (he, 28)}
            for name, (k, n) in sizes.items():
                tensors[name] = unpack(tensors[name], k, n)
            plain = safetensors_bytes.write(self.path("plain"), tensors, metadata)
            self.call("run", path, "--check", "-o", self.path("nz_out"))
            self.call("run", plain, "--check", "-o", self.path("plain_out"))
            self.assertEqual(self.path("nz_out").read_bytes(), self.path("plain_out").read_bytes())

    def test_no_tokens(self):
        tensors, metadata = safetensors_bytes.read(self.new_case("a", "--tokens", "2"))
        for name in ("token_x", "rope_sin", "rope_cos", "cache_index"):
            tensors[name] = tensors[name]._replace(shape=(0, *tensors[name].shape[1:]), data=b"")
        path = safetensors_bytes.write(self.path("empty"), tensors, metadata)
        self.call("run", path, "--check", "-o", self.path("out"))
        results, _ = safetensors_bytes.read(self.path("out"))
        self.assertEqual(results["kv_cache"].data, tensors["kv_cache"].data)

    def test_unaligned_tensors(self):
        tensors, metadata = safetensors_bytes.read(self.new_case("a", "--tokens", "3", "--scenario", "partial-kv-int8"))
        tensors = dict(sorted(tensors.items(), key=lambda item: len(item[1].data) % 7))
        odd = tensors.pop("kr_cache")
        path = safetensors_bytes.write(self.path("odd"), {"kr_cache": odd, **tensors}, metadata)
        image = path.read_bytes()
        (length,) = struct.unpack("<Q", image[:8])
        text = image[8:8 + length] + b" " * (1 - length % 2)  # an odd start
        path.write_bytes(struct.pack("<Q", len(text)) + text + image[8 + length:])
        self.call("run", path, "--check")


def unpack(tensor: Tensor, k: int, n: int) -> Tensor:
    """The row-major matrix (k, n) of a FRACTAL_NZ image."""
    _, k_blocks, rows, c0 = tensor.shape
    size = 32 // c0
    out = bytearray()
    for i in range(k):
        for j in range(n):
            at = ((j // c0) * k_blocks * rows * c0 + i * c0 + j % c0) * size
            out += tensor.data[at:at + size]
    return Tensor(tensor.dtype, (k, n), bytes(out))


class Summary(CommandLineTest):
    def test_a_single_run_is_a_first_run(self):
        path = self.new_case("a", "--tokens", "1", "--blocks", "1")
        text = self.call("run", path, "--check", MLAP_NUM_THREADS="1").stdout
        self.assertRegex(text, r"  steps .*\(first run\b.*\n  stages .*; sum [0-9.]+ [mu]?s\n")
        self.assertRegex(text, r"  rates .* \(first run\)\n")
        self.assertIn(" 1 thread,", text)
        self.assertIn(", 1 page of 16\n", text)
        self.assertIn("max / row rms", text)
        text = self.call("run", path, "--repeat", "3").stdout
        self.assertIn("(medians of 3 runs)", text)
        self.assertNotIn("first run", text)

    def test_small_numbers(self):
        args = ("new-case", self.path("a"), "--model", "tiny", "--scenario", "partial-kv-int8", "--tokens", "1")
        self.assertRegex(self.call(*args).stdout, r"  size     [1-9][0-9.]* kB\n")
        text = self.call("run", self.path("a"), "--check").stdout
        self.assertNotIn("0.0 MB", text)
        self.assertRegex(text, r"kv_cache +64 +(none differs|1 off by 1 at most)  ok\n")


class Golden(CommandLineTest):
    def test_every_case(self):
        """Against the file's expectations and the reference; of int8 cases for ascend950, whose sizes that device
        refuses, without limits and so without its roundings, against the reference."""
        paths = sorted(GOLDEN.glob("*.safetensors"))
        self.assertGreater(len(paths), 200)
        for path in paths:
            with self.subTest(path.name):
                text = self.call("run", path, "--check").stdout
                _, metadata = safetensors_bytes.read(path)
                is_int8 = metadata["weight_quant_mode"] in ("1", "2")
                if metadata["soc"] == "ascend950" and is_int8:
                    self.assertIn("not compared with the file's expected tensors", text)
                else:
                    self.assertIn("the file's expected tensors", text)
                self.assertIn("compared with the reference", text)

    def test_every_case_through_the_native_interface(self):
        """With the roundings of the case's device, whatever MLAP_SOC says."""
        for path in sorted(GOLDEN.glob("*.safetensors")):
            with self.subTest(path.name):
                text = self.call("run", path, "--check", "--native").stdout
                self.assertIn("the file's expected tensors", text)
                self.assertNotIn("not compared", text)

    def test_every_version_that_has_the_case(self):
        """The slot modes without V3's arguments go through V1 or V2, and V3 gives the same bytes."""
        num_compared = 0
        for path in sorted(GOLDEN.glob("*.safetensors")):
            text = self.call("run", path, "-o", self.path("first")).stdout
            if OPERATORS[3] in text or "nothing: there are no tokens" in text:
                continue
            with self.subTest(path.name):
                self.call("run", path, "--version", "3", "-o", self.path("third"))
                self.assertEqual(self.path("first").read_bytes(), self.path("third").read_bytes())
                num_compared += 1
        self.assertGreater(num_compared, 20)

    def test_tampered_expectations_are_found(self):
        for name in ("query", "query_rope", "kv_cache", "kr_cache", "query_norm", "dequant_scale_q_nope",
                     "dequant_scale_q_norm"):
            is_v1 = not name.startswith("dequant") and name != "query_norm"
            source = GOLDEN / ("nq_bsnd_2d.safetensors" if is_v1 else "full_pt_bsnd.safetensors")
            tensors, metadata = safetensors_bytes.read(source)
            self.assertNotEqual(tensors["expected.kv_cache"].data, tensors["kv_cache"].data)
            tensor = tensors["expected." + name]
            data = bytearray(tensor.data)
            if name.endswith("_cache"):  # all rows, whichever of them are written
                for at in range(1, len(data), 2):
                    data[at] ^= 0x80
            else:
                data[3 if tensor.dtype == "F32" else 1] ^= 0x80  # the sign of an element, or half of its range
            tensors["expected." + name] = tensor._replace(data=bytes(data))
            path = safetensors_bytes.write(self.path(name), tensors, metadata)
            with self.subTest(name):
                self.assertIn("BEYOND", self.call("run", path, expect=1).stdout)


class InfoAndHelp(CommandLineTest):
    def test_info(self):
        text = self.call("info", soc=None).stdout
        for word in ("scalar", "gemm_bf16", "MLAP_MAX_ISA", "MLAP_NUM_THREADS", "Ascend910B3"):
            self.assertIn(word, text)

    def test_json(self):
        out = json.loads(self.call("info", "--json", MLAP_MAX_ISA="scalar", MLAP_NUM_THREADS="1").stdout)
        self.assertEqual(out["isa"], "scalar")
        self.assertEqual(out["threads"], 1)
        self.assertIn("gemm_bf16", out["kernels"])
        self.assertEqual(out["environment"]["MLAP_MAX_ISA"]["value"], "scalar")
        self.assertEqual(out["errors"], [])

    def test_wrong_environment(self):
        for name in ("MLAP_MAX_ISA", "MLAP_NUM_THREADS"):
            self.refuse("info", words=(name,), **{name: "nonsense"})
        self.refuse("info", words=("MLAP_SOC",), soc="nonsense")

    def test_what_wrong_variables_decide_is_not_shown(self):
        for line, environment in (("threads   (invalid, see below)\n", {"MLAP_NUM_THREADS": "abc"}),
                                  ("limits    (invalid, see below)\n", {"soc": "ascend910c"}),
                                  ("kernels\n  (invalid, see below)\n", {"MLAP_MAX_ISA": "AMX"})):
            with self.subTest(environment=environment):
                done = self.call("info", expect=2, **environment)
                self.assertIn(line, done.stdout)
                self.assertEqual(done.stdout.count("(invalid, see below)"), 1)
                self.assertNotIn("aclrtGetSocName", done.stderr)
        out = json.loads(self.call("info", "--json", expect=2, soc="x", MLAP_NUM_THREADS="x", MLAP_MAX_ISA="x").stdout)
        self.assertEqual([out["threads"], out["soc"], out["isa"]], [None] * 3)
        self.assertEqual(len(out["errors"]), 3)

    def test_scenarios(self):
        text = self.call("info", soc="ascend910b").stdout
        self.assertRegex(text, r"\n  non-quant +V1 V2 V3 +PA_BSND PA_NZ PA_BLK_BSND PA_BLK_NZ BSND TND\n")
        self.assertRegex(text, r"\n  full-int8-kv-per-group +V3 +PA_BSND BSND TND\n")
        self.assertRegex(text, r"\n  full-hif8 +none")
        out = json.loads(self.call("info", "--json", soc="ascend950").stdout)
        self.assertEqual(list(out["scenarios"]), list(SCENARIOS))
        for offer in out["scenarios"].values():
            self.assertEqual(offer["versions"], [3])

    def test_no_limits(self):
        self.assertIn("limits    none: any size the CPU operator can compute\n", self.call("info", soc="none").stdout)

    def test_version_and_help(self):
        self.assertRegex(self.call("--version").stdout, r"^mlaprolog \d+\.\d+\.\d+\n$")
        self.assertIn("Examples", self.call("--help").stdout)
        for verb in ("run", "new-case", "info", "demo"):
            self.assertIn("Examples", self.call(verb, "--help").stdout)

    def test_full_output_device(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "info"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)


class Documents(CommandLineTest):
    """docs/command_line.md, README.md and the help against the program."""
    ROOT = pathlib.Path(__file__).resolve().parents[2]
    TEXT = (ROOT / "docs" / "command_line.md").read_text()
    README = (ROOT / "README.md").read_text()

    def test_table_of_scenarios(self):
        rows = re.findall(r"^\| ([\w-]+) \| (\w+) \| (\d), (\d) \| V(\d) \|$", self.TEXT, re.M)
        self.assertEqual({label: (name, int(version)) for label, name, _, _, version in rows}, SCENARIOS)
        for label, name, weight_quant, kv_quant, _ in rows:
            _, metadata = safetensors_bytes.read(self.new_case("a", "--scenario", label))
            self.assertEqual((metadata["scenario"], metadata["weight_quant_mode"], metadata["kv_cache_quant_mode"]),
                             (name, weight_quant, kv_quant))

    def test_help_names_every_scenario_and_cache_mode(self):
        text = " ".join(self.call("new-case", "--help").stdout.split())
        for word in (*SCENARIOS, *CACHE_MODES):
            self.assertIn(word, text)

    def test_metadata_and_tensors_of_new_cases_are_documented(self):
        for scenario in SCENARIOS:
            mode = "PA_BSND" if "per-group" in scenario else "PA_BLK_BSND"
            extra = ("--smooth",) if may_smooth(scenario) else ()
            tensors, metadata = safetensors_bytes.read(self.new_case("a", "--scenario", scenario, "--cache-mode", mode, *extra))
            for word in {*tensors, *metadata} - {"seed", "model"}:
                self.assertIn(f"`{word}`", self.TEXT)

    def test_commands_do_what_they_say_twice(self):
        for _ in range(2):
            self.assertGreater(self.paste(self.TEXT), 5)

    def test_commands_of_the_readme_do_what_they_say_in_order(self):
        text = self.README.split("## The command line", 1)[1].split("\n## ", 1)[0]
        for _ in range(2):
            self.assertGreaterEqual(self.paste(text), 8)

    def test_examples_of_the_help_use_files_they_make(self):
        for verb in ("run", "golden", "compare", "convert-cache"):
            with self.subTest(verb):
                for path in self.directory.iterdir():
                    path.unlink()
                self.assertGreater(self.paste(self.call(verb, "--help").stdout.split("Examples:")[1]), 2)

    def test_what_replaces_files(self):
        case = self.new_case("case")
        self.path("out").write_bytes(b"before")
        for args in (("new-case", self.path("out"), "--model", "tiny"),
                     ("convert-cache", case, self.path("out"), "--from", "PA_BSND", "--to", "PA_NZ")):
            self.refuse(*args, words=("OUT", "--force"))
            self.assertEqual(self.path("out").read_bytes(), b"before")
            self.call(*args, "--force")
            self.path("out").write_bytes(b"before")
        for verb in ("run", "golden"):
            self.path("out").write_bytes(b"before")
            self.call(verb, case, "-o", self.path("out"))
            self.assertNotEqual(self.path("out").read_bytes(), b"before")


class Demo(CommandLineTest):
    def test_small_demo(self):
        text = self.call("demo", "--model", "youtu-llm", "--heads", "1", "--sequences", "2", soc=None).stdout
        a2_scenarios = [label for label in SCENARIOS if label.startswith(("non", "partial", "full-int8"))]
        self.assertEqual(text.count("  ran "), len(a2_scenarios))
        for label in a2_scenarios:
            self.assertRegex(text, rf"\n{label} +aclnnMlaProlog\w* +[0-9.]+ [mu]?s +[0-9.]+  ok\n")
        self.assertIn("All results are within the accepted error", text)


if __name__ == "__main__":
    unittest.main()
