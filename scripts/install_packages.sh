#!/usr/bin/env bash
# Installs the Debian packages that are missing of those given as "command-or-file:package" pairs. Says what it does.
#
#   scripts/install_packages.sh build          what a build of the library and the command line needs
#   scripts/install_packages.sh test           what the test suite needs as well
#   scripts/install_packages.sh lint           clang-format and clang-tidy
#   scripts/install_packages.sh bench          what the benchmark needs as well: oneDNN
set -euo pipefail

build=(g++ cmake ninja-build nlohmann-json3-dev libcli11-dev libfmt-dev)
test=("${build[@]}" libgtest-dev python3 python3-numpy binutils pkgconf python3-dev python3-pytest python3-venv ccache)
# Tested where it can be had; without it the tests say that they skip.
test_extra=(python3-torch)
lint=("${test[@]}" clang-format-14 clang-tidy-14)
bench=("${build[@]}" libdnnl-dev python3)

case "${1:-}" in
  build) wanted=("${build[@]}") ;;
  test) wanted=("${test[@]}") ;;
  lint) wanted=("${lint[@]}") ;;
  bench) wanted=("${bench[@]}") ;;
  *) echo "usage: $0 build|test|lint|bench" >&2; exit 2 ;;
esac

is_missing() { ! dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; }

missing=()
for package in "${wanted[@]}"; do
  if is_missing "$package"; then missing+=("$package"); fi
done
missing_extra=()
if [ "$1" = test ]; then
  for package in "${test_extra[@]}"; do
    if is_missing "$package"; then missing_extra+=("$package"); fi
  done
fi
[ "${#missing[@]}" -gt 0 ] || [ "${#missing_extra[@]}" -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "missing packages: ${missing[*]} ${missing_extra[*]}; install them as root" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing: ${missing[*]} ${missing_extra[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get -q update >/dev/null
if [ "${#missing[@]}" -gt 0 ]; then
  "${as_root[@]}" apt-get -q install -y --no-install-recommends "${missing[@]}" >/dev/null
fi
for package in "${missing_extra[@]}"; do
  "${as_root[@]}" apt-get -q install -y --no-install-recommends "$package" >/dev/null ||
    echo "SKIPPED: $package cannot be installed here; what needs it is not tested"
done
