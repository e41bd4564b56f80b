"""Builds programs against an install tree only, the way its users do, and runs them.

Usage: run_programs.py <prefix> readme <examples>                 the commands of the examples' README, one by one
       run_programs.py <prefix> native <examples> --cc --cxx      every native example, found by pkg-config
       run_programs.py <prefix> build <examples> --cc --cxx       every example, or one, with warnings as errors
       run_programs.py <prefix> link <source> --cc --libraries    one C program, linked with these libraries only
       run_programs.py <prefix> open <source> --cc --libraries    one C program, called with each library's path
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Werror"]
EXAMPLE_LIBRARIES = ["opapi_math", "opapi_transformer", "ascendcl", "nnopbase", "c_sec"]


class Failure(Exception):
    pass


class Runner:
    def __init__(self, prefix, work):
        self.cann = prefix / "cann"
        self.pkgconfig = prefix / "lib/pkgconfig"
        self.work = work

    def run(self, command, environment=None, shell=False):
        """Runs a command without the caller's library path and shows what it prints."""
        own = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "ASCEND_HOME_PATH")}
        print("$", command if shell else " ".join(map(str, command)), flush=True)
        result = subprocess.run(
            command,
            shell=shell,
            cwd=self.work,
            env={**own, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        print(result.stdout, end="", flush=True)
        if result.returncode != 0:
            raise Failure(f"ended with {result.returncode}")

    def build(self, compiler, standard, source, libraries):
        program = self.work / (source.stem + "_program")
        self.run(
            [compiler, f"-std={standard}", *WARNINGS, source, f"-I{self.cann}/include", f"-L{self.cann}/lib64"]
            + [f"-l{name}" for name in libraries]
            + ["-o", program]
        )
        return program

    def build_native(self, compiler, standard, source):
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "mlaprolog"],
            env={**os.environ, "PKG_CONFIG_PATH": str(self.pkgconfig)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        program = self.work / (source.stem + "_program")
        self.run([compiler, f"-std={standard}", *WARNINGS, source, *flags, "-o", program])
        return program

    def start_native(self, program):
        self.run([program], {"LD_LIBRARY_PATH": str(self.pkgconfig.parent)})

    def start(self, program, *arguments):
        self.run([program, *arguments], {"LD_LIBRARY_PATH": str(self.cann / "lib64")})


def examples_in(directory):
    if directory.is_file():
        return [directory]
    sources = sorted(path for path in directory.iterdir() if path.suffix in (".c", ".cc"))
    if not sources:
        raise Failure(f"no examples in {directory}")
    return sources


def run_readme(runner, directory):
    text = (directory / "README.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, flags=re.S | re.M)
    for source in examples_in(directory):
        shutil.copy(source, runner.work)
        if not any(source.name in block for block in blocks):
            raise Failure(f"README.md has no command for {source.name}")
    for block in blocks:
        for line in block.splitlines():
            paths = {"ASCEND_HOME_PATH": str(runner.cann), "PKG_CONFIG_PATH": str(runner.pkgconfig)}
            runner.run(line, paths, shell=True)


def compilations(directory, cc, cxx):
    for source in examples_in(directory):
        compiler, standards = (cc, ["c99", "c11"]) if source.suffix == ".c" else (cxx, ["c++17", "c++20"])
        for standard in standards:
            yield compiler, standard, source


def build_all(runner, directory, cc, cxx):
    for compilation in compilations(directory, cc, cxx):
        runner.start(runner.build(*compilation, EXAMPLE_LIBRARIES))


def build_all_native(runner, directory, cc, cxx):
    for compilation in compilations(directory, cc, cxx):
        runner.start_native(runner.build_native(*compilation))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("what", choices=["readme", "build", "native", "link", "open"])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--libraries", nargs="*", default=[])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        runner = Runner(arguments.prefix.resolve(), pathlib.Path(work))
        try:
            if arguments.what == "readme":
                run_readme(runner, arguments.source)
            elif arguments.what == "build":
                build_all(runner, arguments.source, arguments.cc, arguments.cxx)
            elif arguments.what == "native":
                build_all_native(runner, arguments.source, arguments.cc, arguments.cxx)
            elif arguments.what == "link":
                runner.start(runner.build(arguments.cc, "c99", arguments.source, arguments.libraries))
            else:
                program = runner.build(arguments.cc, "c99", arguments.source, ["dl"])
                for name in arguments.libraries:
                    runner.start(program, f"lib{name}.so")
                runner.start(program, *(f"lib{name}.so" for name in arguments.libraries))
        except Failure as failure:
            print(failure)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
