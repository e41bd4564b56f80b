"""Checks that a library exports exactly the functions its headers declare.

Usage: check_exports.py <nm> <library> <header or directory>...
"""

import pathlib
import re
import subprocess
import sys

# The marks a declaration of an exported function begins with.
DECLARATION = re.compile(r'(?:ACL_FUNC_VISIBILITY|ACLNN_API|visibility\("default"\)\)\))\s[^;{}()#]*?\b(\w+)\(')


def declared(path):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)
    text = re.sub(r"^\s*#\s*define[^\n]*", "", text, flags=re.M)
    return set(DECLARATION.findall(text))


def main():
    nm, library, *sources = sys.argv[1:]
    expected = set()
    for source in map(pathlib.Path, sources):
        for header in sorted(source.rglob("*.h")) if source.is_dir() else [source]:
            expected |= declared(header)
    lines = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in lines.splitlines()}
    for name in sorted(expected - exported):
        print(f"declared but not exported: {name}")
    for name in sorted(exported - expected):
        print(f"exported but not declared: {name}")
    print(f"{len(expected)} functions declared, {len(exported)} exported")
    return int(expected != exported)


if __name__ == "__main__":
    sys.exit(main())
