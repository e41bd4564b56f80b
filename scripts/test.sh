#!/usr/bin/env bash
# Builds the library and runs the test suite. Needs nothing prepared: missing Debian packages are installed.
#
#   scripts/test.sh                 the optimised build, with the machine's best kernels and with the scalar ones
#   scripts/test.sh asan [tsan]     the build(s) with sanitizers instead
#   scripts/test.sh all             all of these
#
# With ccache, what was compiled before, in this folder or in another clone, is not compiled again.
set -euo pipefail
cd "$(dirname "$0")/.."

presets=("${@:-release}")
[ "${presets[*]}" != all ] || presets=(asan tsan release)

scripts/install_packages.sh test
# An interpreter takes no library built with the thread sanitizer.
python_options=()
if python="$(scripts/python_env.sh)"; then
  python_options=(-DMLAP_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$python")
else
  echo "SKIPPED: the Python package is not tested, because its environment cannot be made here"
fi
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  # A source in another clone is the same source.
  export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
fi
jobs=$(nproc)
for preset in "${presets[@]}"; do
  echo "== $preset: build"
  options=(-DMLAP_BUILD_TESTS=ON)
  # The command line has no threads of its own to speak of.
  if [ "$preset" = tsan ]; then options+=(-DMLAP_BUILD_TOOLS=OFF); else options+=("${python_options[@]}"); fi
  cmake --preset "$preset" "${options[@]}" >/dev/null
  cmake --build --preset "$preset" -- -j "$jobs"
done
for preset in "${presets[@]}"; do
  if [ "$preset" = release ]; then
    echo "== $preset: the suites above the kernels, with the scalar ones"
    MLAP_MAX_ISA=scalar ctest --preset "$preset" -j "$jobs" -R '^(mla_prolog|tools|api|examples|python\.numpy)'
  fi
  if [ "$preset" = tsan ]; then
    echo "== $preset: the suites with threads"
    # Not those about descriptors and plain values, where threads do nothing that they do not do in the others.
    ctest --preset "$preset" -j "$jobs" -R '^(engine\.(ThreadPool|.*Invariance)|cann_runtime|mla_prolog|api\.Handles)' \
      -E '^mla_prolog\.(Contract|DescriptorFuzz|PlainFormula|View|Soc)'
    continue
  fi
  echo "== $preset: the whole suite"
  ctest --preset "$preset" -j "$jobs"
done
