"""Checks that libmlaprolog.so exports what its header declares, and that a C program uses every function of it.

Usage: native_exports.py <nm> <library> <header> <object of the C program>
"""

import pathlib
import re
import subprocess
import sys


def declared(header):
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(header).read_text(), flags=re.S)
    text = re.sub(r"^\s*#[^\n]*", "", text, flags=re.M)
    return set(re.findall(r"MLAP_API\s[^;{}()]*?\b(\w+)\(", text))


def symbols(nm, *arguments):
    lines = subprocess.run([nm, *arguments], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def main():
    nm, library, header, program = sys.argv[1:]
    promised = declared(header)
    exported = symbols(nm, "-D", "--defined-only", library)
    used = symbols(nm, "--undefined-only", program)
    faults = [f"declared but not exported: {name}" for name in sorted(promised - exported)]
    faults += [f"exported but not declared: {name}" for name in sorted(exported - promised)]
    faults += [f"never used by the C program: {name}" for name in sorted(promised - used)]
    for fault in faults:
        print(fault)
    print(f"{len(promised)} functions declared, {len(faults)} faults")
    return int(bool(faults) or not promised)


if __name__ == "__main__":
    sys.exit(main())
