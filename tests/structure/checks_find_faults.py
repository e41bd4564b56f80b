"""Shows each check of this directory a faulty input and expects it to find the fault.

Usage: checks_find_faults.py <C++ compiler> <nm> <readelf> <objdump> <processor>
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import environment_table
import file_rules
import include_arrows
import isa_object_is_clean
import objects_within_isa

CXX, NM, READELF, OBJDUMP, PROCESSOR = sys.argv[1:6]


class MadeUpTree(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def compile(self, name, text, *flags):
        source, target = self.write(name, text), self.root / (name + ".o")
        subprocess.run([CXX, "-std=c++17", *flags, "-c", source, "-o", target], check=True)
        return target

    def expect_fault(self, faults, text):
        self.assertTrue(any(text in fault for fault in faults), f"'{text}' is not among {faults}")


class IncludeArrows(MadeUpTree):
    def setUp(self):
        super().setUp()
        for name in ("base/bf16.h", "core/plan.h", "cpu/isa.h", "kernels/registration.h", "kernels/kernel_table.h",
                     "kernels/gemm/gemm.h", "kernels/rope/rope.h", "cann/ops/checks.h"):
            self.write("src/" + name, "")
        self.write("include/mlaprolog/mlaprolog.h", "#include <stdint.h>\n")
        self.write("include/cann/acl/acl.h", "")

    def faults(self, name, *included):
        self.write(name, "".join(f"#include {header}\n" for header in included))
        return include_arrows.check(self.root)

    def test_a_tree_in_order(self):
        self.assertEqual(self.faults("src/core/run.cc", '"core/plan.h"', '"kernels/kernel_table.h"', "<vector>",
                                     '"kernels/gemm/gemm.h"'), [])

    def test_upward_arrows(self):
        for name, header in [
            ("src/base/leaf.cc", "core/plan.h"),
            ("src/reference/spec.cc", "core/plan.h"),
            ("src/core/run.cc", "cpu/isa.h"),
            ("src/core/table.cc", "kernels/registration.h"),
            ("src/kernels/gemm/gemm_scalar.cc", "kernels/rope/rope.h"),
            ("src/cann/runtime/stream.cc", "cann/ops/checks.h"),
            ("src/cann/runtime/number.cc", "base/bf16.h"),
            ("src/api/native.cc", "acl/acl.h"),
            ("tools/demo.cc", "base/bf16.h"),
            ("examples/demo.cc", "mlaprolog/mlaprolog.h"),
            ("include/mlaprolog/wrapper.hpp", "acl/acl.h"),
        ]:
            with self.subTest(name=name):
                self.expect_fault(self.faults(name, f'"{header}"'), f"{name}: ")
                (self.root / name).unlink()

    def test_headers_of_the_system(self):
        self.expect_fault(self.faults("include/mlaprolog/wrapper.hpp", "<iostream>"), "<iostream>")
        self.expect_fault(self.faults("src/kernels/rope/rope_avx2.cc", "<algorithm>"), "<algorithm>")
        self.expect_fault(self.faults("src/core/run.cc", '"../cpu/isa.h"'), "..")
        self.expect_fault(self.faults("src/core/run.cc", '"core/missing.h"'), "core/missing.h")
        self.expect_fault(self.faults("src/elsewhere/file.cc"), "belongs to no part")


class FileRules(MadeUpTree):
    def test_faults_of_a_text(self):
        for name, text in [
            ("src/a.cc", "int a;"),
            ("src/a.cc", "\tint a;\n"),
            ("src/a.cc", "// TO" "DO later\n"),
            ("docs/a.md", "see /wo" "rk/main\n"),
            ("docs/a.md", "see shared" "/spec\n"),
            ("src/a.cc", "\n" * 1001),
        ]:
            with self.subTest(text=text[:20]):
                self.assertEqual(len(list(file_rules.faults_of_text(name, text))), 1)
        for name, text in [("src/a.cc", "int a;\n"), ("docs/a.md", "https://example.org/work/a\n"), ("src/a.cc", "")]:
            self.assertEqual(list(file_rules.faults_of_text(name, text)), [])

    def test_equal_names(self):
        self.expect_fault(file_rules.faults_of_names(["src/a/x.h", "tests/x.h"]), "src/a/x.h, tests/x.h")
        self.assertEqual(list(file_rules.faults_of_names(["src/a/README.md", "tests/README.md", "docs/x.h"])), [])


class EnvironmentTable(MadeUpTree):
    def test_both_directions(self):
        self.write("CMakeLists.txt", "option(MLAP_OPTION)\n")
        self.write("include/mlaprolog.h", "enum { MLAP_CONSTANT }; /* MLAP_IN_CXX */\n")
        self.write("src/a.cc", 'getenv("MLAP_IN_CXX"); Text("MLAP_CONSTANT");\n')
        self.write("scripts/a.sh", 'cmake -DMLAP_OPTION=ON; echo "${MLAP_IN_SHELL:-1}"\n')
        self.write("tests/CMakeLists.txt", 'set(x ENVIRONMENT "MLAP_IN_CMAKE=1")\n')
        self.write("docs/environment.md", "| `MLAP_IN_CXX` | x |\n| `MLAP_STALE` | x |\n")
        faults = environment_table.check(self.root)
        self.expect_fault(faults, "MLAP_IN_SHELL")
        self.expect_fault(faults, "MLAP_IN_CMAKE")
        self.expect_fault(faults, "MLAP_STALE")
        self.assertEqual(len(faults), 3, faults)


class Objects(MadeUpTree):
    CLEAN = "namespace mlap { struct KernelTable; void UseRopeAvx2(KernelTable*) {} static int x; }\n"

    def faults(self, text):
        return isa_object_is_clean.check(NM, READELF, "avx2", [self.compile("rope_avx2.cc", text)])

    def test_a_clean_object(self):
        self.assertEqual(self.faults(self.CLEAN), [])

    def test_dirty_objects(self):
        inline = "inline int Twice(int x) { return 2 * x; } int (*twice)(int) = Twice;"
        self.expect_fault(self.faults(self.CLEAN + inline), "weak symbol Twice")
        initialiser = "int Seed(); static volatile int seed = Seed();"
        self.expect_fault(self.faults(self.CLEAN + initialiser), "static initialiser")
        self.expect_fault(self.faults(self.CLEAN + "void Rope() {}"), "global symbol Rope")
        self.expect_fault(self.faults("namespace mlap { struct KernelTable; void UseRopeScalar(KernelTable*) {} }"),
                          "global symbol mlap::UseRopeScalar")

    @unittest.skipUnless(PROCESSOR in ("x86_64", "AMD64") and shutil.which(OBJDUMP), "needs x86 and objdump")
    def test_wide_registers(self):
        text = "void Sum(const float* x, float* y) { for (int i = 0; i < 64; ++i) y[i] += x[i]; }\n"
        ternary = "void Fold(int* x, const int* y) { for (int i = 0; i < 8; ++i) x[i] = (x[i] & y[i]) | ~x[i]; }\n"
        narrow = self.compile("a.cc", text, "-O3")
        avx2 = self.compile("b.cc", text, "-O3", "-mavx2")
        wide = self.compile("c.cc", text, "-O3", "-mavx512f", "-mprefer-vector-width=512")
        # Only the prefix gives a ternary operation on low registers away.
        short = self.compile("d.cc", ternary, "-O3", "-mavx512vl", "-mprefer-vector-width=256")
        self.assertEqual(objects_within_isa.check(OBJDUMP, "baseline", [narrow]), [])
        self.assertEqual(objects_within_isa.check(OBJDUMP, "avx2", [narrow, avx2]), [])
        for isa, fault in (("baseline", avx2), ("baseline", wide), ("avx2", wide)):
            self.expect_fault(objects_within_isa.check(OBJDUMP, isa, [fault]), "Sum")
        self.expect_fault(objects_within_isa.check(OBJDUMP, "avx2", [short]), "Fold")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
