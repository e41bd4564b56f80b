#!/usr/bin/env bash
# Sends random descriptors to the operator's first steps, in the build with the address and undefined-behaviour sanitizers.
#
#   scripts/fuzz.sh [minutes]      10 unless given; seeds that no run before has had
#
# A failure prints its seed: MLAP_FUZZ_SEED=<seed> MLAP_FUZZ_ITERATIONS=1 makes the tests begin with it.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes="${1:-10}"
filter='DescriptorFuzz.*'

scripts/install_packages.sh test
cmake --preset asan -DMLAP_BUILD_TESTS=ON >/dev/null
cmake --build --preset asan --target mla_prolog_test -- -j "$(nproc)"
tests="build/asan/tests/mla_prolog/mla_prolog_test"
# The time is each test's: those of the list that stop when it is over.
num_tests=4
export MLAP_SOC=ascend910b MLAP_FUZZ_SECONDS=$((minutes * 60 / num_tests)) MLAP_FUZZ_SEED="${MLAP_FUZZ_SEED:-$(date +%s)000000}"
echo "seeds from $MLAP_FUZZ_SEED, $MLAP_FUZZ_SECONDS seconds for each of $num_tests tests"
"$tests" --gtest_filter="$filter"
