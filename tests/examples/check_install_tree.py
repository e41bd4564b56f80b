"""Checks an install tree.

Usage: check_install_tree.py <prefix> content
       check_install_tree.py <prefix> independent --readelf <readelf> --foreign <directory>...

content: the tree holds what is promised and nothing else.
independent: no program and no library looks for libraries outside the tree, no link leads out of it, and no text of it
names one of the foreign directories.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

CANN_LIBRARIES = ["ascendcl", "acl_rt", "nnopbase", "opapi", "opapi_transformer", "opapi_math", "opapi_nn", "c_sec"]

# What must be there.
EXPECTED = [
    "bin/mlaprolog",
    "include/mlaprolog/mlaprolog.h",
    "include/mlaprolog/mlaprolog.hpp",
    "lib/libmlaprolog.so",
    "lib/cmake/mlaprolog/mlaprologConfig.cmake",
    "lib/cmake/mlaprolog/mlaprologConfigVersion.cmake",
    "lib/cmake/mlaprolog/mlaprologTargets.cmake",
    "lib/pkgconfig/mlaprolog.pc",
    "cann/include/acl/acl.h",
    "cann/include/aclnn/acl_meta.h",
    "cann/include/aclnnop/aclnn_mla_prolog.h",
    "cann/include/aclnnop/aclnn_mla_prolog_v2_weight_nz.h",
    "cann/include/aclnnop/aclnn_mla_prolog_v3_weight_nz.h",
    "cann/lib64/libmlaprolog_cann.so",
    *(f"cann/lib64/lib{name}.so" for name in CANN_LIBRARIES),
]

# What may be there.
ALLOWED = re.compile(
    r"bin/mlaprolog"
    r"|include/mlaprolog/\w+\.(?:h|hpp)"
    r"|lib/libmlaprolog\.so[.\d]*"
    r"|lib/pkgconfig/mlaprolog\.pc"
    r"|lib/cmake/mlaprolog/mlaprolog\w+(?:-\w+)?\.cmake"
    r"|cann/include/(?:acl|aclnn|aclnnop)/(?:\w+/)*\w+\.h"
    r"|cann/lib64/lib(?:mlaprolog_cann|" + "|".join(CANN_LIBRARIES) + r")\.so"
)


def files(prefix):
    return [path for path in sorted(prefix.rglob("*")) if path.is_symlink() or not path.is_dir()]


def check_content(prefix):
    found = {path.relative_to(prefix).as_posix() for path in files(prefix)}
    faults = [f"missing: {name}" for name in EXPECTED if name not in found]
    faults += [f"unexpected: {name}" for name in sorted(found) if not ALLOWED.fullmatch(name)]
    program = prefix / "bin/mlaprolog"
    if program.exists() and not os.access(program, os.X_OK):
        faults.append("bin/mlaprolog is not executable")
    return faults


def run_paths(readelf, path):
    lines = subprocess.run([readelf, "-d", path], check=True, capture_output=True, text=True).stdout.splitlines()
    for line in lines:
        if "(RPATH)" in line or "(RUNPATH)" in line:
            yield from line[line.index("[") + 1 : line.rindex("]")].split(":")


def check_independent(prefix, readelf, foreign):
    faults = []
    for path in files(prefix):
        name = path.relative_to(prefix)
        if path.is_symlink():
            target = os.readlink(path)
            if os.path.isabs(target) or not path.resolve().is_relative_to(prefix) or not path.exists():
                faults.append(f"{name}: link to {target}")
            continue
        content = path.read_bytes()
        if content.startswith(b"\x7fELF"):
            for run_path in run_paths(readelf, path):
                if not run_path.startswith("$ORIGIN"):
                    faults.append(f"{name}: looks for libraries in '{run_path}'")
            continue
        faults += [f"{name}: names {directory}" for directory in foreign if directory.encode() in content]
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("what", choices=["content", "independent"])
    parser.add_argument("--readelf", default="readelf")
    parser.add_argument("--foreign", nargs="*", default=[])
    arguments = parser.parse_args()
    prefix = arguments.prefix.resolve()
    if arguments.what == "content":
        faults = check_content(prefix)
    else:
        faults = check_independent(prefix, arguments.readelf, arguments.foreign)
    for fault in faults:
        print(fault)
    print(f"{len(files(prefix))} files, {len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
