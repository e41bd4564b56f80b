"""What the command line refuses, with exit code 2 and one line that says why. MLAPROLOG names the program."""
import os
import struct
import unittest

import safetensors_bytes
from command_line import CommandLineTest
from safetensors_bytes import Tensor


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
                     ("new-case", out, "--seed", "18446744073709551615"),
                     ("new-case", out, "--blocks", 2**31, "--block-size", 2**20),
                     ("new-case", out, "--epsilon", "nan"), ("new-case", out, "--rope-theta", "0"),
                     ("new-case", out, "--hidden", 2**20, "--q-rank", 2**20, "--heads", 2**20, "--nope", 2**20,
                      "--rope", 2**20, "--kv-rank", 2**20, "--tokens", 2**24),
                     ("demo", "--sequences", "0"), ("demo", "--sequences", 2**24), ("demo", "--heads", "3"),
                     ("info", "--xml")):
            with self.subTest(args=args):
                self.refuse(*args, soc=None)
        self.assertFalse(out.exists())

    def refuse_text(self, text, *args, **environment):
        """The whole message but for the program's name and the pointer to --help."""
        found = self.refuse(*args, **environment).strip().replace(" (see --help)", "")
        self.assertEqual(found, "mlaprolog: " + text)

    def test_the_wrong_word_is_named(self):
        out = self.path("out")
        whole = "expected a whole number from 1 to 1048576, found "
        for text, args in (("expected a verb: demo, run, new-case, golden, compare, convert-cache, check-limits or info", ()),
                           ("frob: expected demo, run, new-case, golden, compare, convert-cache, check-limits or info", ("frob",)),
                           ("frob: expected demo, run, new-case, golden, compare, convert-cache, check-limits or info", ("frob", "--heads", "3")),
                           ("frob: expected demo, run, new-case, golden, compare, convert-cache, check-limits or info", ("frob", "run")),
                           ("--frob: no such option", ("--frob",)),
                           ("--wrong: no such option", ("run", "--wrong")),
                           ("--chek: no such option", ("run", out, "--chek")),
                           ("--hea: no such option", ("new-case", out, "--hea", "3")),
                           ("--hea: no such option", ("new-case", "--hea=3")),
                           ("b: expected no further argument", ("run", "a", "b")),
                           ("CASE: expected a FILE, found none", ("run",)),
                           ("OUT: expected a FILE, found none", ("new-case",)),
                           ("OUT: expected a FILE, found none", ("new-case", "--model", "tiny")),
                           ("--repeat: expected a NUMBER, found none", ("run", "a", "--repeat")),
                           ("--output: expected a FILE, found none", ("run", "a", "-o")),
                           ("--heads: expected once, found 2 times", ("new-case", out, "--heads", 3, "--heads", 4)),
                           ("--smooth: expected no value, found one", ("new-case", out, "--smooth=abc")),
                           ("--heads: " + whole + "'abc'", ("new-case", out, "--heads", "abc")),
                           ("--heads: " + whole + "'1.5'", ("demo", "--heads", "1.5")),
                           ("--tokens: expected a whole number from 1 to 16777216, found '-1'",
                            ("new-case", out, "--tokens", "-1")),
                           ("--device-id: expected 0, found '1'", ("run", out, "--device-id", "1"))):
            with self.subTest(args=args):
                self.refuse_text(text, *args)

    def test_widths_of_nz_caches(self):
        text = "expected a multiple of {} with --cache-mode PA_NZ, found {}; --cache-mode PA_BSND takes any width"
        options = ("new-case", self.path("out"), "--model", "tiny", "--cache-mode", "PA_NZ")
        self.refuse_text("--kv-rank: " + text.format(16, 33), *options, "--kv-rank", "33")
        self.refuse_text("--rope: " + text.format(32, 16), *options, "--rope", "16", "--scenario", "partial-kv-int8")

    def test_the_function_is_named_once(self):
        text = self.refuse_case("aclnnMlaPrologGetWorkspaceSize refuses it", "tokenX", soc=None)
        self.assertEqual(text.count("aclnnMlaPrologGetWorkspaceSize"), 1, text)

    def test_inputs_are_not_overwritten(self):
        good = self.path("good")
        image = good.read_bytes()
        self.path("link").symlink_to(good)
        os.link(good, self.path("hard"))
        for output in (good, self.path("link"), self.path("hard"), f"{self.directory}/../{self.directory.name}/good"):
            with self.subTest(output=output):
                self.refuse("run", good, "-o", output, words=("--output: expected another file",))
        good.rename(self.path("new.part"))
        self.refuse("run", self.path("new.part"), "-o", self.path("new"), words=("--output: expected another file",))
        self.assertEqual(self.path("new.part").read_bytes(), image)

    def test_new_case_replaces_nothing_unless_told(self):
        image = self.path("good").read_bytes()
        args = ("new-case", self.path("good"), "--model", "tiny", "--seed", "2")
        self.refuse(*args, words=("OUT: expected the name of a new file", "--force"))
        self.assertEqual(self.path("good").read_bytes(), image)
        self.call(*args, "--force")
        self.assertNotEqual(self.path("good").read_bytes(), image)

    def test_where_nothing_can_be_written_nothing_is_computed(self):
        for output, word in ((self.path("absent") / "out", "No such file"), (self.directory, "the directory"),
                             (self.path("good") / "out", "Not a directory")):
            for args in (("run", self.path("good"), "-o", output), ("new-case", output)):
                with self.subTest(args=args):
                    done = self.call(*args, expect=2)
                    self.assertEqual(done.stdout, "")
                    self.assertIn(word, done.stderr)
        self.call("run", self.path("good"), "-o", "/dev/null")


if __name__ == "__main__":
    unittest.main()
