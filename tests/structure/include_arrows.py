"""Checks that #include lines follow the arrows between the directories.

Usage: include_arrows.py <repository>

Every file belongs to the most specific of the parts below. An included file that exists in the repository must match
one of the part's patterns; all others are the system's or another project's.
"""

import pathlib
import re
import sys

CANN_HEADERS = "include/cann/**"
NATIVE_HEADERS = "include/mlaprolog/**"

# part: what its files may include, as paths of the repository; '*' stands for one path component, '**' for the rest.
ARROWS = {
    "src/base": ["src/base/**"],
    "src/reference": ["src/reference/**", "src/base/**"],
    # A kernel's directory sees itself, what all kernels share, and the leaf types.
    "src/kernels": ["src/kernels/**", "src/base/**"],
    "src/kernels/gemm": ["src/kernels/gemm/**", "src/kernels/vector/**", "src/kernels/*", "src/base/**"],
    "src/kernels/quantize": ["src/kernels/quantize/**", "src/kernels/vector/**", "src/kernels/*", "src/base/**"],
    "src/kernels/rms_norm": ["src/kernels/rms_norm/**", "src/kernels/vector/**", "src/kernels/*", "src/base/**"],
    "src/kernels/rope": ["src/kernels/rope/**", "src/kernels/vector/**", "src/kernels/*", "src/base/**"],
    "src/kernels/vector": ["src/kernels/vector/**", "src/base/**"],
    "src/cpu": ["src/cpu/**", "src/kernels/registration.h", "src/kernels/kernel_table.h", "src/base/**"],
    "src/parallel": ["src/parallel/**", "src/base/**"],
    # The core receives its kernels in a table: it neither registers any nor looks at the CPU.
    "src/core": ["src/core/**", "src/parallel/**", "src/kernels/kernel_table.h", "src/kernels/*/*", "src/base/**"],
    # What devices accept, as data: the CANN interface keeps to it, the native one answers questions about it.
    "src/limits": ["src/limits/**", "src/base/**"],
    "src/api": ["src/api/**", "src/core/**", "src/cpu/**", "src/reference/**", "src/parallel/**", "src/limits/**",
                "src/base/**", NATIVE_HEADERS],
    "src/cann/runtime": ["src/cann/runtime/**", CANN_HEADERS, NATIVE_HEADERS],
    "src/cann/ops": ["src/cann/**", "src/core/**", "src/cpu/**", "src/parallel/**", "src/limits/**", "src/base/**",
                     CANN_HEADERS, NATIVE_HEADERS],
    "include/cann": [CANN_HEADERS],
    "include/mlaprolog": [NATIVE_HEADERS],
    "bench": ["bench/**", "tools/**", CANN_HEADERS, NATIVE_HEADERS],
    "tools": ["tools/**", CANN_HEADERS, NATIVE_HEADERS],
    "python/src": ["python/src/**", NATIVE_HEADERS],
    "tools/safetensors": ["tools/safetensors/**"],
    "examples": [CANN_HEADERS],
    "examples/native": [NATIVE_HEADERS],
}

# Where the compiler looks for an included file, after the directory of the including one.
SEARCH_PATH = ["src", "include", "include/cann", "tools", "tools/safetensors", "bench", "tests"]

SUFFIXES = {".c", ".cc", ".h", ".hpp", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)

# Public headers see nothing but these of the outside.
STANDARD_HEADERS = {
    "stdbool.h", "stddef.h", "stdint.h", "stdlib.h",
    "array", "cstddef", "cstdint", "initializer_list", "memory", "stdexcept", "string", "string_view", "utility", "vector",
}  # fmt: skip

# ISA-specific files see no header whose inline functions other files of the program may also instantiate.
ISA_FILE = re.compile(r"_(?:avx\w*|amx\w*|neon\w*|sve\w*)\.(?:cc|h)$")
ISA_HEADERS = {"immintrin.h", "arm_neon.h", "arm_sve.h", "cstdint", "cstring", "cstddef"}


def matches(path, pattern):
    regex = re.escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
    return re.fullmatch(regex, path) is not None


def part_of(path):
    parts = [part for part in ARROWS if path.startswith(part + "/")]
    return max(parts, key=len, default=None)


def resolve(root, path, name):
    """The included file as a path of the repository, or None if it is not one."""
    for directory in [path.parent, *(root / place for place in SEARCH_PATH)]:
        candidate = directory / name
        if candidate.is_file():
            return candidate.resolve().relative_to(root.resolve()).as_posix()
    return None


def faults_of(root, path):
    name = path.relative_to(root).as_posix()
    part = part_of(name)
    if part is None:
        yield f"{name}: belongs to no part that {pathlib.Path(__file__).name} knows; add its arrows"
        return
    is_public = part.startswith("include/")
    for mark, included in INCLUDE.findall(path.read_text()):
        if ".." in included.split("/"):
            yield f"{name}: includes {included} through '..'"
        target = resolve(root, path, included)
        if target is not None:
            if not any(matches(target, pattern) for pattern in ARROWS[part]):
                yield f"{name}: {part} must not include {target}"
            continue
        if mark == '"':
            yield f'{name}: "{included}" is not a file of the repository; other projects\' files stand in <>'
        if is_public and included not in STANDARD_HEADERS:
            yield f"{name}: a public header must not include <{included}>"
        if part.startswith("src/kernels") and ISA_FILE.search(name) and included not in ISA_HEADERS:
            yield f"{name}: an ISA-specific file must not include <{included}>"


def sources(root):
    for top in ("src", "include", "tools", "bench", "examples", "python"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path


def check(root):
    return [fault for path in sources(root) for fault in faults_of(root, path)]


def main():
    root = pathlib.Path(sys.argv[1])
    faults = check(root)
    for fault in faults:
        print(fault)
    print(f"{sum(1 for _ in sources(root))} files, {len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
