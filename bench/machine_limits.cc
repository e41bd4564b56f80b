#include "machine_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "bf16_convert.h"
#include "counter_random.h"
#include "rounds.h"
#include "thread_timing.h"
#include "tool_error.h"

namespace mlap::bench {
namespace {

constexpr size_t kRunBytes = size_t{128} << 20;
constexpr double kPeakRunSeconds = 0.002;
constexpr int kPatternRuns = 9;

double ThreadSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

ReadProbe::ReadProbe(size_t buffer_bytes, int num_threads)
    : Contender("read"), buffer_(buffer_bytes), num_threads_(num_threads) {
  run_bytes_ = std::min(kRunBytes, buffer_.num_bytes());
  double best = 1e30;
  ReadPattern fastest = pattern_;
  for (const ReadPattern& candidate : ReadPatterns()) {
    pattern_ = candidate;
    std::vector<double> seconds;
    RunOnce();
    for (int run = 0; run < kPatternRuns; ++run) seconds.push_back(RunOnce());
    const double median = Summarise("", seconds).median;
    if (median < best) best = median, fastest = candidate;
  }
  pattern_ = fastest;
  EndTurn();
}

double ReadProbe::RunOnce() {
  if (next_ + run_bytes_ > buffer_.num_bytes()) next_ = 0;
  const std::byte* begin = buffer_.data() + next_;
  next_ += run_bytes_;
  return TimeOnAllThreads(num_threads_, [&](int thread, int num_threads) {
    const size_t pages = run_bytes_ / 4096;
    const size_t first = pages * static_cast<size_t>(thread) / static_cast<size_t>(num_threads);
    const size_t last = pages * static_cast<size_t>(thread + 1) / static_cast<size_t>(num_threads);
    ReadRange(begin + first * 4096, (last - first) * 4096, pattern_);
  });
}

std::string ReadProbe::PatternText() const {
  return fmt::format("{} stream{} per thread, {}", pattern_.streams, pattern_.streams == 1 ? "" : "s",
                     pattern_.prefetch_bytes != 0 ? "prefetched" : "no prefetch");
}

PeakProbe::PeakProbe(const PeakLoop& loop, int num_threads)
    : Contender(loop.key), loop_(loop), num_threads_(num_threads), data_(static_cast<size_t>(loop.data_bytes)) {
  // Numbers like those of a product of matrices, of both signs and all different: others take less power, and a machine
  // that is short of it was seen to multiply tiles of equal numbers twice as fast.
  const tools::CounterRandom random(1, loop.key);
  if (std::string_view(loop.key).starts_with("fp32")) {
    for (uint64_t i = 0; i < data_.num_bytes() / sizeof(float); ++i) {
      reinterpret_cast<float*>(data_.data())[i] = random.Normal(i);
    }
  } else if (std::string_view(loop.key).starts_with("bf16")) {
    for (uint64_t i = 0; i < data_.num_bytes() / sizeof(uint16_t); ++i) {
      data_.bf16()[i] = tools::Bf16FromFloat(random.Normal(i));
    }
  } else {
    for (uint64_t i = 0; i < data_.num_bytes() / sizeof(uint32_t); ++i) {
      reinterpret_cast<uint32_t*>(data_.data())[i] = static_cast<uint32_t>(random.Bits(i));
    }
  }
  // In the time of this thread alone: whatever else runs must not make the loop too short.
  const auto fastest = [this] {
    double least = 1e30;
    for (int run = 0; run < 3; ++run) {
      const double start = ThreadSeconds();
      loop_.run(iterations_, data_.data());
      least = std::min(least, ThreadSeconds() - start);
    }
    return least;
  };
  double seconds = fastest();
  while (seconds < kPeakRunSeconds / 8) {
    iterations_ *= 4;
    seconds = fastest();
  }
  const double scaled = static_cast<double>(iterations_) * kPeakRunSeconds / seconds;
  iterations_ = std::max<int64_t>(1, static_cast<int64_t>(scaled));
}

double PeakProbe::RunOnce() {
  return TimeOnAllThreads(num_threads_, [this](int, int) { loop_.run(iterations_, data_.data()); });
}

double PeakProbe::ops_per_run() const {
  return loop_.ops_per_iteration * static_cast<double>(iterations_) * static_cast<double>(num_threads_);
}

MachineLimits::MachineLimits(size_t buffer_bytes, int num_threads, std::string_view isa)
    : isa_peaks_(FindIsaPeaks(isa)), read_(std::make_unique<ReadProbe>(buffer_bytes, num_threads)) {
  if (isa_peaks_ == nullptr) {
    tools::Fail("the operator's instruction set: expected one whose peak the benchmark knows, found {}", isa);
  }
  for (const PeakLoop& loop : PeakLoops()) {
    if (loop.is_usable) peaks_.push_back(std::make_unique<PeakProbe>(loop, num_threads));
  }
  if (TileFlowProbe::IsUsable()) tile_flow_ = std::make_unique<TileFlowProbe>(read_->buffer(), num_threads);
  if (bf16() == nullptr || int8() == nullptr) {
    tools::Fail("the peak of {}: expected a CPU and an operating system that offer it, found they do not", isa);
  }
}

PeakProbe* MachineLimits::Find(std::string_view key) {
  for (const auto& peak : peaks_) {
    if (key == peak->loop().key) return peak.get();
  }
  return nullptr;
}

std::vector<MachineLimits::Rate> MachineLimits::MeasureAll(double seconds) {
  std::vector<Contender*> contenders = {read_.get()};
  for (const auto& peak : peaks_) contenders.push_back(peak.get());
  if (tile_flow_ != nullptr) contenders.push_back(tile_flow_.get());
  RoundLimits limits;
  limits.seconds = seconds;
  const std::vector<Timing> timings = RunRounds(contenders, limits);
  std::vector<Rate> rates;
  rates.push_back({"read", "streaming read, " + read_->PatternText(), read_->bytes_per_run() / timings[0].median,
                   read_->bytes_per_run() / timings[0].min});
  const auto add = [&rates, &timings](const char* key, const char* what, double ops) {
    const Timing& timing = timings[rates.size()];
    rates.push_back({key, what, ops / timing.median, ops / timing.min});
  };
  for (const auto& peak : peaks_) add(peak->loop().key, peak->loop().instruction, peak->ops_per_run());
  if (tile_flow_ != nullptr) add(TileFlowProbe::kKey, TileFlowProbe::kWhat, tile_flow_->ops_per_run());
  return rates;
}

}  // namespace mlap::bench
