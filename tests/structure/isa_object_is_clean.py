"""Checks that the objects of one ISA leak nothing into the rest of the program.

Usage: isa_object_is_clean.py <nm> <readelf> <isa> <object>...

A weak symbol may be the copy that the linker keeps for everybody, a static initialiser runs before any look at the CPU.
The only names an object may define for others are its registration functions, Use<Operation><Isa>.
"""

import re
import subprocess
import sys


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def faults_of(nm, readelf, isa, path):
    for line in output_of(nm, "-C", "--defined-only", path).splitlines():
        _, kind, name = line.split(maxsplit=2)
        if kind in "VWvwu":
            yield f"weak symbol {name}"
        elif kind.isupper():
            function = re.fullmatch(r"mlap::(Use\w+)\(mlap::KernelTable\*\)", name)
            if function is None or not function[1].lower().endswith(isa.replace("_", "")):
                yield f"global symbol {name}"
    for section in re.findall(r"\s(\.(?:init_array|ctors|preinit_array)\S*)", output_of(readelf, "-SW", path)):
        yield f"static initialiser in {section}"


def check(nm, readelf, isa, paths):
    return [f"{path}: {fault}" for path in paths for fault in faults_of(nm, readelf, isa, path)]


def main():
    nm, readelf, isa, *paths = sys.argv[1:]
    faults = check(nm, readelf, isa, paths)
    for fault in faults:
        print(fault)
    print(f"{len(paths)} objects of {isa}, {len(faults)} faults")
    return int(bool(faults) or not paths)


if __name__ == "__main__":
    sys.exit(main())
