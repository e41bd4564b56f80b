#!/usr/bin/env bash
# Builds the library and runs one DeepSeek-V3 layer through aclnnMlaProlog in every scenario. Needs nothing prepared:
# missing Debian packages are installed.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh build
cmake --preset release -DMLAP_BUILD_TESTS=OFF >/dev/null
cmake --build --preset release --target mlaprolog_cli
exec build/release/bin/mlaprolog demo "$@"
