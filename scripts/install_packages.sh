#!/usr/bin/env bash
# Installs the Debian packages that are missing of those given as "command-or-file:package" pairs. Says what it does.
#
#   scripts/install_packages.sh build          what a build of the library and the command line needs
#   scripts/install_packages.sh test           what the test suite needs as well
#   scripts/install_packages.sh lint           clang-format and clang-tidy
#   scripts/install_packages.sh bench          what the benchmark needs as well: oneDNN
set -euo pipefail

build=(g++ cmake ninja-build nlohmann-json3-dev libcli11-dev libfmt-dev)
test=("${build[@]}" libgtest-dev python3 python3-numpy binutils pkgconf)
lint=("${test[@]}" clang-format-14 clang-tidy-14)
bench=("${build[@]}" libdnnl-dev python3)

case "${1:-}" in
  build) wanted=("${build[@]}") ;;
  test) wanted=("${test[@]}") ;;
  lint) wanted=("${lint[@]}") ;;
  bench) wanted=("${bench[@]}") ;;
  *) echo "usage: $0 build|test|lint|bench" >&2; exit 2 ;;
esac

missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "missing packages: ${missing[*]}; install them as root" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get -q update >/dev/null
"${as_root[@]}" apt-get -q install -y --no-install-recommends "${missing[@]}" >/dev/null
