// The whole operator against its formula, written out in double with the roundings that are part of the contract, at
// sizes that divide nothing. Finer comparisons are the engine's tests; here every argument has to be the right one.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

double FromBf16(uint16_t bits) { return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16)); }

// To the nearest bf16, ties to even.
double Bf(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return FromBf16(static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16));
}

double Int8(double value) { return std::clamp(std::nearbyint(value), -128.0, 127.0); }

class Formula {
 public:
  explicit Formula(PrologCall& call) : call_(call), c_(call.config) {}

  void Run() {
    for (int64_t t = 0; t < c_.Tokens(); ++t) RunToken(t);
  }

  std::vector<double> query, query_rope;    // [T, N, Hckv], [T, N, Dr]; dequantised
  std::vector<double> query_norm;           // [T, Hcq], dequantised
  std::vector<std::vector<double>> kv, kr;  // [T][Hckv], [T][Dr], before they find their slots

 private:
  double BfAt(Param param, int64_t i) const { return FromBf16(call_.buffer(param).as<uint16_t>()[i]); }
  double F32At(Param param, int64_t i) const { return static_cast<double>(call_.buffer(param).as<float>()[i]); }

  // w[i, j] of a FRACTAL_NZ weight with k rows.
  double Weight(Param param, int64_t k, int64_t i, int64_t j) const {
    const int64_t c0 = call_[param].dtype == ACL_INT8 ? 32 : 16;
    const int64_t at = j / c0 * ((k + 15) / 16 * 16) * c0 + i * c0 + j % c0;
    return c0 == 32 ? static_cast<double>(call_.buffer(param).as<int8_t>()[at]) : BfAt(param, at);
  }

  // The product as it leaves the matrix unit: rounded to bf16, or integers times the scales of the row and the columns.
  std::vector<double> Times(const std::vector<double>& row, Param param, int64_t n, double row_scale,
                            Param scales) const {
    std::vector<double> result(static_cast<size_t>(n), 0.0);
    const auto k = static_cast<int64_t>(row.size());
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < n; ++j)
        result[static_cast<size_t>(j)] += row[static_cast<size_t>(i)] * Weight(param, k, i, j);
    }
    for (size_t j = 0; j < result.size(); ++j) {
      const bool quantized = call_[param].dtype == ACL_INT8;
      result[j] = quantized ? result[j] * row_scale * F32At(scales, static_cast<int64_t>(j)) : Bf(result[j]);
    }
    return result;
  }

  std::vector<double> RmsNorm(const std::vector<double>& row, Param gamma, double epsilon) const {
    double sum = 0;
    for (const double x : row) sum += x * x;
    const double root = std::sqrt(sum / static_cast<double>(row.size()) + epsilon);
    std::vector<double> result;
    for (size_t j = 0; j < row.size(); ++j) result.push_back(row[j] / root * BfAt(gamma, static_cast<int64_t>(j)));
    return result;
  }

  // Pairs in, halves out.
  std::vector<double> Rope(const std::vector<double>& x, int64_t t) const {
    const size_t half = x.size() / 2;
    std::vector<double> result(x.size());
    for (size_t i = 0; i < half; ++i) {
      const auto low = t * c_.rope + static_cast<int64_t>(i);
      const auto high = low + static_cast<int64_t>(half);
      result[i] = Bf(x[2 * i] * BfAt(kRopeCos, low) - x[2 * i + 1] * BfAt(kRopeSin, low));
      result[half + i] = Bf(x[2 * i + 1] * BfAt(kRopeCos, high) + x[2 * i] * BfAt(kRopeSin, high));
    }
    return result;
  }

  void RunToken(int64_t t) {
    std::vector<double> x;
    for (int64_t j = 0; j < c_.hidden; ++j) {
      const int64_t at = t * c_.hidden + j;
      x.push_back(c_.IsFull() ? static_cast<double>(call_.buffer(kTokenX).as<int8_t>()[at]) : BfAt(kTokenX, at));
    }
    const double x_scale = c_.IsFull() ? F32At(kScaleX, t) : 1;

    std::vector<double> c_q = RmsNorm(Times(x, kWeightDq, c_.q_rank, x_scale, kScaleWDq), kGammaCq, call_.epsilon_cq);
    double scale = 1;
    for (double& value : c_q) value *= call_.modes.qc_qr_scale;
    if (c_.QuantizesCq()) {
      double largest = 0;
      for (size_t j = 0; j < c_q.size(); ++j) {
        if (c_.Smooth()) c_q[j] *= F32At(kSmooth, static_cast<int64_t>(j));
        largest = std::max(largest, std::fabs(c_q[j]));
      }
      scale = largest / 127;
      for (double& value : c_q) value = Int8(value * 127 / largest);
    } else {
      for (double& value : c_q) value = Bf(value);
    }
    for (const double value : c_q) query_norm.push_back(value * scale);

    const int64_t head_columns = c_.nope + c_.rope;
    const std::vector<double> q = Times(c_q, kWeightUqQr, c_.heads * head_columns, scale, kScaleWUqQr);
    for (int64_t head = 0; head < c_.heads; ++head) {
      const auto first = q.begin() + head * head_columns;
      std::vector<double> row;
      double largest = 0;
      for (int64_t h = 0; h < c_.kv_rank; ++h) {
        double sum = 0;
        for (int64_t d = 0; d < c_.nope; ++d)
          sum += Bf(first[d]) * BfAt(kWeightUk, (head * c_.nope + d) * c_.kv_rank + h);
        row.push_back(Bf(sum));
        largest = std::max(largest, std::fabs(row.back()));
      }
      std::vector<double> rope = Rope({first + c_.nope, first + head_columns}, t);
      if (c_.PerTensor()) {
        const double step = largest / 127;
        for (double& value : row) value = Int8(value / step) * step;
        for (double& value : rope) value *= F32At(kScaleCkv, 0) / step;
      }
      query.insert(query.end(), row.begin(), row.end());
      query_rope.insert(query_rope.end(), rope.begin(), rope.end());
    }

    const std::vector<double> key = Times(x, kWeightDkvKr, c_.kv_rank + c_.rope, x_scale, kScaleWDkvKr);
    kv.push_back(RmsNorm({key.begin(), key.begin() + c_.kv_rank}, kGammaCkv, call_.epsilon_ckv));
    kr.push_back(Rope({key.begin() + c_.kv_rank, key.end()}, t));
    for (double& value : kv.back()) value *= call_.modes.kc_scale;
    for (size_t first = 0; first < kv.back().size(); first += 128) StoreGroup(&kv.back(), first);
    for (size_t j = 0; j < kr.back().size() && c_.PerChannel(); ++j) {
      kr.back()[j] = Int8(kr.back()[j] * F32At(kScaleCkr, static_cast<int64_t>(j)));
    }
  }

  // What the cache keeps of up to 128 columns: numbers as they are stored, or dequantised where the row has its scale.
  void StoreGroup(std::vector<double>* row, size_t first) const {
    const size_t end = std::min(row->size(), first + 128);
    double largest = 0;
    for (size_t j = first; j < end; ++j) largest = std::max(largest, std::fabs((*row)[j]));
    const double bound = c_.PerGroup() ? largest * F32At(kClipAlpha, 0) : 0;
    for (size_t j = first; j < end; ++j) {
      double& value = (*row)[j];
      if (c_.PerGroup()) {
        value = Int8(std::clamp(value, -bound, bound) * 127 / bound) * bound / 127;
      } else if (c_.PerChannel() || c_.PerTensor()) {
        value = Int8(value * F32At(kScaleCkv, c_.PerTensor() ? 0 : static_cast<int64_t>(j)));
      } else {
        value = Bf(value);
      }
    }
  }

  PrologCall& call_;
  const Config& c_;
};

// The root of the squared differences over that of the squared expectations.
double RelativeError(const std::vector<double>& expected, const std::vector<double>& actual) {
  double difference = 0;
  double reference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    reference += expected[i] * expected[i];
  }
  return std::sqrt(difference / std::max(reference, 1e-30));
}

class PlainFormula : public PrologTest {
 protected:
  void Check(const Config& config, uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + config.Name());
    PrologCall call(config);
    call.epsilon_cq = 0.01;
    call.epsilon_ckv = 0.2;
    if (config.IsV3()) {
      call.modes.qc_qr_scale = 1.5;
      call.modes.kc_scale = 0.75;
    }
    call.Allocate(seed);
    const RunResult result = call.Run(stream_);
    ASSERT_TRUE(result.Ok()) << result;
    Formula formula(call);
    formula.Run();

    // A rounding that goes the other way moves single elements by a bf16 step or by one of the 127 steps of a quantised
    // row; a wrong argument moves everything.
    EXPECT_LT(RelativeError(formula.query, Values(call, kQueryOut, kScaleQNope, config.kv_rank)), 1e-2);
    EXPECT_LT(RelativeError(formula.query_rope, Values(call, kQueryRopeOut, kScaleQNope, 1)), 1e-2);
    if (config.scenario.query_norm) {
      EXPECT_LT(RelativeError(formula.query_norm, Values(call, kQueryNorm, kScaleQNorm, config.q_rank)), 1e-2);
    }
    CheckCache(call, kKvCache, formula.kv);
    if (config.PerGroup()) {
      CheckGroupRows(call, formula);
    } else {
      CheckCache(call, kKrCache, formula.kr);
    }
  }

  // A tensor's elements; int8 ones times the scale of their `row` elements if there is one.
  static std::vector<double> Values(PrologCall& call, Param param, Param scale, int64_t row) {
    std::vector<double> values;
    for (int64_t i = 0; i < call[param].NumElements(); ++i) {
      if (call[param].dtype == ACL_BF16) {
        values.push_back(FromBf16(call.buffer(param).as<uint16_t>()[i]));
      } else {
        values.push_back(static_cast<double>(call.buffer(param).as<int8_t>()[i]) *
                         static_cast<double>(call.buffer(scale).as<float>()[i / row]));
      }
    }
    return values;
  }

  // Rows of values, rope values and scales.
  void CheckGroupRows(PrologCall& call, const Formula& formula) {
    const Config& c = call.config;
    for (size_t t = 0; t < formula.kv.size(); ++t) {
      const uint8_t* row = call.buffer(kKvCache).data() + call.SlotOf(static_cast<int64_t>(t)) * c.KvWidth();
      std::vector<double> kv, kr;
      for (int64_t j = 0; j < c.kv_rank; ++j) {
        float scale;
        std::memcpy(&scale, row + c.kv_rank + 2 * c.rope + j / 128 * 4, sizeof(scale));
        kv.push_back(static_cast<double>(static_cast<int8_t>(row[j])) * static_cast<double>(scale));
      }
      for (int64_t j = 0; j < c.rope; ++j) {
        uint16_t bits;
        std::memcpy(&bits, row + c.kv_rank + 2 * j, sizeof(bits));
        kr.push_back(FromBf16(bits));
      }
      EXPECT_LT(RelativeError(formula.kv[t], kv), 3e-2) << "token " << t;
      EXPECT_LT(RelativeError(formula.kr[t], kr), 3e-2) << "token " << t;
    }
  }

  void CheckCache(PrologCall& call, Param param, const std::vector<std::vector<double>>& expected) {
    const Config& c = call.config;
    if (c.PerGroup()) return;
    const int64_t width = call[param].dims.back();
    const bool is_int8 = call[param].dtype == ACL_INT8;
    const int64_t c0 = is_int8 ? 32 : 16;
    for (size_t t = 0; t < expected.size(); ++t) {
      const int64_t slot = call.SlotOf(static_cast<int64_t>(t));
      std::vector<double> row;
      for (int64_t d = 0; d < width; ++d) {
        const int64_t page = slot / c.block_size * c.block_size * width;
        const int64_t at =
            c.IsNzCache() ? page + d / c0 * c.block_size * c0 + slot % c.block_size * c0 + d % c0 : slot * width + d;
        row.push_back(is_int8 ? static_cast<double>(call.buffer(param).as<int8_t>()[at])
                              : FromBf16(call.buffer(param).as<uint16_t>()[at]));
        if (is_int8) {
          EXPECT_LE(std::fabs(row.back() - expected[t][static_cast<size_t>(d)]), 1)
              << ParamName(param) << " token " << t << " element " << d;
        }
      }
      EXPECT_LT(RelativeError(expected[t], row), 3e-2) << ParamName(param) << " token " << t;
    }
  }

  ScopedSoc soc_{"none"};
};

TEST_F(PlainFormula, SizesThatDivideNothing) {
  std::mt19937_64 engine(5);
  const auto pick = [&](int64_t begin, int64_t end) {
    return std::uniform_int_distribution<int64_t>(begin, end - 1)(engine);
  };
  for (uint64_t seed = 0; seed < 120; ++seed) {
    Config config;
    config.scenario = kScenarios[seed % kScenarios.size()];
    config.hidden = pick(1, 90);
    config.q_rank = pick(4, 90);
    config.heads = pick(1, 6);
    config.nope = pick(1, 40);
    config.rope = 2 * pick(1, 20);
    config.kv_rank = pick(1, 90);
    config.block_num = pick(1, 4);
    config.block_size = pick(2, 20);
    config.nz_2d = true;
    config.SetFused(pick(1, std::min<int64_t>(config.Capacity(), 20) + 1));
    Check(config, seed);
    if (HasFailure()) return;
  }
}

TEST_F(PlainFormula, EveryCacheMode) {
  for (const Scenario scenario : kScenarios) {
    for (const char* mode : ModesOf(scenario)) {
      for (const Config& config : FormsOf(TinyConfig(scenario, mode), 4)) Check(config, 1);
      for (const Config& config : FormsOf(MediumConfig(scenario, mode), 12)) Check(config, 2);
    }
  }
}

TEST_F(PlainFormula, DeviceSizes) {
  const ScopedSoc soc("ascend910b");
  for (const Scenario scenario : kScenarios) {
    for (const char* mode : ModesOf(scenario)) {
      Config config;
      config.scenario = scenario;
      config.cache_mode = mode;
      config.heads = 2;
      for (const Config& form : FormsOf(config, 2)) Check(form, 3);
      if (scenario.version != Version::kV3 || config.cache_mode != "PA_BSND") continue;
      config.q_rank = 2048;
      config.nope = 192;
      Check(config, 4);
    }
  }
}

}  // namespace
}  // namespace mlap::prolog_test
