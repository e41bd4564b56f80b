"""Compiles each header of include/mlaprolog alone, in every language version it promises, with warnings as errors.

Usage: native_headers.py <include> <C compiler> <C++ compiler>
"""

import pathlib
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wstrict-prototypes", "-Wconversion", "-pedantic", "-Werror"]
C_VERSIONS = ["c99", "c11"]
CXX_VERSIONS = {".h": ["c++11", "c++17", "c++20"], ".hpp": ["c++17", "c++20"]}


def compile_alone(compiler, language, standard, include, name):
    warnings = [flag for flag in WARNINGS if language == "c" or flag != "-Wstrict-prototypes"]
    # Twice, so that the include guard is tested, too.
    text = f"#include <{name}>\n#include <{name}>\nint main(void) {{ return 0; }}\n"
    command = [compiler, f"-std={standard}", *warnings, f"-I{include}", "-fsyntax-only", "-x", language, "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    if result.returncode != 0:
        print(f"{name} does not compile as {standard}:\n{result.stderr}")
    return result.returncode == 0


def main():
    include, cc, cxx = sys.argv[1:]
    directory = pathlib.Path(include)
    headers = sorted(path.relative_to(directory).as_posix() for path in directory.glob("mlaprolog/*"))
    ok = bool(headers)
    for name in headers:
        for standard in CXX_VERSIONS[pathlib.PurePath(name).suffix]:
            ok &= compile_alone(cxx, "c++", standard, include, name)
        if name.endswith(".h"):
            for standard in C_VERSIONS:
                ok &= compile_alone(cc, "c", standard, include, name)
    print(f"{len(headers)} headers")
    return int(not ok)


if __name__ == "__main__":
    sys.exit(main())
