"""Checks that README's tables of what is supported are those that the library's own tables make.

Usage: readme_table.py <README.md> <support_table program> [--write]     --write puts them there instead
"""

import pathlib
import subprocess
import sys

BEGIN = "<!-- What support_table prints -->\n"
END = "<!-- End of what support_table prints -->\n"


def main():
    readme = pathlib.Path(sys.argv[1])
    printed = subprocess.run([sys.argv[2]], check=True, stdout=subprocess.PIPE, text=True).stdout
    text = readme.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        print(f"{readme}: expected the markers of the tables once")
        return 1
    before, rest = text.split(BEGIN)
    found, after = rest.split(END)
    if sys.argv[3:] == ["--write"]:
        readme.write_text(before + BEGIN + printed + END + after)
        return 0
    if found != printed:
        print(f"{readme}: the tables are not current; run this with --write. Expected:\n{printed}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
