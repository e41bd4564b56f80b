#include "api/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "base/bf16.h"
#include "base/e4m3.h"
#include "base/e8m0.h"
#include "base/hif8.h"

namespace mlap {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr StandardName kStandards[] = {
    {MLAP_STANDARD_EXACT, "exact"},
    {MLAP_STANDARD_INT_WITHIN_1, "int-within-1"},
    {MLAP_STANDARD_STAGED, "staged"},
    {MLAP_STANDARD_STAGED_CACHE, "staged-cache"},
    {MLAP_STANDARD_UNROUNDED, "unrounded"},
    {MLAP_STANDARD_SCALES, "scales"},
    {MLAP_STANDARD_MIXED_TOLERANCE, "mixed-tolerance"},
    {MLAP_STANDARD_MERE_MARE, "mere-mare"},
    {MLAP_STANDARD_HALF_PERCENT, "half-percent"},
    {MLAP_STANDARD_DUAL_L0, "dual-l0"},
    {MLAP_STANDARD_DUAL_L1, "dual-l1"},
    {MLAP_STANDARD_DUAL_L2, "dual-l2"},
};

// The public standards' numbers for one type.
struct TypeThresholds {
  mlap_dtype dtype;
  double threshold;    // of MERE, and of MARE / 10; atol and rtol of the mixed tolerance
  double max_abs;      // of the mixed tolerance, or 32 units in the last place
  int mantissa_bits;   // for those
  double small_value;  // golden values below are judged by the count of errors above small_error
  double small_error;
  double half_percent_rtol;
  double half_percent_atol;
};
constexpr TypeThresholds kThresholds[] = {
    {MLAP_FLOAT16, 0x1p-10, 1e-1, 10, 0x1p-11, 0x1p-16, 0.005, 2.5e-5},
    {MLAP_BF16, 0x1p-7, 1e-1, 7, 0x1p-8, 0x1p-16, 0x1p-7, 1e-4},
    {MLAP_FLOAT32, 0x1p-13, 1e-2, 23, 0x1p-14, 0x1p-30, 0.005, 2.5e-5},
    {MLAP_FLOAT8_E4M3, 0x1p-3, 1.0, 3, 0x1p-4, 0x1p-6, 0.0, 0.0},
};

const TypeThresholds* ThresholdsOf(mlap_dtype dtype) {
  for (const TypeThresholds& row : kThresholds) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

bool IsInteger(mlap_dtype dtype) { return dtype == MLAP_INT8 || dtype == MLAP_INT32 || dtype == MLAP_INT64; }

double HalfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  double magnitude = exponent == 0    ? std::ldexp(mantissa, -24)
                     : exponent == 31 ? (mantissa == 0 ? kInfinity : std::nan(""))
                                      : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits >> 15) != 0 ? -magnitude : magnitude;
}

template <class T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

double ValueOf(mlap_dtype dtype, const char* at) {
  switch (dtype) {
    case MLAP_BF16:
      return static_cast<double>(ToFloat(Load<Bf16>(at)));
    case MLAP_INT8:
      return Load<int8_t>(at);
    case MLAP_FLOAT32:
      return static_cast<double>(Load<float>(at));
    case MLAP_INT64:
      return static_cast<double>(Load<int64_t>(at));
    case MLAP_INT32:
      return Load<int32_t>(at);
    case MLAP_FLOAT8_E4M3:
      return static_cast<double>(ToFloat(Load<E4m3>(at)));
    case MLAP_HIFLOAT8:
      return static_cast<double>(ToFloat(Load<HiF8>(at)));
    case MLAP_FLOAT8_E8M0:
      return static_cast<double>(ToFloat(Load<E8m0>(at)));
    case MLAP_FLOAT64:
      return Load<double>(at);
    case MLAP_FLOAT16:
      return HalfValue(Load<uint16_t>(at));
  }
  return 0.0;
}

int64_t IntegerOf(mlap_dtype dtype, const char* at) {
  return dtype == MLAP_INT64 ? Load<int64_t>(at) : dtype == MLAP_INT32 ? Load<int32_t>(at) : Load<int8_t>(at);
}

// a - g, rounded only once: binary64 does not hold every INT64.
double Difference(int64_t a, int64_t g) {
  const auto wide_a = static_cast<uint64_t>(a);
  const auto wide_g = static_cast<uint64_t>(g);
  return a < g ? -static_cast<double>(wide_g - wide_a) : static_cast<double>(wide_a - wide_g);
}

// Goes through the rows, the last dimension, of a tensor.
class RowReader {
 public:
  explicit RowReader(const mlap_tensor& tensor) : view_(ViewOf(tensor)), dtype_(tensor.dtype) {}

  int64_t width() const { return view_.dims.size[view_.dims.rank - 1]; }
  int64_t num_rows() const { return width() == 0 ? 0 : view_.dims.Count() / width(); }

  // The address of element j of row `row`.
  const char* At(int64_t row, int64_t j) const {
    int64_t offset = j * view_.strides[view_.dims.rank - 1];
    for (int i = view_.dims.rank - 1; i-- > 0;) {
      offset += row % view_.dims.size[i] * view_.strides[i];
      row /= view_.dims.size[i];
    }
    return view_.data + offset * view_.element_bytes;
  }

  mlap_dtype dtype() const { return dtype_; }

  void Read(int64_t row, std::vector<double>* values) const {
    const char* at = At(row, 0);
    const int64_t step = view_.strides[view_.dims.rank - 1] * view_.element_bytes;
    for (double& value : *values) {
      value = ValueOf(dtype_, at);
      at += step;
    }
  }

 private:
  StridedView view_;
  mlap_dtype dtype_;
};

// Instructions that some kernels use take subnormal factors for zeros; what a sum loses by it is far below this.
constexpr double kFlushed = 0x1p-100;

// The relative errors of one implementation, |a - g| / (|g| + 1e-7), and its count of errors among small values.
struct Errors {
  double relative_sum = 0.0;
  double relative_max = 0.0;
  double square_sum = 0.0;
  int64_t num_relative = 0;
  int64_t num_all = 0;
  int64_t num_small_errors = 0;

  void Add(double difference, double golden, const TypeThresholds* split) {
    ++num_all;
    square_sum += difference * difference;
    if (split != nullptr && std::fabs(golden) < split->small_value) {
      num_small_errors += std::fabs(difference) > split->small_error ? 1 : 0;
      return;
    }
    const double relative = std::fabs(difference) / (std::fabs(golden) + 1e-7);
    relative_sum += relative;
    relative_max = std::max(relative_max, relative);
    ++num_relative;
  }
  double Mere() const { return num_relative == 0 ? 0.0 : relative_sum / static_cast<double>(num_relative); }
  double Rmse() const { return num_all == 0 ? 0.0 : std::sqrt(square_sum / static_cast<double>(num_all)); }
};

double Ratio(double candidate, double benchmark) {
  return candidate == 0.0 ? 0.0 : benchmark == 0.0 ? kInfinity : candidate / benchmark;
}

// Whether an element lies outside of the standard's tolerance for single elements.
bool IsBeyond(mlap_standard standard, const TypeThresholds* type, double difference, double golden) {
  const double error = std::fabs(difference);
  switch (standard) {
    case MLAP_STANDARD_SCALES:
      return error > 1e-4 * std::fabs(golden);
    case MLAP_STANDARD_MIXED_TOLERANCE:
      return error > type->threshold * (1.0 + std::fabs(golden));
    case MLAP_STANDARD_HALF_PERCENT:
      return error > type->half_percent_atol + type->half_percent_rtol * std::fabs(golden);
    default:
      return difference != 0.0;
  }
}

// By how much an element misses the mixed tolerance's limit for the largest error, which is absolute or, for large
// values, 32 units in the last place.
double MixedExcess(const TypeThresholds& type, double actual, double golden) {
  const double ulp = golden == 0.0 ? 0.0 : std::ldexp(1.0, std::ilogb(golden) - type.mantissa_bits);
  return std::fabs(actual - golden) / std::max(type.max_abs, 32.0 * ulp);
}

// One criterion: what was found must not be above the limit.
struct Criterion {
  const char* name;
  double found;
  double limit;
};

class Comparer {
 public:
  Comparer(const mlap_tensor& actual, const mlap_tensor& golden, const mlap_tensor* benchmark, mlap_standard standard,
           size_t struct_size)
      : actual_(actual),
        golden_(golden),
        benchmark_(benchmark != nullptr ? *benchmark : golden),
        has_benchmark_(benchmark != nullptr),
        standard_(standard),
        type_(ThresholdsOf(actual.dtype)),
        are_wide_integers_(IsInteger(actual.dtype) && IsInteger(golden.dtype) &&
                           (actual.dtype == MLAP_INT64 || golden.dtype == MLAP_INT64)),
        element_bytes_(static_cast<size_t>(FindDtype(actual.dtype)->bytes)) {
    out_.struct_size = struct_size;
  }

  const mlap_comparison& Run() {
    const int64_t num_rows = actual_.num_rows();
    const auto width = static_cast<size_t>(num_rows == 0 ? 0 : actual_.width());
    std::vector<double> a(width), g(width), b(width);
    for (int64_t row = 0; row < num_rows; ++row) {
      actual_.Read(row, &a);
      golden_.Read(row, &g);
      if (has_benchmark_) benchmark_.Read(row, &b);
      AddRow(row, a, g, b);
    }
    Finish();
    Judge();
    return out_;
  }

 private:
  // Of element j of a row, whose values are a and g.
  double DifferenceAt(int64_t row, size_t j, double a, double g) const {
    if (!are_wide_integers_) return a - g;
    const auto column = static_cast<int64_t>(j);
    return Difference(IntegerOf(actual_.dtype(), actual_.At(row, column)),
                      IntegerOf(golden_.dtype(), golden_.At(row, column)));
  }

  void AddRow(int64_t row, const std::vector<double>& a, const std::vector<double>& g, const std::vector<double>& b) {
    double squares = 0.0;
    double largest = 0.0;
    int64_t num_finite = 0;
    for (size_t j = 0; j < a.size(); ++j) {
      ++out_.num_elements;
      const bool same = standard_ == MLAP_STANDARD_EXACT
                            ? std::memcmp(actual_.At(row, static_cast<int64_t>(j)),
                                          golden_.At(row, static_cast<int64_t>(j)), element_bytes_) == 0
                        : are_wide_integers_ ? DifferenceAt(row, j, a[j], g[j]) == 0.0
                                             : a[j] == g[j] || (std::isnan(a[j]) && std::isnan(g[j]));
      out_.num_different += same ? 0 : 1;
      if (!std::isfinite(a[j]) || !std::isfinite(g[j])) {
        const bool equal = a[j] == g[j] || (std::isnan(a[j]) && std::isnan(g[j]));
        out_.num_nonfinite_different += equal ? 0 : 1;
        continue;
      }
      const double difference = DifferenceAt(row, j, a[j], g[j]);
      squares += g[j] * g[j];
      largest = std::max(largest, std::fabs(difference));
      actual_squares_ += a[j] * a[j];
      product_ += a[j] * g[j];
      difference_squares_ += difference * difference;
      num_beyond_ += IsBeyond(standard_, type_, difference, g[j]) ? 1 : 0;
      if (standard_ == MLAP_STANDARD_MIXED_TOLERANCE)
        mixed_excess_ = std::max(mixed_excess_, MixedExcess(*type_, a[j], g[j]));
      ++num_finite;
      errors_.Add(difference, g[j], has_benchmark_ ? type_ : nullptr);
      if (has_benchmark_ && std::isfinite(b[j])) benchmark_errors_.Add(b[j] - g[j], g[j], type_);
    }
    golden_squares_ += squares;
    out_.max_abs = std::max(out_.max_abs, largest);
    if (largest > kFlushed) {
      out_.max_row_rms = std::max(out_.max_row_rms, largest / std::sqrt(squares / static_cast<double>(num_finite)));
    }
  }

  void Finish() {
    out_.relative_norm = difference_squares_ > kFlushed * kFlushed
                             ? Ratio(std::sqrt(difference_squares_), std::sqrt(golden_squares_))
                             : 0.0;
    const double norms = std::sqrt(actual_squares_) * std::sqrt(golden_squares_);
    out_.cosine = norms > 0.0                          ? std::clamp(product_ / norms, -1.0, 1.0)
                  : actual_squares_ == golden_squares_ ? 1.0
                                                       : 0.0;
    out_.mere = errors_.Mere();
    out_.mare = errors_.relative_max;
    out_.rmse = errors_.Rmse();
    out_.share_beyond =
        out_.num_elements == 0 ? 0.0 : static_cast<double>(num_beyond_) / static_cast<double>(out_.num_elements);
    if (!has_benchmark_) return;
    out_.mare_ratio = Ratio(errors_.relative_max, benchmark_errors_.relative_max);
    out_.mere_ratio = Ratio(errors_.Mere(), benchmark_errors_.Mere());
    out_.rmse_ratio = Ratio(errors_.Rmse(), benchmark_errors_.Rmse());
    out_.small_value_ratio = static_cast<double>(errors_.num_small_errors) /
                             static_cast<double>(std::max<int64_t>(benchmark_errors_.num_small_errors, 1));
  }

  std::vector<Criterion> Criteria() const {
    const auto norms = [&](double relative, double row) {
      return std::vector<Criterion>{{"relative norm", out_.relative_norm, relative},
                                    {"largest error over row RMS", out_.max_row_rms, row}};
    };
    const auto ratios = [&](double mare, double others) {
      return std::vector<Criterion>{{"MARE ratio", out_.mare_ratio, mare},
                                    {"MERE ratio", out_.mere_ratio, others},
                                    {"RMSE ratio", out_.rmse_ratio, others},
                                    {"small value error ratio", out_.small_value_ratio, 2.0}};
    };
    switch (standard_) {
      case MLAP_STANDARD_EXACT:
        return {{"elements with other bytes", static_cast<double>(out_.num_different), 0.0}};
      case MLAP_STANDARD_INT_WITHIN_1:
        // One element may always differ: 0.5 % of a small tensor is less.
        return {{"largest difference", out_.max_abs, 1.0},
                {"elements that differ", static_cast<double>(out_.num_different),
                 std::max(1.0, 0.005 * static_cast<double>(out_.num_elements))}};
      case MLAP_STANDARD_STAGED:
        return norms(2e-3, 0x1p-5);
      case MLAP_STANDARD_STAGED_CACHE:
        return norms(1e-3, 0x1p-5);
      case MLAP_STANDARD_UNROUNDED:
        return norms(1e-2, 0x1p-4);
      case MLAP_STANDARD_SCALES:
        return {{"share beyond relative error 1e-4", out_.share_beyond, 0.0}};
      case MLAP_STANDARD_MIXED_TOLERANCE:
        return {{"share beyond the tolerance", out_.share_beyond, 0.01},
                {"largest error over its limit", mixed_excess_, 1.0}};
      case MLAP_STANDARD_MERE_MARE:
        return {{"MERE", out_.mere, type_->threshold}, {"MARE", out_.mare, 10.0 * type_->threshold}};
      case MLAP_STANDARD_HALF_PERCENT:
        return {{"share beyond the tolerance", out_.share_beyond, 0.005}, {"largest relative error", out_.mare, 10.0}};
      case MLAP_STANDARD_DUAL_L0:
        return ratios(10.0, 2.0);
      case MLAP_STANDARD_DUAL_L1:
        return ratios(5.0, 1.5);
      case MLAP_STANDARD_DUAL_L2:
        return ratios(2.0, 1.2);
    }
    return {};
  }

  void Judge() {
    std::snprintf(out_.verdict, sizeof(out_.verdict), "passed");
    out_.is_passed = 1;
    std::vector<Criterion> criteria = Criteria();
    criteria.push_back({"NaN or infinities that differ", static_cast<double>(out_.num_nonfinite_different), 0.0});
    for (const Criterion& criterion : criteria) {
      if (criterion.found <= criterion.limit) continue;
      out_.is_passed = 0;
      std::snprintf(out_.verdict, sizeof(out_.verdict), "%s: expected at most %.6g, found %.6g", criterion.name,
                    criterion.limit, criterion.found);
      return;
    }
  }

  RowReader actual_;
  RowReader golden_;
  RowReader benchmark_;
  bool has_benchmark_;
  mlap_standard standard_;
  const TypeThresholds* type_;
  bool are_wide_integers_;
  size_t element_bytes_;
  mlap_comparison out_ = {};
  Errors errors_;
  Errors benchmark_errors_;
  double actual_squares_ = 0.0;
  double golden_squares_ = 0.0;
  double difference_squares_ = 0.0;
  double product_ = 0.0;
  double mixed_excess_ = 0.0;
  int64_t num_beyond_ = 0;
};

}  // namespace

const StandardName* StandardAt(size_t index) { return index < std::size(kStandards) ? &kStandards[index] : nullptr; }

bool StandardTakes(mlap_standard standard, mlap_dtype dtype, const char** expected) {
  switch (standard) {
    case MLAP_STANDARD_EXACT:
    case MLAP_STANDARD_STAGED:
    case MLAP_STANDARD_STAGED_CACHE:
    case MLAP_STANDARD_UNROUNDED:
      return true;
    case MLAP_STANDARD_INT_WITHIN_1:
      *expected = "an integer type for this standard";
      return IsInteger(dtype);
    case MLAP_STANDARD_SCALES:
      *expected = "FLOAT32 or FLOAT8_E8M0 for this standard";
      return dtype == MLAP_FLOAT32 || dtype == MLAP_FLOAT8_E8M0;
    case MLAP_STANDARD_HALF_PERCENT:
      *expected = "BF16, FLOAT16 or FLOAT32 for this standard";
      return dtype == MLAP_BF16 || dtype == MLAP_FLOAT16 || dtype == MLAP_FLOAT32;
    default:
      *expected = "a type the standard has thresholds for: BF16, FLOAT16, FLOAT32, FLOAT8_E4M3";
      return ThresholdsOf(dtype) != nullptr;
  }
}

void Compare(const mlap_tensor& actual, const mlap_tensor& golden, const mlap_tensor* benchmark, mlap_standard standard,
             mlap_comparison* result) {
  Comparer comparer(actual, golden, benchmark, standard, result->struct_size);
  *result = comparer.Run();  // at the end: what throws has written nothing
}

}  // namespace mlap
