#!/usr/bin/env bash
# Checks formatting and the clang-tidy allow-list over all sources of the project.
#
#   scripts/lint.sh           check
#   scripts/lint.sh --fix     rewrite the formatting
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh lint
mapfile -t sources < <(git ls-files '*.cc' '*.h' '*.c' '*.hpp')
if [ "${1:-}" = --fix ]; then
  clang-format-14 -i "${sources[@]}"
  exit 0
fi
clang-format-14 --dry-run --Werror "${sources[@]}"
# A command for each source, not for several at a time.
cmake --preset release -B build/lint -DMLAP_BUILD_TESTS=ON -DCMAKE_UNITY_BUILD=OFF >/dev/null
mapfile -t units < <(git ls-files 'src/*.cc' 'tools/*.cc')
printf '%s\n' "${units[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy-14 -p build/lint --quiet --extra-arg=-Wno-unknown-warning-option --warnings-as-errors='*' 2>/dev/null
echo "lint: ${#sources[@]} files formatted, ${#units[@]} units tidy"
