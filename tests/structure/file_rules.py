"""Checks the rules every file of the repository follows.

Usage: file_rules.py <repository>

Looks at the files that git tracks or would track; without git, at all files outside of build directories.
"""

import collections
import pathlib
import re
import subprocess
import sys

LINES_AT_MOST = 1000
LINES_WORTH_A_LOOK = 600

CODE_SUFFIXES = {".c", ".cc", ".h", ".hpp", ".inc", ".py", ".sh", ".cmake", ".map", ".in"}
CXX_SUFFIXES = {".c", ".cc", ".h", ".hpp", ".inc"}
NAMES_IN_EVERY_DIRECTORY = {"CMakeLists.txt", "README.md", "__init__.py"}

# Written so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home)/|\bshared[/]spec\b")
UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|X[X]X|HA[C]K)\b")


def repository_files(root):
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        print("git does not know this directory; looking at all files outside of build directories")
        skipped = {"build", ".git", "__pycache__"}
        paths = (path.relative_to(root) for path in root.rglob("*"))
        names = [path.as_posix() for path in paths if not skipped & set(path.parts)]
    return sorted(name for name in set(names) if name and (root / name).is_file())


def text_of(path):
    """The file's text, or None if it is not text."""
    content = path.read_bytes()
    if path.suffix == ".safetensors" or b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def is_code(path):
    return path.suffix in CODE_SUFFIXES or path.name == "CMakeLists.txt" or path.parts[0] == ".ci"


def faults_of_text(name, text):
    path = pathlib.PurePosixPath(name)
    if text and not text.endswith("\n"):
        yield f"{name}: does not end with a line feed"
    for number, line in enumerate(text.splitlines(), 1):
        if MACHINE_PATH.search(line):
            yield f"{name}:{number}: names a path of one machine: {line.strip()}"
        if is_code(path) and UNFINISHED.search(line):
            yield f"{name}:{number}: unfinished: {line.strip()}"
        if path.suffix in CXX_SUFFIXES and "\t" in line:
            yield f"{name}:{number}: a tab"
    num_lines = len(text.splitlines())
    if is_code(path) and num_lines > LINES_AT_MOST:
        yield f"{name}: {num_lines} lines, at most {LINES_AT_MOST} are wanted"


def faults_of_names(names):
    places = collections.defaultdict(list)
    for name in names:
        path = pathlib.PurePosixPath(name)
        if path.parts[0] in ("src", "tools", "tests") and path.name not in NAMES_IN_EVERY_DIRECTORY:
            places[path.name].append(name)
    for paths in places.values():
        if len(paths) > 1:
            yield "one name for several files: " + ", ".join(paths)


def check(root):
    names = repository_files(root)
    faults = list(faults_of_names(names))
    for name in names:
        text = text_of(root / name)
        if text is None:
            continue
        faults += faults_of_text(name, text)
        num_lines = len(text.splitlines())
        if is_code(pathlib.PurePosixPath(name)) and LINES_WORTH_A_LOOK < num_lines <= LINES_AT_MOST:
            print(f"warning: {name} has {num_lines} lines; above {LINES_WORTH_A_LOOK}, consider splitting it")
    return faults


def main():
    root = pathlib.Path(sys.argv[1])
    faults = check(root)
    for fault in faults:
        print(fault)
    print(f"{len(repository_files(root))} files, {len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
