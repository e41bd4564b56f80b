"""Checks that objects use no instructions beyond those of an instruction set.

Usage: objects_within_isa.py <objdump> <baseline|avx2> <object>...

baseline: what every x86-64 processor runs, and so no vector register wider than 128 bits. avx2: nothing of AVX-512 or
AMX, whose instructions begin with the EVEX prefix or name a mask or a tile. Without objdump the check cannot be made; it
says so and ends with 77.
"""

import re
import shutil
import subprocess
import sys

SKIPPED = 77
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
# An instruction as objdump shows it: its address, its bytes, its text. EVEX may follow prefixes of segment and address.
FORBIDDEN = {
    "baseline": re.compile(r"%(?:[yz]mm\d+|tmm\d|k[0-7])\b"),
    "avx2": re.compile(r"%(?:zmm\d+|[xy]mm(?:1[6-9]|[23]\d)|tmm\d|k[0-7])\b"
                       r"|^\s*[0-9a-f]+:\s+(?:(?:26|2e|36|3e|64|65|67) )*62 "),
}


def faults_of(objdump, isa, path):
    """Names each function with such an instruction once."""
    text = subprocess.run([objdump, "-d", "-C", path], check=True, capture_output=True, text=True).stdout
    function, named = "", set()
    for line in text.splitlines():
        start = FUNCTION.match(line)
        if start:
            function = start[1]
        elif FORBIDDEN[isa].search(line) and function not in named:
            named.add(function)
            yield f"{function}: {line.strip()}"


def check(objdump, isa, paths):
    return [f"{path}: {fault}" for path in paths for fault in faults_of(objdump, isa, path)]


def main():
    objdump, isa, *paths = sys.argv[1:]
    if shutil.which(objdump) is None:
        print(f"NOT CHECKED: there is no objdump ('{objdump}'); install binutils")
        return SKIPPED
    faults = check(objdump, isa, paths)
    for fault in faults:
        print(fault)
    print(f"{len(paths)} objects within {isa}, {len(faults)} faults")
    return int(bool(faults) or not paths)


if __name__ == "__main__":
    sys.exit(main())
