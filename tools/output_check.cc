#include "output_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "bf16_convert.h"
#include "case_slots.h"
#include "eight_bit_codes.h"

namespace mlap::tools {
namespace {

constexpr double kMaxQueryNorm = 2e-3;
constexpr double kMaxCacheNorm = 1e-3;
constexpr double kMaxWorst = 0x1p-5;
constexpr double kMaxEightBitShare = 0.005;
constexpr double kMaxScaleError = 1e-4;

// Instructions that some kernels use take subnormal factors for zeros. What a sum loses by it is below
// He * 2^-126 * |w|, and below 1 / sqrt(epsilon) times that after the norm.
constexpr double kFlushed = 0x1p-100;

float Bf16At(const CaseTensor& tensor, int64_t byte) {
  uint16_t bits;
  std::memcpy(&bits, tensor.view.bytes + byte, sizeof(bits));
  return FloatFromBf16(bits);
}

float FloatAt(const CaseTensor& tensor, int64_t byte) {
  float value;
  std::memcpy(&value, tensor.view.bytes + byte, sizeof(value));
  return value;
}

CheckKind KindOf(mlap_dtype dtype) {
  switch (dtype) {
    case MLAP_INT8:
    case MLAP_FLOAT8_E4M3:
    case MLAP_HIFLOAT8:
      return CheckKind::kEightBit;
    case MLAP_FLOAT32:
      return CheckKind::kScales;
    case MLAP_FLOAT8_E8M0:
      return CheckKind::kExact;
    default:
      return CheckKind::kBf16;
  }
}

// Whether both are finite. If they are not, but also not the same, that counts.
bool AreFinite(double value, double expected, OutputCheck* check) {
  if (std::isfinite(value) && std::isfinite(expected)) return true;
  const bool same = std::isnan(value) ? std::isnan(expected) : value == expected;
  check->num_other_nonfinite += same ? 0 : 1;
  return false;
}

class Comparison {
 public:
  Comparison(std::string name, mlap_dtype dtype, const CaseTensor& output, const CaseTensor& reference)
      : dtype_(dtype), output_(output), reference_(reference) {
    check_.name = std::move(name);
    check_.kind = KindOf(dtype);
  }

  // `offset(d)` is the place of a row's element d, in bytes.
  template <typename Offset>
  void Row(int64_t width, const Offset& offset) {
    check_.num_elements += width;
    switch (check_.kind) {
      case CheckKind::kBf16:
        return Bf16Row(width, offset);
      case CheckKind::kEightBit:
        return EightBitRow(width, offset);
      case CheckKind::kScales:
        return ScaleRow(width, offset);
      case CheckKind::kExact:
        for (int64_t d = 0; d < width; ++d) {
          check_.num_different += output_.view.bytes[offset(d)] != reference_.view.bytes[offset(d)] ? 1 : 0;
        }
    }
  }

  OutputCheck Finish(double max_norm) {
    if (squared_difference_ > kFlushed * kFlushed) {
      check_.relative_norm = std::sqrt(squared_difference_ / squared_reference_);
    }
    check_.is_accepted = IsClose(max_norm) && check_.num_other_nonfinite == 0 && check_.num_touched == 0;
    return check_;
  }

  OutputCheck& check() { return check_; }

 private:
  template <typename Offset>
  void Bf16Row(int64_t width, const Offset& offset) {
    double squares = 0.0;
    double largest = 0.0;
    int64_t num_finite = 0;
    for (int64_t d = 0; d < width; ++d) {
      const double value = Bf16At(output_, offset(d));
      const double expected = Bf16At(reference_, offset(d));
      if (!AreFinite(value, expected, &check_)) continue;
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

  template <typename Offset>
  void EightBitRow(int64_t width, const Offset& offset) {
    const EightBitCodes& codes = EightBitCodes::Of(dtype_);
    for (int64_t d = 0; d < width; ++d) {
      const std::byte value = output_.view.bytes[offset(d)];
      const std::byte expected = reference_.view.bytes[offset(d)];
      if (!AreFinite(codes.Value(value), codes.Value(expected), &check_)) continue;
      const int64_t difference = std::abs(codes.Place(value) - codes.Place(expected));
      check_.num_different += difference != 0 ? 1 : 0;
      check_.max_difference = std::max(check_.max_difference, difference);
    }
  }

  template <typename Offset>
  void ScaleRow(int64_t width, const Offset& offset) {
    for (int64_t d = 0; d < width; ++d) {
      const double value = FloatAt(output_, offset(d));
      const double expected = FloatAt(reference_, offset(d));
      if (!AreFinite(value, expected, &check_)) continue;
      const double difference = std::fabs(value - expected);
      if (difference > kFlushed) check_.worst = std::max(check_.worst, difference / std::fabs(expected));
    }
  }

  bool IsClose(double max_norm) const {
    switch (check_.kind) {
      case CheckKind::kBf16:
        return check_.relative_norm <= max_norm && check_.worst <= kMaxWorst;
      case CheckKind::kEightBit:
        return check_.max_difference <= 1 &&
               static_cast<double>(check_.num_different) <=
                   std::max(1.0, kMaxEightBitShare * static_cast<double>(check_.num_elements));
      case CheckKind::kScales:
        return check_.worst <= kMaxScaleError;
      case CheckKind::kExact:
        return check_.num_different == 0;
    }
    return false;
  }

  mlap_dtype dtype_;
  const CaseTensor& output_;
  const CaseTensor& reference_;
  OutputCheck check_;
  double squared_difference_ = 0.0;
  double squared_reference_ = 0.0;
};

OutputCheck CheckRows(const TensorSpec& spec, const CaseTensor& output, const CaseTensor& reference) {
  Comparison comparison(spec.name, spec.dtype, output, reference);
  const int64_t element = ElementBytes(spec.dtype);
  const int64_t width = spec.shape.back();
  const auto count = static_cast<int64_t>(output.view.num_bytes) / element;
  for (int64_t first = 0; first < count; first += width) {
    comparison.Row(width, [=](int64_t d) { return (first + d) * element; });
  }
  return comparison.Finish(kMaxQueryNorm);
}

// What the rows of a cache consist of: one part, or the three of a merged row.
struct RowPart {
  const char* name;  // empty: the whole
  mlap_dtype dtype;
  int64_t first_byte;  // in a row that is not NZ
  int64_t width;
};

std::vector<RowPart> PartsOf(const CaseShape& shape, const TensorSpec& spec) {
  if (!shape.scenario->IsPerGroup()) return {{"", spec.dtype, 0, spec.shape.back()}};
  const GroupRow row = {shape.dims.kv_rank, shape.dims.rope};
  return {{" values", spec.dtype, 0, row.kv_rank},
          {" rope", MLAP_BF16, row.RopeOffset(), row.rope},
          {" scales", MLAP_FLOAT32, row.ScaleOffset(), row.NumScales()}};
}

void CheckCache(const TensorSpec& spec, const PrologCase& prolog_case, const std::vector<bool>& is_written,
                const CaseTensor& output, const CaseTensor& reference, std::vector<OutputCheck>* checks) {
  const CaseShape& shape = prolog_case.shape;
  const int64_t width = spec.shape.back();
  const int64_t element = ElementBytes(spec.dtype);
  std::vector<Comparison> parts;
  const std::vector<RowPart> row_parts = PartsOf(shape, spec);
  parts.reserve(row_parts.size());
  for (const RowPart& part : row_parts) {
    parts.emplace_back(std::string(spec.name) + part.name, part.dtype, output, reference);
  }
  const std::byte* before = prolog_case.Input(spec.name).view.bytes;
  const std::byte* after = output.view.bytes;
  for (size_t slot = 0; slot < is_written.size(); ++slot) {
    const auto offset = [&](int64_t d) {
      return CacheOffset(shape, spec.dtype, width, static_cast<int64_t>(slot), d) * element;
    };
    if (is_written[slot]) {
      for (size_t i = 0; i < parts.size(); ++i) {
        const RowPart& part = row_parts[i];
        if (row_parts.size() == 1) {
          parts[i].Row(width, offset);
        } else {
          parts[i].Row(part.width, [&](int64_t d) { return offset(part.first_byte) + d * ElementBytes(part.dtype); });
        }
      }
      continue;
    }
    for (int64_t d = 0; d < width; ++d) {
      for (int64_t byte = offset(d); byte < offset(d) + element; ++byte) {
        parts.front().check().num_touched += before[byte] != after[byte] ? 1 : 0;
      }
    }
  }
  for (Comparison& part : parts) checks->push_back(part.Finish(kMaxCacheNorm));
}

std::string Verdict(const OutputCheck& check) {
  std::string verdict = check.is_accepted ? "ok" : "BEYOND THE ACCEPTED ERROR";
  if (check.num_other_nonfinite != 0) {
    verdict += fmt::format(", {} NaN or infinities differ", check.num_other_nonfinite);
  }
  if (check.num_touched != 0) verdict += fmt::format(", {} bytes of other slots changed", check.num_touched);
  return verdict;
}

// The two columns of numbers.
std::string Differences(const OutputCheck& check) {
  switch (check.kind) {
    case CheckKind::kBf16:
      return fmt::format("{:>12.2e}{:>14.2e}", check.relative_norm, check.worst);
    case CheckKind::kScales:
      return fmt::format("{:>12.2e}{:>14}", check.worst, "");
    case CheckKind::kEightBit:
    case CheckKind::kExact:
      break;
  }
  if (check.num_different == 0) return fmt::format("{:>26}", "none differs");
  if (check.kind == CheckKind::kExact) return fmt::format("{:>26}", fmt::format("{} differ", check.num_different));
  return fmt::format("{:>26}", fmt::format("{} off by {} at most", check.num_different, check.max_difference));
}

}  // namespace

std::vector<OutputCheck> CheckOutputs(const PrologCase& prolog_case, const CaseOutputs& outputs,
                                      const CaseOutputs& reference) {
  const CaseShape& shape = prolog_case.shape;
  std::vector<bool> is_written(static_cast<size_t>(shape.Capacity()));
  for (const int64_t slot : SlotsOfTokens(prolog_case)) {
    if (slot != kNoSlot) is_written[static_cast<size_t>(slot)] = true;
  }
  std::vector<OutputCheck> checks;
  for (const TensorSpec& spec : ResultSpecs(shape)) {
    const auto expected = reference.find(spec.name);
    if (expected == reference.end()) continue;
    const CaseTensor& output = outputs.find(spec.name)->second;
    if (!IsCacheName(spec.name)) {
      checks.push_back(CheckRows(spec, output, expected->second));
    } else if (spec.shape.size() > 1) {  // a merged row leaves kr_cache without elements
      CheckCache(spec, prolog_case, is_written, output, expected->second, &checks);
    }
  }
  return checks;
}

bool AllAccepted(const std::vector<OutputCheck>& checks) {
  return std::all_of(checks.begin(), checks.end(), [](const OutputCheck& check) { return check.is_accepted; });
}

std::string FormatChecks(const std::vector<OutputCheck>& checks) {
  std::string text =
      fmt::format("  {:<20}{:>10}  {:>12}{:>14}  {}\n", "output", "elements", "relative", "max / row rms", "verdict");
  for (const OutputCheck& check : checks) {
    text += fmt::format("  {:<20}{:>10}  {}  {}\n", check.name, check.num_elements, Differences(check), Verdict(check));
  }
  return text;
}

}  // namespace mlap::tools
