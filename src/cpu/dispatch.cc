#include "cpu/dispatch.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "cpu/isa.h"

namespace mlap {
namespace {

constexpr int kMaxThreads = 1024;

std::string UsableNames(const CpuFeatures& features) {
  std::string names;
  for (const Isa& isa : Isas()) {
    if (!WhyUnusable(isa, features).empty()) continue;
    if (!names.empty()) names += ", ";
    names += isa.name;
  }
  return names;
}

}  // namespace

Status ChooseKernels(const char* max_isa, KernelChoice* choice, const char* setting) {
  const CpuFeatures features = FeaturesFrom(ReadCpuid());
  int limit = BestIsa(features);
  if (max_isa != nullptr && *max_isa != '\0') {
    limit = -1;
    for (int i = 0; i < kNumIsas; ++i) {
      if (std::strcmp(Isas()[i].name, max_isa) == 0) limit = i;
    }
    const std::string advice = "; usable here: " + UsableNames(features);
    if (limit < 0) {
      return Status(StatusCode::kInvalidArgument,
                    std::string(setting) + ": '" + max_isa + "' is not an ISA of this library" + advice);
    }
    const std::string reason = WhyUnusable(Isas()[limit], features);
    if (!reason.empty()) {
      return Status(StatusCode::kUnsupported,
                    std::string(setting) + ": '" + max_isa + "' cannot be used: " + reason + advice);
    }
  }
  KernelChoice result;
  for (int i = 0; i <= limit; ++i) {
    const Isa& isa = Isas()[i];
    if (!WhyUnusable(isa, features).empty()) continue;
    isa.use(&result.table);
    result.isa = isa.name;
  }
  *choice = result;
  return Status();
}

Status ProcessKernels(const KernelChoice** choice) {
  struct Decision {
    Status status;
    KernelChoice choice;
  };
  static const Decision* const kDecision = [] {
    auto* decision = new Decision;
    decision->status = ChooseKernels(std::getenv("MLAP_MAX_ISA"), &decision->choice);
    return decision;
  }();
  *choice = &kDecision->choice;
  return kDecision->status;
}

Status ConfiguredThreads(int* num_threads) {
  const char* text = std::getenv("MLAP_NUM_THREADS");
  if (text == nullptr || *text == '\0') {
    *num_threads = UsableCpus() < kMaxThreads ? UsableCpus() : kMaxThreads;
    return Status();
  }
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 1 || value > kMaxThreads) {
    return Status(StatusCode::kInvalidArgument, std::string("MLAP_NUM_THREADS: expected a whole number from 1 to ") +
                                                    std::to_string(kMaxThreads) + ", found '" + text +
                                                    "'; unset it for the default");
  }
  *num_threads = static_cast<int>(value);
  return Status();
}

Status ProcessThreads(int* num_threads) {
  static std::atomic<int> decided{0};
  int threads = decided.load();
  if (threads == 0) {
    Status status = ConfiguredThreads(&threads);
    if (!status.ok()) return status;
    int expected = 0;
    if (!decided.compare_exchange_strong(expected, threads)) threads = expected;
  }
  *num_threads = threads;
  return Status();
}

}  // namespace mlap
