"""The command line from outside: files in, files, text and exit codes out. MLAPROLOG names the program."""
import json
import pathlib
import struct
import subprocess
import unittest

import safetensors_bytes
from command_line import PROGRAM, CommandLineTest
from safetensors_bytes import Tensor

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "cases"
SCENARIOS = ("non-quant", "partial", "partial-kv-int8")
CACHE_MODES = ("PA_BSND", "PA_NZ")


class NewCase(CommandLineTest):
    def test_same_seed_same_bytes(self):
        for scenario in SCENARIOS:
            options = ("--tokens", "5", "--scenario", scenario)
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

    def test_every_spelling_of_a_scenario(self):
        for label, metadata, spellings in (
                ("non-quant", "non_quant", ("non-quant", "non_quant")), ("partial", "partial", ("partial",)),
                ("partial-kv-int8", "partial_kv_per_channel",
                 ("partial-kv-int8", "partial_kv_int8", "partial-kv-per-channel", "partial_kv_per_channel"))):
            for spelling in spellings:
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
        youtu = ("--model", "youtu-llm", "--hidden", "1024")
        self.assertEqual(errors(*youtu, "--heads", "17"), hint.format("Ascend910B3"))
        self.assertEqual(errors(*youtu, "--heads", "1"), "")
        self.assertIn("mlaprolog: the operator refuses this case: ", errors(*youtu, "--heads", "1", soc="ascend950"))


class Run(CommandLineTest):
    def test_every_scenario_and_cache_mode(self):
        for scenario in SCENARIOS:
            for mode in CACHE_MODES:
                for smooth in ((), ("--smooth",)) if scenario != "non-quant" else ((),):
                    for lead in (("--tokens", "1"), ("--tokens", "9"), ("--batch", "2", "--seq", "3")):
                        with self.subTest(scenario=scenario, mode=mode, smooth=smooth, lead=lead):
                            path = self.new_case("a", *lead, "--scenario", scenario, "--cache-mode", mode, *smooth)
                            self.assertIn("within the accepted error", self.call("run", path, "--check").stdout)

    def test_a_size_the_device_accepts(self):
        path = self.path("youtu")
        self.call("new-case", path, "--model", "youtu-llm", "--heads", "1", "--tokens", "2", "--scenario", "partial")
        self.call("run", path, "--check", "--repeat", "3", soc=None)

    def test_odd_sizes(self):
        path = self.new_case("a", "--hidden", "37", "--q-rank", "21", "--heads", "3", "--nope", "7", "--rope", "6",
                             "--kv-rank", "33", "--scenario", "partial-kv-int8", "--smooth", "--tokens", "5")
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

    def test_plain_weights_give_the_same_results(self):
        for scenario in SCENARIOS:
            path = self.new_case("nz", "--tokens", "4", "--scenario", scenario, "--hidden", "40", "--q-rank", "24",
                                 "--heads", "3", "--nope", "10", "--rope", "8", "--kv-rank", "20")
            tensors, metadata = safetensors_bytes.read(path)
            sizes = {"weight_dq": (40, 24), "weight_uq_qr": (24, 54), "weight_dkv_kr": (40, 28)}
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
    # What aclnnMlaProlog has: its modes, its devices, no factors.
    MODES = {("0", "0"), ("1", "0"), ("1", "2")}

    def has_its_attributes(self, path):
        _, metadata = safetensors_bytes.read(path)
        return (metadata["cache_mode"] in ("PA_BSND", "PA_NZ") and metadata["soc"] != "ascend950"
                and float(metadata["qc_qr_scale"]) == float(metadata["kc_scale"]) == 1)

    def is_of_this_operator(self, path):
        _, metadata = safetensors_bytes.read(path)
        modes = (metadata["weight_quant_mode"], metadata["kv_cache_quant_mode"])
        return modes in self.MODES and self.has_its_attributes(path)

    def test_cases_of_this_operator(self):
        paths = [path for path in sorted(GOLDEN.glob("*.safetensors")) if self.is_of_this_operator(path)]
        self.assertGreater(len(paths), 25)
        for path in paths:
            with self.subTest(path.name):
                text = self.call("run", path, "--check").stdout
                self.assertIn("the file's expected tensors", text)
                self.assertIn("compared with the reference", text)

    def test_cases_of_later_versions_are_refused(self):
        paths = [path for path in sorted(GOLDEN.glob("*.safetensors")) if not self.is_of_this_operator(path)]
        self.assertGreater(len(paths), 25)
        for path in paths:
            with self.subTest(path.name):
                self.refuse("run", path, "--check", words=(path.name,))

    def test_full_int8_is_refused(self):
        for path in filter(self.has_its_attributes, GOLDEN.glob("full_*.safetensors")):
            with self.subTest(path.name):
                self.refuse("run", path, "--check", words=("full_int8", "does not offer"))

    def test_tampered_expectations_are_found(self):
        source = GOLDEN / "nq_bsnd_2d.safetensors"
        for name in ("query", "query_rope", "kv_cache", "kr_cache"):
            tensors, metadata = safetensors_bytes.read(source)
            self.assertNotEqual(tensors["expected.kv_cache"].data, tensors["kv_cache"].data)
            tensor = tensors["expected." + name]
            data = bytearray(tensor.data)
            if name.endswith("_cache"):  # all rows, whichever of them are written
                for at in range(1, len(data), 2):
                    data[at] ^= 0x80
            else:
                data[1] ^= 0x80  # the sign of the first element
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


class Demo(CommandLineTest):
    def test_small_demo(self):
        text = self.call("demo", "--model", "youtu-llm", "--heads", "1", "--sequences", "2", soc=None).stdout
        self.assertEqual(text.count("  ran "), 3)
        self.assertIn("All results are within the accepted error", text)


if __name__ == "__main__":
    unittest.main()
