#!/usr/bin/env bash
# Builds and runs the benchmark: the operator against the machine's own limits and against oneDNN. Needs nothing prepared:
# missing Debian packages are installed.
#
#   scripts/bench.sh [--quick]      below 2 minutes
#   scripts/bench.sh --full         below 15 minutes
#   scripts/bench.sh --publish      --full and shorter runs without AMX, with AVX2 and on one thread; writes docs/performance.* and README's figures
#
# What follows goes to mlaprolog_bench: --heads, --tokens, --scenario, --json, ... MLAP_NUM_THREADS and MLAP_MAX_ISA apply.
set -euo pipefail
cd "$(dirname "$0")/.."

mode="${1:---quick}"
case "$mode" in
  --quick | --full | --publish) [ "$#" -eq 0 ] || shift ;;
  *) mode=--quick ;;
esac

scripts/install_packages.sh bench
cmake --preset release -DMLAP_BUILD_BENCH=ON -DMLAP_BUILD_TESTS=OFF >/dev/null
cmake --build --preset release --target mlaprolog_bench
bench=build/release/bin/mlaprolog_bench
case "$mode" in
  --quick) exec "$bench" "$@" ;;
  --full) exec "$bench" --full "$@" ;;
esac

"$bench" --full --json docs/performance.json "$@"
python3 bench/roofline_plot.py docs/performance.json docs/performance.svg
# The same kind of run with fewer points: without tiles, with 256-bit vectors, and on one thread.
few=(--no-peer --heads 128 --tokens 1,2,4,16,64,256 --scenario non-quant --seconds 8)
MLAP_MAX_ISA=avx512bf16 "$bench" "${few[@]}" --json docs/performance_avx512bf16.json
MLAP_MAX_ISA=avx2 "$bench" "${few[@]}" --json docs/performance_avx2.json
MLAP_NUM_THREADS=1 "$bench" "${few[@]}" --json docs/performance_one_thread.json
python3 bench/performance_page.py docs/performance.json docs/performance.md docs/performance_avx512bf16.json docs/performance_avx2.json docs/performance_one_thread.json
python3 scripts/readme_block.py README.md bench/readme_figures.py --write -- python3 -B bench/readme_figures.py docs/performance.json
echo "written: docs/performance.md, docs/performance*.json, docs/performance.svg, README.md"
