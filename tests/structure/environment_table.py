"""Checks that docs/environment.md lists exactly the environment variables MLAP_* that the code knows.

Usage: environment_table.py <repository>
"""

import pathlib
import re
import sys

NAME = r"MLAP_[A-Z0-9_]*[A-Z0-9]"

# How each language mentions an environment variable; group 1 is its name.
MENTIONS = {
    "cxx": [rf'"({NAME})"'],
    "python": [rf"""environ(?:\.get\(|\.pop\(|\[)\s*["']({NAME})["']"""],
    "shell": [rf"\$\{{?({NAME})\b", rf"(?<![-\w])({NAME})=", rf"\b(?:export|unset)\s+({NAME})\b"],
    "cmake": [rf"ENV\{{({NAME})\}}", rf'"({NAME})=', rf"-E env (?:\S+ )*({NAME})=", rf"--unset=({NAME})"],
}
LANGUAGES = {".c": "cxx", ".cc": "cxx", ".h": "cxx", ".py": "python", ".sh": "shell", ".cmake": "cmake"}


def language_of(path):
    if path.name == "CMakeLists.txt":
        return "cmake"
    if path.suffix == "" and path.read_bytes()[:2] == b"#!":
        return "shell"
    return LANGUAGES.get(path.suffix)


def variables_in_code(root):
    """The variables, each with the first file that mentions it."""
    # Texts of the library quote its public constants, too.
    constants = set()
    for header in (root / "include").rglob("*.h"):
        without_comments = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(), flags=re.S)
        constants |= set(re.findall(NAME, without_comments))
    constants |= set(re.findall(rf"(?:option|set)\(({NAME})\b", (root / "CMakeLists.txt").read_text()))
    found = {}
    for top in ("src", "tools", "python", "scripts", "tests", ".ci"):
        for path in sorted((root / top).rglob("*")):
            # This directory's own tests mention made-up names.
            if not path.is_file() or pathlib.Path(__file__).parent.resolve() == path.parent.resolve():
                continue
            for pattern in MENTIONS.get(language_of(path), []):
                for name in re.findall(pattern, path.read_text()):
                    found.setdefault(name, path.relative_to(root).as_posix())
    return {name: place for name, place in found.items() if name not in constants}


def variables_in_table(text):
    return set(re.findall(rf"^\|\s*`({NAME})`", text, flags=re.M))


def check(root):
    document = root / "docs/environment.md"
    if not document.is_file():
        return ["docs/environment.md is missing"]
    listed = variables_in_table(document.read_text())
    known = variables_in_code(root)
    faults = [f"{name} ({known[name]}) is not in the table" for name in sorted(set(known) - listed)]
    return faults + [f"{name} is in the table, but no code knows it" for name in sorted(listed - set(known))]


def main():
    faults = check(pathlib.Path(sys.argv[1]))
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
