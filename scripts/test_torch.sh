#!/usr/bin/env bash
# Tests the PyTorch operators with the current PyTorch of PyPI as well: opcheck, torch.compile, the 8-bit float types. Needs
# nothing prepared; the first run downloads PyTorch.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh test
python="$(scripts/python_env.sh current-torch)"
cmake -S . -B build/current-torch -G Ninja -DMLAP_BUILD_PYTHON=ON -DMLAP_BUILD_TESTS=OFF -DMLAP_BUILD_TOOLS=OFF -DMLAP_BUILD_CANN=OFF \
  -DPython_EXECUTABLE="$python" >/dev/null
cmake --build build/current-torch --target mlap_python
export PYTHONPATH="$PWD/build/current-torch/python"
"$python" -m pytest -q -rs -p no:cacheprovider tests/python "$@"
"$python" bench/torch_call_overhead.py || echo "the overhead is above its target, or the machine is busy"
