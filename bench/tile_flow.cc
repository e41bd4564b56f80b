#include "tile_flow.h"

#include "bf16_convert.h"
#include "counter_random.h"
#include "cpu_support.h"
#include "thread_timing.h"
#include "tile_config.h"

namespace mlap::bench {
namespace {

constexpr size_t kKibibyte = 1024;
constexpr size_t kPartBytes = 128 * kKibibyte;  // of one of the two streams of weights
constexpr size_t kStepBytes = 128;              // of one stream in a step
constexpr size_t kRunParts = 40;
constexpr size_t kRunSteps = kRunParts * kPartBytes / kStepBytes;  // about 2 ms
constexpr size_t kRunBytes = kRunParts * 2 * kPartBytes;

// A thread's own memory.
constexpr size_t kRowBytes = 128 * kKibibyte;
constexpr size_t kColumnBytes = 16 * kKibibyte;
constexpr size_t kSumBytes = 128 * kKibibyte;
constexpr size_t kRows = 0;
constexpr size_t kColumns = kRows + kRowBytes;
constexpr size_t kMade = kColumns + kColumnBytes;  // the weights, permuted
constexpr size_t kSums = kMade + kColumnBytes;
constexpr size_t kDataBytes = kSums + kSumBytes;

#if defined(__x86_64__)

struct alignas(64) Permutation {
  uint16_t from[32];
};

// `weights`: kRunBytes.
void RunSteps(std::byte* data, const std::byte* weights) {
  const TileConfig config;
  Permutation pairs;
  for (uint16_t i = 0; i < 32; ++i) pairs.from[i] = static_cast<uint16_t>(i / 2 + i % 2 * 16);
  __asm__ volatile("ldtilecfg (%0)" : : "r"(&config) : "memory");
  size_t row = 0, column = 0, sum = 0;
  for (size_t part = 0; part < kRunParts; ++part, weights += 2 * kPartBytes) {
    for (size_t at = 0; at < kPartBytes; at += kStepBytes) {
      std::byte* sums = data + kSums + sum;
      if (column == 0) {
        __asm__ volatile(
            "tileloadd (%0,%1), %%tmm0\n tileloadd 1024(%0,%1), %%tmm1\n"
            "tileloadd 2048(%0,%1), %%tmm2\n tileloadd 3072(%0,%1), %%tmm3\n"
            :
            : "r"(sums), "r"(int64_t{64})
            : "memory");
      }
      __asm__ volatile(
          "tileloaddt1 (%[rows],%[stride]), %%tmm4\n tileloadd (%[columns],%[stride]), %%tmm6\n"
          "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n tileloadd 1024(%[columns],%[stride]), %%tmm7\n"
          "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n tileloaddt1 1024(%[rows],%[stride]), %%tmm5\n"
          "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n tdpbf16ps %%tmm7, %%tmm5, %%tmm3\n"
          "prefetcht1 2048(%[first])\n prefetcht1 2112(%[first])\n"
          "prefetcht1 2048(%[second])\n prefetcht1 2112(%[second])\n"
          "vmovups (%[pairs]), %%zmm4\n"
          "vpermw (%[first]), %%zmm4, %%zmm0\n vpermw 64(%[first]), %%zmm4, %%zmm1\n"
          "vpermw (%[second]), %%zmm4, %%zmm2\n vpermw 64(%[second]), %%zmm4, %%zmm3\n"
          "vmovups %%zmm0, (%[made])\n vmovups %%zmm1, 64(%[made])\n"
          "vmovups %%zmm2, 128(%[made])\n vmovups %%zmm3, 192(%[made])\n"
          :
          : [rows] "r"(data + kRows + row), [columns] "r"(data + kColumns + column), [stride] "r"(int64_t{64}),
            [first] "r"(weights + at), [second] "r"(weights + kPartBytes + at), [pairs] "r"(&pairs),
            [made] "r"(data + kMade + 2 * at % kColumnBytes)
          : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "memory");
      row = (row + 2 * kKibibyte) % kRowBytes;
      column = (column + 2 * kKibibyte) % kColumnBytes;
      if (column == 0) {
        __asm__ volatile(
            "tilestored %%tmm0, (%0,%1)\n tilestored %%tmm1, 1024(%0,%1)\n"
            "tilestored %%tmm2, 2048(%0,%1)\n tilestored %%tmm3, 3072(%0,%1)\n"
            :
            : "r"(sums), "r"(int64_t{64})
            : "memory");
        sum = (sum + 4 * kKibibyte) % kSumBytes;
      }
    }
  }
  __asm__ volatile("tilerelease\n vzeroupper" : : : "memory");
}

#else

void RunSteps(std::byte*, const std::byte*) {}

#endif

}  // namespace

bool TileFlowProbe::IsUsable() { return Support().amx; }

TileFlowProbe::TileFlowProbe(const HugeBuffer& weights, int num_threads)
    : Contender(kKey), weights_(weights), num_threads_(num_threads) {
  const tools::CounterRandom random(1, kKey);
  for (int thread = 0; thread < num_threads; ++thread) {
    thread_data_.emplace_back(kDataBytes);
    for (uint64_t i = 0; i < kSums / sizeof(uint16_t); ++i) {
      thread_data_.back().bf16()[i] = tools::Bf16FromFloat(random.Uniform(i) - 0.5f);
    }
  }
}

double TileFlowProbe::RunOnce() {
  const size_t thread_bytes = weights_.num_bytes() / static_cast<size_t>(num_threads_);
  if (next_ + kRunBytes > thread_bytes) next_ = 0;
  const size_t at = next_;
  next_ += kRunBytes;
  return TimeOnAllThreads(num_threads_, [&](int thread, int) {
    const auto index = static_cast<size_t>(thread);
    RunSteps(thread_data_[index].data(), weights_.data() + index * (thread_bytes / 4096 * 4096) + at);
  });
}

void TileFlowProbe::EndTurn() { EndOpenMpThreads(); }

double TileFlowProbe::ops_per_run() const {
  return 4.0 * 2 * 16 * 16 * 32 * static_cast<double>(kRunSteps) * static_cast<double>(num_threads_);
}

}  // namespace mlap::bench
