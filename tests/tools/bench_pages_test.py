"""The performance page and the plot, from results as mlaprolog_bench writes them."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
SCENARIOS = ("non-quant", "partial", "partial-kv-int8", "full-int8", "full-int8-kv-int8")


def timing(name, seconds):
    return {"name": name, "median_seconds": seconds, "min_seconds": 0.9 * seconds, "calls": 40, "rejected": 1}


def point(heads, tokens, scenario):
    peers = [{**timing("oneDNN, packed weights, strided heads", 0.03), "implementations": "brgemm",
              "relative_difference": 1e-3}] if scenario == "non-quant" else []
    return {"heads": heads, "tokens": tokens, "scenario": scenario, "ours": timing("ours, " + scenario, 0.012),
            "weight_bytes": 1.2e8, "other_bytes": 1e6, "bf16_flops": 1e9, "int8_ops": 1e8,
            "memory_bound_seconds": 0.011, "compute_bound_seconds": 0.001, "bound": "memory", "efficiency": 0.92,
            "against_peer": 2.5 if peers else None, "peers": peers}


def results(scenarios):
    target = {"what": "full-int8 against bf16, N = 128, T = 1", "unit": "x", "relation": "at least", "wanted": 1.65,
              "found": 1.7, "met": True}
    limit = {"key": "read", "what": "4 streams", "median_per_second": 1e10, "best_per_second": 1.1e10}
    machine = {"cpu": "a <CPU> & more", "flags": "avx2", "isa": "avx2", "threads": 2, "cpus": 2, "load_at_start": 0.1,
               "last_level_cache_bytes": 2**25, "last_level_cache_source": "the kernel", "memory_bytes": 2.0**34,
               "huge_pages": "madvise", "huge_page_share": 0.9, "kernel": "Linux", "compiler": "gcc"}
    costs = {"first_step_seconds": 1e-5, "empty_call_seconds": 5e-6, "workspace": [{"tokens": 1, "bytes": 1e6}],
             "memory_tokens": 1024, "hidden_bytes": 1e5}
    return {"format": 1, "version": "0.1.0", "date": "2026-01-01", "command": "mlaprolog_bench --full", "seconds": 600,
            "steady": True, "seconds_per_point": 22, "machine": machine, "limits": [limit], "bf16_limit": "fp32_256",
            "int8_limit": "int8_vnni_256", "read_buffer_bytes": 1e9, "peer": "oneDNN 2.6.3", "why_no_peer": "",
            "call_costs": costs, "targets": [target],
            "points": [point(heads, tokens, scenario) for heads in (16, 128) for tokens in (1, 16)
                       for scenario in scenarios]}


class BenchPages(unittest.TestCase):
    def convert(self, script, contents, expect=0, further=()):
        with tempfile.TemporaryDirectory() as directory:
            source, target = pathlib.Path(directory, "in.json"), pathlib.Path(directory, "out")
            source.write_text(json.dumps(contents))
            more = [pathlib.Path(directory, f"more{i}.json") for i in range(len(further))]
            for path, more_contents in zip(more, further):
                path.write_text(json.dumps(more_contents))
            done = subprocess.run([sys.executable, "-B", BENCH / script, source, target, *more],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, expect, done.stderr)
            return target.read_text() if expect == 0 else done.stderr

    def test_page_has_every_scenario_and_target(self):
        page = self.convert("performance_page.py", results(SCENARIOS))
        for scenario in SCENARIOS:
            self.assertEqual(page.count(f"| {scenario} |"), 4, scenario)
        self.assertIn("full-int8 against bf16, N = 128, T = 1", page)
        self.assertIn("1 of 1 are met", page)

    def test_further_results_follow(self):
        further = results(("non-quant",))
        further["machine"]["isa"] = "scalar"
        further["limits"].append({**further["limits"][0], "key": "fp32_256", "what": "vfmadd231ps ymm"})
        page = self.convert("performance_page.py", results(SCENARIOS), further=[further])
        self.assertIn("## `scalar`, 2 threads", page)
        self.assertEqual(page.count("| non-quant |"), 8)
        self.assertEqual(page.count("1 of 1 are met"), 2)

    def test_readme_figures(self):
        with tempfile.TemporaryDirectory() as directory:
            source, readme = pathlib.Path(directory, "in.json"), pathlib.Path(directory, "README.md")
            source.write_text(json.dumps(results(SCENARIOS)))
            run = lambda *options: subprocess.run(
                [sys.executable, "-B", BENCH.parent / "scripts" / "readme_block.py", readme, "the figures", *options, "--",
                 sys.executable, "-B", BENCH / "readme_figures.py", source], capture_output=True, text=True)
            readme.write_text("no markers\n")
            self.assertEqual(run().returncode, 1)
            begin, end = ("<!-- What the figures prints -->\n", "<!-- End of what the figures prints -->\n")
            readme.write_text("before\n" + begin + "old\n" + end + "after\n")
            self.assertEqual(run().returncode, 1)
            self.assertEqual(run("--write").returncode, 0)
            self.assertEqual(run().returncode, 0)
            text = readme.read_text()
            self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))
            self.assertIn("| 16 | 12.00 | 11.00 | 0.92 | 30.00 | 2.50 | 12.00 | 12.00 |", text)
            self.assertIn("meets 1 of the project's 1 targets", text)

    def test_plot_shows_what_is_there(self):
        for scenarios, labels in ((SCENARIOS, {"bf16", "partial (int8)", "full int8", "oneDNN, bf16"}),
                                  (("full-int8",), {"full int8"})):
            root = xml.etree.ElementTree.fromstring(self.convert("roofline_plot.py", results(scenarios)))
            texts = {element.text for element in root.iter() if element.tag.endswith("text")}
            self.assertLessEqual(labels, texts)
            others = {"bf16", "partial (int8)", "full int8", "oneDNN, bf16"} - labels
            self.assertFalse(others & texts)
            width = float(root.get("width"))
            for element in root.iter():
                if element.tag.endswith("text"):
                    self.assertLess(float(element.get("x")), width)

    def test_wrong_arguments(self):
        self.convert("roofline_plot.py", results(("partial-kv-int8",)), expect=1)
        for script in ("performance_page.py", "roofline_plot.py"):
            done = subprocess.run([sys.executable, "-B", BENCH / script], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("Usage: " + script, done.stderr)


if __name__ == "__main__":
    unittest.main()
