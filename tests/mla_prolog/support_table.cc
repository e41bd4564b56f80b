// Prints what is supported, as README shows it: from the tables that the first steps check calls with.
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cann/ops/prolog_limits.h"
#include "cann/ops/prolog_version.h"
#include "cann/ops/scenario.h"
#include "limits/cache_mode.h"

namespace mlap::cann {
namespace {

const std::vector<std::pair<Devices, const char*>>& DeviceNames() {
  static const std::vector<std::pair<Devices, const char*>> kNames = {
      {kA2A3, "910"}, {kAscend950, "950"}, {kCpu, "none"}};
  return kNames;
}

const std::vector<const PrologVersion*>& Versions() {
  static const std::vector<const PrologVersion*> kVersions = {&VersionV1(), &VersionV2(), &VersionV3()};
  return kVersions;
}

void Append(std::string* text, const std::string& word) { *text += (text->empty() ? "" : ", ") + word; }

std::string DevicesOf(const PrologVersion& version, const Scenario& scenario) {
  std::string text;
  for (const auto& [device, name] : DeviceNames()) {
    if ((version.devices & device) != 0 && version.Offers(scenario, device)) Append(&text, name);
  }
  return text.empty() ? "-" : text;
}

std::string ModesOf(const PrologVersion& version, const Scenario& scenario) {
  std::string text;
  for (size_t i = 0; i < version.num_cache_modes; ++i) {
    if (!scenario.MergesCaches() || kCacheModes[i].takes_per_group) Append(&text, kCacheModes[i].name);
  }
  return text;
}

void PrintScenarios() {
  std::printf("| scenario | weightQuantMode, kvCacheQuantMode | V1 on | V2 on | V3 on | cache modes of V3 |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const Scenario& scenario : Scenarios()) {
    std::printf("| %s | %d, %d |", scenario.name.c_str(), static_cast<int>(scenario.weight_quant),
                static_cast<int>(scenario.kv_quant));
    for (const PrologVersion* version : Versions()) std::printf(" %s |", DevicesOf(*version, scenario).c_str());
    const std::string modes = ModesOf(VersionV3(), scenario);
    const bool is_all = modes == ModesOf(VersionV3(), Scenarios()[0]);
    std::printf(" %s |\n", is_all ? "all" : modes.c_str());
  }
}

void PrintCacheModes() {
  std::printf("| cache mode | versions | tokens | row of a token | order of a page |\n|---|---|---|---|---|\n");
  for (size_t i = 0; i < kCacheModes.size(); ++i) {
    const CacheMode& mode = kCacheModes[i];
    std::string versions;
    for (const PrologVersion* version : Versions()) {
      if (i < version->num_cache_modes) Append(&versions, version->name);
    }
    const char* const tokens = mode.token_rank == 2 ? "(T, He)" : mode.token_rank == 3 ? "(B, S, He)" : "both";
    const char* const row = mode.slots == SlotRule::kIndex    ? "cacheIndex"
                            : mode.slots == SlotRule::kBlocks ? "pages of its sequence, from cacheIndex"
                                                              : "its own number";
    std::printf("| %s | %s | %s | %s | %s |\n", mode.name, versions.c_str(), tokens, row,
                mode.order == CacheOrder::kNz ? "NZ" : "rows");
  }
}

void PrintSizes() {
  std::printf("| size | V1, V2 | V3 | `MLAP_SOC=none` |\n|---|---|---|---|\n");
  // MXFP8 has all the rules that there are.
  const auto limits = [](const PrologVersion& version, Devices device) {
    std::map<std::string, std::string> texts;
    const Scenario* const scenario =
        FindScenario(device == kCpu ? WeightQuant::kMxFp8 : WeightQuant::kNone, KvQuant::kNone);
    for (const SizeLimit& limit : SizeLimits({&version, device, scenario, &kCacheModes[0]})) {
      std::string& text = texts[limit.symbol];
      text += (text.empty() ? "" : "; MXFP8: ") + limit.legal;
    }
    return texts;
  };
  auto v1 = limits(VersionV1(), kA2A3);
  auto v3 = limits(VersionV3(), kA2A3);
  auto none = limits(VersionV3(), kCpu);
  for (const SizeLimit& limit : SizeLimits({&VersionV3(), kA2A3, &Scenarios()[0], &kCacheModes[0]})) {
    const std::string symbol = limit.symbol;
    std::printf("| %s | %s | %s | %s |\n", limit.symbol, v1[symbol].c_str(), v3[symbol].c_str(),
                none[symbol].empty() ? "any" : none[symbol].c_str());
  }
}

}  // namespace
}  // namespace mlap::cann

int main() {
  mlap::cann::PrintScenarios();
  std::printf("\n");
  mlap::cann::PrintCacheModes();
  std::printf("\n");
  mlap::cann::PrintSizes();
  return 0;
}
