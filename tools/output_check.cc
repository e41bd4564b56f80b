#include "output_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "bf16_convert.h"

namespace mlap::tools {
namespace {

constexpr double kMaxQueryNorm = 2e-3;
constexpr double kMaxCacheNorm = 1e-3;
constexpr double kMaxWorst = 0x1p-5;
constexpr double kMaxInt8Share = 0.005;

// Instructions that some kernels use take subnormal factors for zeros. What a sum loses by it is below
// He * 2^-126 * |w|, and below 1 / sqrt(epsilon) times that after the norm.
constexpr double kFlushed = 0x1p-100;

float Bf16At(const CaseTensor& tensor, int64_t index) {
  uint16_t bits;
  std::memcpy(&bits, tensor.view.bytes + 2 * index, sizeof(bits));
  return FloatFromBf16(bits);
}

int Int8At(const CaseTensor& tensor, int64_t index) { return std::to_integer<int8_t>(tensor.view.bytes[index]); }

class Comparison {
 public:
  Comparison(const std::string& name, const CaseTensor& output, const CaseTensor& reference)
      : output_(output), reference_(reference) {
    check_.name = name;
    check_.is_int8 = output.view.dtype == Dtype::kI8;
  }

  // `offset(d)` is the place of a row's element d, in elements.
  template <typename Offset>
  void Row(int64_t width, const Offset& offset) {
    check_.num_elements += width;
    if (check_.is_int8) {
      for (int64_t d = 0; d < width; ++d) {
        const int64_t at = offset(d);
        const int64_t difference = std::abs(Int8At(output_, at) - Int8At(reference_, at));
        check_.num_different += difference != 0 ? 1 : 0;
        check_.max_difference = std::max(check_.max_difference, difference);
      }
      return;
    }
    double squares = 0.0;
    double largest = 0.0;
    int64_t num_finite = 0;
    for (int64_t d = 0; d < width; ++d) {
      const double value = Bf16At(output_, offset(d));
      const double expected = Bf16At(reference_, offset(d));
      if (!std::isfinite(value) || !std::isfinite(expected)) {
        const bool same = std::isnan(value) ? std::isnan(expected) : value == expected;
        check_.num_other_nonfinite += same ? 0 : 1;
        continue;
      }
      const double difference = value - expected;
      squared_difference_ += difference * difference;
      squares += expected * expected;
      largest = std::max(largest, std::fabs(difference));
      ++num_finite;
    }
    squared_reference_ += squares;
    if (largest > kFlushed) {
      const double rms = std::sqrt(squares / static_cast<double>(num_finite));
      check_.worst = std::max(check_.worst, largest / rms);  // infinite for a row of zeros
    }
  }

  OutputCheck Finish(bool is_cache) {
    if (squared_difference_ > kFlushed * kFlushed)
      check_.relative_norm = std::sqrt(squared_difference_ / squared_reference_);
    const double max_different = std::max(1.0, kMaxInt8Share * static_cast<double>(check_.num_elements));
    const bool is_close =
        check_.is_int8
            ? check_.max_difference <= 1 && static_cast<double>(check_.num_different) <= max_different
            : check_.relative_norm <= (is_cache ? kMaxCacheNorm : kMaxQueryNorm) && check_.worst <= kMaxWorst;
    check_.is_accepted = is_close && check_.num_other_nonfinite == 0 && check_.num_touched == 0;
    return check_;
  }

  OutputCheck& check() { return check_; }

 private:
  const CaseTensor& output_;
  const CaseTensor& reference_;
  OutputCheck check_;
  double squared_difference_ = 0.0;
  double squared_reference_ = 0.0;
};

OutputCheck CheckQuery(const std::string& name, const CaseTensor& output, const CaseTensor& reference) {
  Comparison comparison(name, output, reference);
  const int64_t width = output.view.shape.back();
  const auto count = static_cast<int64_t>(output.view.num_bytes / DtypeBytes(output.view.dtype));
  for (int64_t first = 0; first < count; first += width) {
    comparison.Row(width, [first](int64_t d) { return first + d; });
  }
  return comparison.Finish(false);
}

OutputCheck CheckCache(const std::string& name, const PrologCase& prolog_case, const CaseTensor& output,
                       const CaseTensor& reference) {
  Comparison comparison(name, output, reference);
  const CaseShape& shape = prolog_case.shape;
  const int64_t width = output.view.shape.back();
  const auto element = static_cast<int64_t>(DtypeBytes(output.view.dtype));
  const int64_t capacity = shape.block_num * shape.block_size;
  std::vector<bool> is_written(static_cast<size_t>(capacity));
  for (int64_t t = 0; t < shape.Tokens(); ++t) {
    int64_t slot;
    std::memcpy(&slot, prolog_case.Input("cache_index").view.bytes + t * static_cast<int64_t>(sizeof(slot)),
                sizeof(slot));
    if (slot >= 0 && slot < capacity) is_written[static_cast<size_t>(slot)] = true;
  }
  const std::byte* before = prolog_case.Input(name).view.bytes;
  const std::byte* after = output.view.bytes;
  for (int64_t slot = 0; slot < capacity; ++slot) {
    const auto offset = [&](int64_t d) { return CacheOffset(shape, width, slot, d); };
    if (is_written[static_cast<size_t>(slot)]) {
      comparison.Row(width, offset);
      continue;
    }
    for (int64_t d = 0; d < width; ++d) {
      for (int64_t byte = offset(d) * element; byte < (offset(d) + 1) * element; ++byte) {
        comparison.check().num_touched += before[byte] != after[byte] ? 1 : 0;
      }
    }
  }
  return comparison.Finish(true);
}

std::string Verdict(const OutputCheck& check) {
  std::string verdict = check.is_accepted ? "ok" : "BEYOND THE ACCEPTED ERROR";
  if (check.num_other_nonfinite != 0) {
    verdict += fmt::format(", {} NaN or infinities differ", check.num_other_nonfinite);
  }
  if (check.num_touched != 0) verdict += fmt::format(", {} bytes of other slots changed", check.num_touched);
  return verdict;
}

}  // namespace

std::vector<OutputCheck> CheckOutputs(const PrologCase& prolog_case, const CaseOutputs& outputs,
                                      const CaseOutputs& reference) {
  std::vector<OutputCheck> checks;
  for (const std::string name : kOutputNames) {
    const auto expected = reference.find(name);
    if (expected == reference.end()) continue;
    const CaseTensor& output = outputs.at(name);
    checks.push_back(name.ends_with("_cache") ? CheckCache(name, prolog_case, output, expected->second)
                                              : CheckQuery(name, output, expected->second));
  }
  return checks;
}

bool AllAccepted(const std::vector<OutputCheck>& checks) {
  return std::all_of(checks.begin(), checks.end(), [](const OutputCheck& check) { return check.is_accepted; });
}

std::string FormatChecks(const std::vector<OutputCheck>& checks) {
  std::string text =
      fmt::format("  {:<12}{:>10}  {:>12}{:>14}  {}\n", "output", "elements", "relative", "max / row rms", "verdict");
  for (const OutputCheck& check : checks) {
    if (check.is_int8) {
      const std::string differences =
          check.num_different == 0 ? "none differs"
                                   : fmt::format("{} off by {} at most", check.num_different, check.max_difference);
      text += fmt::format("  {:<12}{:>10}  {:>26}  {}\n", check.name, check.num_elements, differences, Verdict(check));
    } else {
      text += fmt::format("  {:<12}{:>10}  {:>12.2e}{:>14.2e}  {}\n", check.name, check.num_elements,
                          check.relative_norm, check.worst, Verdict(check));
    }
  }
  return text;
}

}  // namespace mlap::tools
