"""The program README shows is part of examples/first_call.cc, line by line, and the files it names exist.

    readme_program.py ROOT
"""
import pathlib
import re
import sys


def check(root):
    readme = (root / "README.md").read_text()
    faults = []
    example = (root / "examples/first_call.cc").read_text()
    blocks = re.findall(r"```cpp\n(.*?)```", readme, re.S)
    if not blocks:
        faults.append("README.md shows no program")
    for block in blocks:
        if block not in example:
            faults.append("a program in README.md is not part of examples/first_call.cc")
    for name in re.findall(r"\]\(([^)#:]+)\)", readme) + re.findall(r"(?:scripts|examples|docs)/[\w./]+\w", readme):
        if not (root / name).exists():
            faults.append(f"README.md names {name}, which does not exist")
    return faults


def main():
    faults = check(pathlib.Path(sys.argv[1]))
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
