// Prints one line per call of a fixed list: its sizes and a hash of everything it wrote. Run with different
// environments and compared by compare_digests.cmake.
#include <cstdio>

#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

// FNV-1a.
uint64_t HashOf(const std::vector<std::vector<uint8_t>>& written) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const auto& bytes : written) {
    for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001B3u;
  }
  return hash;
}

int PrintDigests() {
  const ScopedSoc soc("none");
  if (aclrtSetDevice(0) != 0) return 1;
  for (const Scenario& scenario : AllScenarios()) {
    for (const char* mode : ModesOf(scenario)) {
      for (const int64_t tokens : {1, 2, 5, 16, 17, 63, 130}) {
        Config config = MediumConfig(scenario, mode);
        config.cache_mode == "BSND" ? config.SetBatchSeq(1, tokens) : config.SetFused(tokens);
        // Odd head counts and more heads than threads are both cut differently.
        config.heads = tokens % 2 == 1 ? 5 : 10;
        PrologCall call(config);
        call.Allocate();
        if (tokens > 4 && !config.IsTokens()) {
          const int64_t num_indices = call[kCacheIndex].NumElements();
          call.slots()[num_indices - 1] = -1;
          if (tokens > 5) call.slots()[num_indices - 2] = call.slots()[0];
        }
        const RunResult result = call.RunQuick(nullptr);
        if (!result.Ok()) {
          std::fprintf(stderr, "%s: phase 1 %d, phase 2 %d, synchronisation %d: %s\n", config.Name().c_str(),
                       result.phase1, result.phase2, result.sync, result.text.c_str());
          return 1;
        }
        std::printf("%s: %016llx\n", config.Name().c_str(), static_cast<unsigned long long>(HashOf(call.Written())));
      }
    }
  }
  return aclrtResetDevice(0) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mlap::prolog_test

int main() { return mlap::prolog_test::PrintDigests(); }
