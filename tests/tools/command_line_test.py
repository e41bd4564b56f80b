"""The command line from outside: files in, files, text and exit codes out. MLAPROLOG names the program."""
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

import safetensors_bytes
from safetensors_bytes import Tensor

PROGRAM = os.environ["MLAPROLOG"]
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "cases"
SCENARIOS = ("non-quant", "partial", "partial-kv-int8")
CACHE_MODES = ("PA_BSND", "PA_NZ")


class CommandLineTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def path(self, name: str) -> pathlib.Path:
        return self.directory / name

    def call(self, *args, expect=0, soc="none", **environment):
        """Runs the program and checks its exit code. Without limits of a device unless `soc` says otherwise."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("MLAP_")}
        env.update(environment)
        if soc is not None:
            env["MLAP_SOC"] = soc
        done = subprocess.run([PROGRAM, *map(str, args)], env=env, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, expect, f"{args}\n{done.stdout}\n{done.stderr}")
        return done

    def refuse(self, *args, words=(), **environment):
        """Runs the program, which must exit with 2 and one line that contains `words`."""
        done = self.call(*args, expect=2, **environment)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("mlaprolog: "), done.stderr)
        self.assertLess(len(done.stderr), 1000, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        return done.stderr

    def new_case(self, name: str, *args, **environment) -> pathlib.Path:
        self.call("new-case", self.path(name), "--model", "tiny", "--block-size", "16", *args, **environment)
        return self.path(name)


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


class Golden(CommandLineTest):
    def test_cases_of_this_operator(self):
        paths = [path for path in sorted(GOLDEN.glob("*.safetensors")) if not path.name.startswith("full_")]
        self.assertGreater(len(paths), 25)
        for path in paths:
            with self.subTest(path.name):
                text = self.call("run", path, "--check").stdout
                self.assertIn("the file's expected tensors", text)
                self.assertIn("compared with the reference", text)

    def test_full_int8_is_refused(self):
        for path in GOLDEN.glob("full_*.safetensors"):
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


class Refusals(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.tensors, self.metadata = safetensors_bytes.read(self.new_case("good", "--tokens", "3"))

    def refuse_case(self, *words, **environment):
        path = safetensors_bytes.write(self.path("bad"), self.tensors, self.metadata)
        return self.refuse("run", path, "--check", words=words, **environment)

    def test_files(self):
        image = self.path("good").read_bytes()
        self.refuse("run", self.path("absent"), words=("absent", "No such file"))
        self.refuse("run", self.directory, words=("regular file",))
        for size in (0, 5, 8, 100, len(image) - 1):
            self.path("short").write_bytes(image[:size])
            self.refuse("run", self.path("short"), words=("short",))
        self.path("garbage").write_bytes(bytes(range(256)) * 4)
        self.refuse("run", self.path("garbage"), words=("garbage", "header"))
        self.path("array").write_bytes(struct.pack("<Q", 2) + b"[]")
        self.refuse("run", self.path("array"), words=("an object", "an array"))

    def test_missing_tensors(self):
        for name in list(self.tensors):
            tensor = self.tensors.pop(name)
            with self.subTest(name):
                self.refuse_case(name)
            self.tensors[name] = tensor

    def test_wrong_types_and_shapes(self):
        for name, tensor in list(self.tensors.items()):
            for wrong in (Tensor("F32", (3,), bytes(12)), Tensor("BF16", (0,), b""), Tensor("I64", (), bytes(8)),
                          Tensor(tensor.dtype, (*tensor.shape, 1, 1, 1), tensor.data),
                          Tensor("BF16", (0, 2**60), b""), Tensor("BF16", (2**40, 0, 2**40), b"")):
                self.tensors[name] = wrong
                with self.subTest(name=name, wrong=wrong):
                    self.refuse_case()
            self.tensors[name] = tensor

    def test_other_tensors(self):
        self.tensors["smooth_scale_cq"] = Tensor("F32", (1, 64), bytes(256))
        self.refuse_case("smooth_scale_cq")
        del self.tensors["smooth_scale_cq"]
        self.tensors["smooth_scales_cq"] = Tensor("F32", (1, 64), bytes(256))
        self.refuse_case("smooth_scales_cq", "I8 weight_uq_qr")
        del self.tensors["smooth_scales_cq"]
        self.tensors["expected.query"] = Tensor("F32", (3,), bytes(12))
        self.refuse_case("expected.query", "BF16 (3, 4, 64)", "F32 (3)")

    def test_metadata(self):
        for key, value, word in (("cache_mode", "PA_XYZ", "PA_BSND or PA_NZ"), ("cache_mode", None, "cache_mode"),
                                 ("rmsnorm_epsilon_cq", "tiny", "a number"), ("rmsnorm_epsilon_ckv", None, "epsilon"),
                                 ("scenario", "partial", "non_quant"), ("heads", "5", "heads"),
                                 ("scenario", "full_int8", "does not offer")):
            before = dict(self.metadata)
            if value is None:
                del self.metadata[key]
            else:
                self.metadata[key] = value
            with self.subTest(key=key, value=value):
                self.refuse_case(word)
            self.metadata = before

    def test_the_operator_refuses(self):
        text = self.refuse_case("aclnnMlaPrologGetWorkspaceSize", "561002", "MLAP_SOC=none", soc="ascend910b")
        self.assertIn("96", text)
        self.refuse_case("MLAP_SOC", soc="ascend31415")
        slots = struct.pack("<3q", 0, 10**9, 1)
        self.tensors["cache_index"] = self.tensors["cache_index"]._replace(data=slots)
        self.refuse_case("507015", "1000000000")

    def test_options(self):
        out = self.path("out")
        for args in ((), ("frobnicate",), ("run",), ("run", out, "--chek"), ("run", self.path("good"), "--repeat", "0"),
                     ("run", self.path("good"), "--repeat", "x"), ("run", self.path("good"), "--device-id", "1"),
                     ("run", self.path("good"), "-o", "/no/such/directory/file"), ("new-case",),
                     ("new-case", out, "--tokens", "-1"), ("new-case", out, "--tokens", "0"),
                     ("new-case", out, "--heads", 2**60), ("new-case", out, "--heads", 2**70),
                     ("new-case", out, "--model", "gpt-2"), ("new-case", out, "--scenario", "full"),
                     ("new-case", out, "--cache-mode", "BNSD"), ("new-case", out, "--smooth"),
                     ("new-case", out, "--rope", "7"), ("new-case", out, "--rope", "8", "--cache-mode", "PA_NZ"),
                     ("new-case", out, "--tokens", "4", "--batch", "2"), ("new-case", out, "--blocks", "some"),
                     ("new-case", out, "--blocks", "1", "--tokens", "200"), ("new-case", out, "--seed", "-1"),
                     ("new-case", out, "--blocks", 2**31, "--block-size", 2**20),
                     ("new-case", out, "--epsilon", "nan"), ("new-case", out, "--rope-theta", "0"),
                     ("new-case", out, "--hidden", 2**20, "--q-rank", 2**20, "--heads", 2**20, "--nope", 2**20,
                      "--rope", 2**20, "--kv-rank", 2**20, "--tokens", 2**24),
                     ("demo", "--sequences", "0"), ("demo", "--sequences", 2**24), ("demo", "--heads", "3"),
                     ("info", "--xml")):
            with self.subTest(args=args):
                self.refuse(*args, soc=None)
        self.assertFalse(out.exists())


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
