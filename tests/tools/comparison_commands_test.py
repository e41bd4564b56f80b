"""mlaprolog compare, golden, convert-cache and check-limits. MLAPROLOG names the program."""
import json
import pathlib
import struct
import unittest

import safetensors_bytes
from command_line import CommandLineTest
from safetensors_bytes import Tensor

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "cases"
STANDARDS = ["exact", "int-within-1", "staged", "staged-cache", "unrounded", "scales", "mixed-tolerance", "mere-mare",
             "half-percent", "dual-l0", "dual-l1", "dual-l2"]


def floats(*values, shape=None):
    return Tensor("F32", shape or (len(values),), struct.pack(f"<{len(values)}f", *values))


def int8s(*values):
    return Tensor("I8", (len(values),), struct.pack(f"<{len(values)}b", *values))


class Compare(CommandLineTest):
    def file(self, name, **tensors):
        return safetensors_bytes.write(self.path(name), tensors, {})

    def report(self, *args, expect=0):
        return json.loads(self.call("compare", *args, "--json", expect=expect).stdout)

    def test_equal_files_pass(self):
        a = self.file("a", x=floats(1, 2, 3), y=int8s(1, -1), raw=Tensor("U8", (2, 2), b"abcd"))
        report = self.report(a, a)
        self.assertTrue(report["passed"])
        standards = {one["tensor"]: one["standard"] for one in report["tensors"]}
        self.assertEqual(standards, {"x": "mixed-tolerance", "y": "int-within-1", "raw": "exact"})
        self.assertTrue(self.report(a, a, "--standard", "exact")["passed"])
        self.assertIn("passed", self.call("compare", a, a).stdout)

    def test_numbers_are_those_of_the_tensors(self):
        a, b = self.file("a", x=floats(3, 4.5, shape=(1, 2))), self.file("b", x=floats(3, 4, shape=(1, 2)))
        (one,) = self.report(a, b, expect=1)["tensors"]
        self.assertEqual((one["num_elements"], one["num_different"], one["max_abs"]), (2, 1, 0.5))
        self.assertAlmostEqual(one["relative_norm"], 0.1)
        self.assertAlmostEqual(one["max_row_rms"], 0.5 / 12.5 ** 0.5)
        self.assertAlmostEqual(one["rmse"], 0.125 ** 0.5)

    def test_one_bad_tensor_fails_the_file(self):
        a, b = self.file("a", x=floats(1, 2), y=int8s(1, 5)), self.file("b", x=floats(1, 2), y=int8s(1, 7))
        report = self.report(a, b, expect=1)
        self.assertEqual([one["passed"] for one in report["tensors"]], [True, False])
        text = self.call("compare", a, b, expect=1).stdout
        self.assertIn("NOT PASSED", text)
        self.assertIn("largest difference: expected at most 1, found 2", text)
        self.assertTrue(self.report(a, b, "--tensor", "x")["passed"])
        self.report(a, b, "--tensor", "x", "--tensor", "y", expect=1)

    def test_expected_tensors_are_a_files_results(self):
        """Whatever else the file has is an input and not compared, on either side."""
        a = self.file("a", query=floats(1, 2), kv_cache=floats(3))
        b = self.file("b", token_x=floats(9), kv_cache=floats(7), **{
            "expected.query": floats(1, 2), "expected.kv_cache": floats(3), "expected.c_q": floats(4),
            "expected.exact.query": floats(1, 2)})
        for actual, golden in ((a, b), (b, a)):
            self.assertEqual([one["tensor"] for one in self.report(actual, golden)["tensors"]], ["kv_cache", "query"])
        self.assertEqual(len(self.report(b, b)["tensors"]), 4)
        for name in ("query", "expected.query"):
            self.assertEqual([one["tensor"] for one in self.report(a, b, "--tensor", name)["tensors"]], ["query"])
        inputs = self.file("inputs", query=floats(1, 2), kv_cache=floats(7))
        self.report(inputs, b, expect=1)
        self.report(inputs, b, "--tensor", "kv_cache", expect=1)

    def test_all_outputs_are_required_and_others_compared_if_there(self):
        outputs = ("query", "query_rope", "kv_cache", "kr_cache", "dequant_scale_q_nope", "query_norm",
                   "dequant_scale_q_norm")
        others = ("c_q", "k_r", "exact.query")
        all_of_them = {name: floats(at) for at, name in enumerate(outputs + others)}
        golden = self.file("golden", **{f"expected.{name}": tensor for name, tensor in all_of_them.items()})
        for name in outputs + others:
            with self.subTest(name):
                rest = {other: tensor for other, tensor in all_of_them.items() if other != name}
                report = self.report(self.file("a", **rest), golden, expect=int(name in outputs))
                self.assertEqual(len(report["tensors"]), len(rest) + int(name in outputs))
                self.report(self.file("a", **rest), golden, "--tensor", name, expect=1)
                self.report(self.file("a", **{**rest, name: floats(-5)}), golden, expect=1)

    def test_results_of_every_kind_pass_against_their_golden_file(self):
        for options in (("--scenario", "non-quant", "--cache-mode", "PA_NZ"), ("--scenario", "partial-kv-int8"),
                        ("--scenario", "full-int8-kv-int8", "--query-norm"), ("--scenario", "partial-kv-per-group"),
                        ("--scenario", "full-mxfp8-kv-fp8", "--query-norm")):
            case = self.new_case("case", "--tokens", "5", *options)
            self.call("run", case, "-o", self.path("out"))
            self.call("golden", case, "-o", self.path("golden"))
            with self.subTest(options):
                compared = {one["tensor"] for one in self.report(self.path("out"), self.path("golden"))["tensors"]}
                results = set(safetensors_bytes.read(self.path("out"))[0])
                self.assertEqual({name.split(".")[0] for name in compared}, results)
                self.assertEqual("kv_cache.rope" in compared, "partial-kv-per-group" in options)
                self.report(case, self.path("golden"), expect=1)  # the inputs are no results

    def test_rows_of_per_group_caches_are_compared_part_by_part(self):
        """A last bit of a rope element or a scale may be any byte's difference; a wrong value is found in each part."""
        def rows(value=1, rope=0x3f80, scale=1.0):
            row = struct.pack("<2b2Hf", value, 2, rope, 0x3f80, scale)
            return Tensor("I8", (100, len(row)), row + 99 * struct.pack("<2b2Hf", 1, 2, 0x3f80, 0x3f80, 1.0))

        def write(name, tensor, **metadata):
            sizes = {"kv_cache_quant_mode": "3", "kv_rank": "2", "rope": "2", **metadata}
            return safetensors_bytes.write(self.path(name), {"kv_cache": tensor}, sizes)
        golden = write("golden", rows())
        for changed, fails in (({}, set()), ({"value": 2}, set()), ({"rope": 0x3f7f}, set()), ({"scale": 1.00001}, set()),
                               ({"value": 4}, {"values"}), ({"rope": 0xbf80}, {"rope"}), ({"scale": 2.0}, {"scales"})):
            with self.subTest(changed):
                report = self.report(write("a", rows(**changed)), golden, expect=int(bool(fails)))
                self.assertEqual({one["tensor"] for one in report["tensors"] if not one["passed"]},
                                 {f"kv_cache.{part}" for part in fails})
                self.assertEqual(len(report["tensors"]), 3)
        for odd in ({"kv_rank": "3"}, {"kv_rank": "x"}, {"rope": "-2"}, {"rope": "9" * 30}, {"kv_cache_quant_mode": "1"}):
            (one,) = self.report(golden, write("odd", rows(), **odd))["tensors"]
            self.assertEqual(one["tensor"], "kv_cache")

    def test_what_cannot_be_compared(self):
        a = self.file("a", x=floats(1, 2), raw=Tensor("U8", (1,), b"a"))
        for name, tensor, word in [("shape", floats(1, 2, 3), "(3)"), ("absent", None, "no such tensor")]:
            b = self.file("b", y=floats(1, 2)) if tensor is None else self.file("b", x=tensor)
            with self.subTest(name):
                done = self.call("compare", a, b, expect=1)
                self.assertIn("NOT COMPARED", done.stdout)
                self.assertIn(word, done.stdout)
        self.call("compare", a, a, "--standard", "staged", expect=1)
        self.call("compare", a, self.file("wide", x=Tensor("F64", (2,), bytes(16))), "--standard", "exact", expect=1)

    def test_every_standard_by_name(self):
        a = self.file("a", x=floats(1, 2), y=int8s(1))
        for standard in STANDARDS:
            name = "y" if standard == "int-within-1" else "x"
            benchmark = ["--benchmark", a] if standard.startswith("dual") else []
            with self.subTest(standard):
                report = self.report(a, a, "--standard", standard, "--tensor", name, *benchmark)
                self.assertEqual(report["tensors"][0]["standard"], standard)
                self.assertEqual("mare_ratio" in report["tensors"][0], standard.startswith("dual"))

    def test_a_benchmark_decides(self):
        golden = self.file("golden", x=floats(1, 2))
        close, far = self.file("close", x=floats(1.001, 2.001)), self.file("far", x=floats(1.1, 2.1))
        self.report(close, golden, "--standard", "dual-l2", "--benchmark", far)
        self.report(far, golden, "--standard", "dual-l0", "--benchmark", close, expect=1)

    def test_refusals(self):
        a = self.file("a", x=floats(1))
        self.refuse("compare", a, self.path("absent"), words=("absent",))
        self.refuse("compare", a, a, "--standard", "nonsense", words=("--standard", "nonsense", *STANDARDS))
        self.refuse("compare", a, a, "--standard", "dual-l1", words=("--benchmark",))
        self.refuse("compare", a, a, "--benchmark", a, words=("--benchmark",))
        self.refuse("compare", a, a, "--tensor", "y", words=("--tensor", "'y'"))
        golden = self.file("golden", x=floats(1), **{"expected.c_q": floats(1)})
        self.refuse("compare", a, golden, "--tensor", "x", words=("--tensor", "expected.x"))
        self.refuse("compare", a, golden, words=("golden", "found none"))
        self.refuse("compare", a, self.file("empty"), words=("empty",))
        self.refuse("compare", a, words=("B",))


class GoldenFiles(CommandLineTest):
    def test_everything_is_written_and_runs(self):
        for name in ("nq_nz_3d", "partial_bsnd_2d_smooth", "partial_pc_nz_2d", "nq_no_blocks", "full_blk_nz_fused",
                     "full_pt_bsnd", "full_pg_tnd", "mxfp8_pt_bsnd", "fp8_pg_bsnd", "hif8_pt_tnd"):
            source = GOLDEN / f"{name}.safetensors"
            with self.subTest(name):
                text = self.call("golden", source, "-o", self.path("out")).stdout
                self.assertIn("within the accepted error", text)
                tensors, metadata = safetensors_bytes.read(self.path("out"))
                known, known_metadata = safetensors_bytes.read(source)
                self.assertEqual(metadata, known_metadata)
                for tensor, value in known.items():
                    if not tensor.startswith("expected."):
                        self.assertEqual(tensors[tensor], value)
                self.assertLessEqual({name for name in known}, set(tensors))
                self.assertLessEqual({f"expected.exact.{name}" for name in ("query", "query_rope", "c_kv", "k_r")},
                                     set(tensors))
                # The independent model's results and intermediates agree, and the operator takes the file.
                self.call("compare", self.path("out"), source, "--standard", "auto")
                self.call("run", self.path("out"), "--check")

    def test_both_measures(self):
        report = json.loads(self.call("golden", GOLDEN / "nq_bsnd_2d.safetensors", "--json").stdout)
        self.assertTrue(report["passed"])
        for key, standards in [("operator_staged", {"staged", "staged-cache"}), ("operator_exact", {"unrounded"}),
                               ("staged_exact", {"unrounded"})]:
            names = [one["tensor"] for one in report[key]]
            self.assertEqual(names, ["query", "query_rope", "kv_cache", "kr_cache"])
            self.assertEqual({one["standard"] for one in report[key]}, standards)
        # Rounding to bf16 alone makes the results differ from the exact ones.
        self.assertGreater(report["staged_exact"][0]["relative_norm"], 1e-3)
        self.assertLess(report["operator_staged"][0]["relative_norm"], 2e-3)

    def test_refusals(self):
        case = self.new_case("case", "--tokens", "2")
        self.refuse("golden", self.path("absent"), words=("absent",))
        self.refuse("golden", case, "-o", case, words=("--output",))
        self.refuse("golden", case, "-o", self.path("no") / "where", words=("--output",))


class ConvertCache(CommandLineTest):
    def convert(self, source, form, to, *args):
        target = self.path(f"{to}.safetensors")
        self.call("convert-cache", source, target, "--from", form, "--to", to, "--force", *args)
        return target

    def test_pages(self):
        rows = [struct.pack("<32H", *range(slot * 32, slot * 32 + 32)) for slot in range(32)]
        tensors = {"kv_cache": Tensor("BF16", (2, 16, 1, 32), b"".join(rows)), "x": floats(1)}
        source = safetensors_bytes.write(self.path("in"), tensors, {"key": "value"})
        nz, metadata = safetensors_bytes.read(self.convert(source, "PA_BSND", "PA_NZ"))
        self.assertEqual(metadata, {"key": "value"})
        self.assertEqual(nz["x"], tensors["x"])
        elements = struct.unpack("<1024H", nz["kv_cache"].data)
        for slot in (0, 1, 15, 16, 31):
            for d in (0, 15, 16, 31):
                at = slot // 16 * 512 + d // 16 * 256 + slot % 16 * 16 + d % 16
                self.assertEqual(elements[at], slot * 32 + d)
        back, _ = safetensors_bytes.read(self.convert(self.path("PA_NZ.safetensors"), "PA_NZ", "PA_BSND"))
        self.assertEqual(back, tensors)

    def test_a_case_stays_a_case(self):
        """All its caches change, and the metadata with them; results are those of a case made in that mode."""
        for rows, fractals in (("PA_BSND", "PA_NZ"), ("PA_BLK_BSND", "PA_BLK_NZ")):
            options = ("--tokens", "5", "--scenario", "partial")
            case = self.new_case("case", *options, "--cache-mode", rows)
            self.call("golden", case, "-o", self.path("golden"))
            for source in (case, self.path("golden")):
                with self.subTest(f"{rows} {source.name}"):
                    nz = self.convert(source, "PA_BSND", "PA_NZ")
                    before, after = safetensors_bytes.read(source), safetensors_bytes.read(nz)
                    self.assertEqual(after[1], {**before[1], "cache_mode": fractals})
                    changed = {name for name in before[0] if before[0][name] != after[0][name]}
                    self.assertEqual(changed, {name for name in before[0] if name.endswith("_cache")})
                    text = self.call("run", nz, "--check").stdout
                    self.assertEqual("the file's expected tensors" in text, source != case)
                    self.assertEqual(safetensors_bytes.read(self.convert(nz, "PA_NZ", "PA_BSND")), before)

    def test_caches_of_a_case_go_together(self):
        case, out = self.new_case("case"), self.path("out")
        forms = ("--from", "PA_BSND", "--to", "PA_NZ")
        for one, other in (("kv_cache", "kr_cache"), ("kr_cache", "kv_cache")):
            self.refuse("convert-cache", case, out, *forms, "--tensor", one, words=("--tensor", other, "cache_mode"))
        self.refuse("convert-cache", case, out, "--from", "PA_NZ", "--to", "PA_BSND", words=("--from", "PA_BSND", "PA_NZ"))
        self.refuse("convert-cache", self.new_case("tnd", "--cache-mode", "TND"), out, *forms, words=("--from", "TND"))
        self.assertFalse(out.exists())
        both = ("--tensor", "kr_cache", "--tensor", "kv_cache", "--tensor", "kv_cache")
        self.call("convert-cache", case, out, *forms, *both)
        self.call("run", out, "--check")

    def test_rows_are_those_of_per_group_caches(self):
        for scenario in ("non-quant", "full-int8-kv-int8"):
            case = self.new_case("case", "--scenario", scenario)
            for to in ("flashmla", "split"):
                self.refuse("convert-cache", case, self.path("out"), "--from", "cann", "--to", to,
                            words=("kv_cache", "only per-group caches", "found"))

    def test_rows(self):
        values, rope, scales = bytes(range(256)) * 2, bytes(range(128)), bytes(range(16))
        source = safetensors_bytes.write(
            self.path("in"), {"kv_cache": Tensor("I8", (2, 1, 656), 2 * (values + rope + scales))}, {})
        flash, _ = safetensors_bytes.read(self.convert(source, "cann", "flashmla"))
        self.assertEqual(flash["kv_cache"].data, 2 * (values + scales + rope))
        for form in ("cann", "flashmla"):
            apart, _ = safetensors_bytes.read(self.convert(self.path("flashmla.safetensors"), "flashmla", "split"))
            self.assertEqual(apart, {"kv_cache.values": Tensor("I8", (2, 1, 512), 2 * values),
                                     "kv_cache.rope": Tensor("BF16", (2, 1, 64), 2 * rope),
                                     "kv_cache.scales": Tensor("F32", (2, 1, 4), 2 * scales)})
            joined, _ = safetensors_bytes.read(self.convert(self.path("split.safetensors"), "split", form))
            expected = rope + scales if form == "cann" else scales + rope
            self.assertEqual(joined["kv_cache"].data, 2 * (values + expected))

    def test_other_sizes(self):
        data = b"abcde" + b"rrss" + b"ffff"
        source = safetensors_bytes.write(self.path("in"), {"c": Tensor("I8", (1, 13), data)}, {})
        sizes = ("--kv-rank", "5", "--rope", "2", "--tensor", "c")
        moved, _ = safetensors_bytes.read(self.convert(source, "cann", "flashmla", *sizes))
        self.assertEqual(moved["c"].data, b"abcde" + b"ffff" + b"rrss")

    def test_refusals(self):
        source = safetensors_bytes.write(self.path("in"), {"kv_cache": Tensor("I8", (2, 655), bytes(1310))}, {})
        out = self.path("out")
        for form, to, words in [("cann", "flashmla", ("kv_cache", "656")), ("PA_BSND", "PA_NZ", ("kv_cache",)),
                                ("cann", "PA_NZ", ("--to",)), ("nonsense", "cann", ("--from", "nonsense")),
                                ("cann", "nonsense", ("--to", "nonsense")), ("split", "cann", ("kv_cache.values",))]:
            with self.subTest(f"{form} {to}"):
                self.refuse("convert-cache", source, out, "--from", form, "--to", to, words=words)
                self.assertFalse(out.exists())
        self.refuse("convert-cache", source, out, "--from", "cann", "--to", "cann", "--tensor", "x", words=("x",))
        self.refuse("convert-cache", source, source, "--from", "cann", "--to", "split", words=("OUT",))
        out.write_bytes(b"before")
        self.refuse("convert-cache", source, out, "--from", "cann", "--to", "split", words=("OUT", "--force"))
        self.assertEqual(out.read_bytes(), b"before")


class CheckLimits(CommandLineTest):
    def report(self, *args, expect):
        return json.loads(self.call("check-limits", *args, "--json", expect=expect, soc=None).stdout)

    def test_models(self):
        for model, version, reasons in [("deepseek-v3", 1, 0), ("deepseek-v3", 3, 0), ("glm-5", 3, 0), ("glm-5", 2, 2),
                                        ("glm-4.7-flash", 3, 2), ("minicpm3", 3, 6)]:
            with self.subTest(f"{model} {version}"):
                report = self.report("--model", model, "--op-version", version, expect=min(reasons, 1))
                self.assertEqual(len(report["reasons"]), reasons, report)
                self.assertEqual(report["accepted"], reasons == 0)

    def test_each_reason(self):
        for args, word in [(("--heads", "96"), "N: "), (("--hidden", "2304"), "He: "), (("--q-rank", "0"), "low rank"),
                           (("--kv-rank", "256"), "Hckv: "), (("--rope", "32"), "Dr: "), (("--nope", "64"), "D: "),
                           (("--block-size", "24"), "BlockSize: "), (("--batch", "65537"), "B: "),
                           (("--weights", "fp8"), "FP8"), (("--kv", "per-tensor"), "do not go together"),
                           (("--op-version", "1", "--weights", "int8"), "has no int8"),
                           (("--op-version", "2", "--cache-mode", "BSND", "--batch", "2"), "BSND"),
                           (("--op-version", "2", "--soc", "ascend950"), "version 2"),
                           (("--cache-mode", "BSND"), "BSND"), (("--cache-mode", "TND", "--batch", "2"), "TND"),
                           (("--weights", "int8", "--kv", "per-group", "--cache-mode", "PA_NZ"), "per-group"),
                           (("--rope-style", "half"), "rope_style")]:
            with self.subTest(" ".join(args)):
                report = self.report(*args, expect=1)
                self.assertEqual(len(report["reasons"]), 1, report)
                self.assertIn(word, report["reasons"][0])
                self.assertIn(report["reasons"][0], self.call("check-limits", *args, expect=1, soc=None).stdout)

    def test_the_device_is_the_options_else_the_variables(self):
        for variable, option, expected in ((None, (), "ascend910b"), ("", (), "ascend910b"), ("ascend950", (), "ascend950"),
                                           ("ascend950", ("--soc", "ascend910_93"), "ascend910_93"),
                                           ("none", ("--soc", "ascend950"), "ascend950")):
            with self.subTest(variable=variable, option=option):
                is_950 = expected == "ascend950"
                text = self.call("check-limits", "--weights", "fp8", "--json", *option, soc=variable,
                                 expect=0 if is_950 else 1).stdout
                self.assertEqual(json.loads(text)["soc"], expected)
        for wrong in ("nonsense", "none", "ascend910"):
            self.refuse("check-limits", soc=wrong, words=("MLAP_SOC", "ascend910b, ascend910_93 or ascend950", wrong))

    def test_what_the_950_takes(self):
        for weights in ("mxfp8", "fp8", "hifloat8"):
            for kv in ("bf16", "per-tensor", "per-group"):
                self.report("--soc", "ascend950", "--weights", weights, "--kv", kv, expect=0)

    def test_refusals(self):
        for args, words in [(("--soc", "ascend310"), ("soc", "ascend310")), (("--model", "x"), ("--model",)),
                            (("--op-version", "4"), ("--op-version",)), (("--weights", "fp4"), ("--weights", "fp4")),
                            (("--kv", "x"), ("--kv",)), (("--cache-mode", "BNSD"), ("--cache-mode", "BNSD")),
                            (("--rope-style", "x"), ("--rope-style",)), (("--heads", "0"), ("--heads",))]:
            self.refuse("check-limits", *args, words=words, soc=None)


if __name__ == "__main__":
    unittest.main()
