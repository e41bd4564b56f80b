#!/usr/bin/env bash
# Makes the Python environment that the package is built and tested with, if it is not there, and prints its interpreter:
# Debian's Python with Debian's NumPy, PyTorch and pytest, and from PyPI what Debian lacks.
#
#   scripts/python_env.sh                  build/python-env
#   scripts/python_env.sh current-torch    build/python-env-torch: the current PyTorch from PyPI, which takes some gigabytes
#
# Fails, and prints no interpreter, where the packages cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."

kind="${1:-debian}"
case "$kind" in
  debian)
    environment=build/python-env
    options=(--system-site-packages)
    # Debian's PyTorch was built for Debian's NumPy, which therefore has to stay.
    numpy="$(/usr/bin/python3 -c 'import numpy; print(numpy.__version__)')"
    packages=(nanobind scikit-build-core ml_dtypes "numpy==$numpy" build)
    ;;
  current-torch)
    environment=build/python-env-torch
    options=()
    packages=(nanobind scikit-build-core ml_dtypes numpy torch pytest expecttest)
    ;;
  *) echo "usage: $0 [current-torch]" >&2; exit 2 ;;
esac

stamp="$environment/made-of"
if [ "$(cat "$stamp" 2>/dev/null)" != "${packages[*]}" ]; then
  mkdir -p build
  /usr/bin/python3 -m venv --clear "${options[@]}" "$environment" >&2
  "$environment/bin/pip" -q --disable-pip-version-check install "${packages[@]}" >&2
  echo "${packages[*]}" > "$stamp"
fi
echo "$PWD/$environment/bin/python"
