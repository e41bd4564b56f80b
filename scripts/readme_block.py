#!/usr/bin/env python3
"""Checks that a part of README is what a program prints.

Usage: readme_block.py <README.md> <name> [--write] -- <program> [<argument>...]

The part stands between the markers `<!-- What <name> prints -->` and `<!-- End of what <name> prints -->`. --write puts
the program's text there instead.
"""

import pathlib
import subprocess
import sys


def main():
    arguments = sys.argv[1:]
    if "--" not in arguments:
        sys.exit(__doc__.strip())
    at = arguments.index("--")
    (path, name, *options), program = arguments[:at], arguments[at + 1:]
    if options not in ([], ["--write"]) or not program:
        sys.exit(__doc__.strip())
    readme = pathlib.Path(path)
    printed = subprocess.run(program, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
    text = readme.read_text(encoding="utf-8")
    begin, end = f"<!-- What {name} prints -->\n", f"<!-- End of what {name} prints -->\n"
    if text.count(begin) != 1 or text.count(end) != 1:
        print(f"{readme}: expected the markers of what {name} prints once")
        return 1
    before, rest = text.split(begin)
    found, after = rest.split(end)
    if options == ["--write"]:
        readme.write_text(before + begin + printed + end + after, encoding="utf-8")
        return 0
    if found != printed:
        print(f"{readme}: what {name} prints is not current; run this with --write. Expected:\n{printed}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
