"""Checks that objects that any CPU runs use no vector registers beyond the baseline.

Usage: baseline_objects.py <objdump> <object>...

Without objdump the check cannot be made; it says so and ends with 77.
"""

import re
import shutil
import subprocess
import sys

SKIPPED = 77
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
WIDE_REGISTER = re.compile(r"%(?:[yz]mm\d+|tmm\d|k[0-7])\b")


def faults_of(objdump, path):
    """Names each function with such an instruction once."""
    text = subprocess.run([objdump, "-d", "-C", path], check=True, capture_output=True, text=True).stdout
    function, named = "", set()
    for line in text.splitlines():
        start = FUNCTION.match(line)
        if start:
            function = start[1]
        elif WIDE_REGISTER.search(line) and function not in named:
            named.add(function)
            yield f"{function}: {line.strip()}"


def check(objdump, paths):
    return [f"{path}: {fault}" for path in paths for fault in faults_of(objdump, path)]


def main():
    objdump, *paths = sys.argv[1:]
    if shutil.which(objdump) is None:
        print(f"NOT CHECKED: there is no objdump ('{objdump}'); install binutils")
        return SKIPPED
    faults = check(objdump, paths)
    for fault in faults:
        print(fault)
    print(f"{len(paths)} objects, {len(faults)} faults")
    return int(bool(faults) or not paths)


if __name__ == "__main__":
    sys.exit(main())
