// The whole operator against its formula, written out in double with the roundings that are part of the contract, at
// sizes that divide nothing. Finer comparisons are the engine's tests; here every argument has to be the right one.
#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "prolog_v1_fixture.h"

namespace mlap::prolog_v1_test {
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

  std::vector<double> query, query_rope;    // [T, N, Hckv], [T, N, Dr]
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

  std::vector<double> Times(const std::vector<double>& row, Param param, int64_t n) const {
    std::vector<double> result(static_cast<size_t>(n), 0.0);
    const auto k = static_cast<int64_t>(row.size());
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < n; ++j)
        result[static_cast<size_t>(j)] += row[static_cast<size_t>(i)] * Weight(param, k, i, j);
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
    for (int64_t j = 0; j < c_.hidden; ++j) x.push_back(BfAt(kTokenX, t * c_.hidden + j));

    std::vector<double> c_q = Times(x, kWeightDq, c_.q_rank);
    for (double& value : c_q) value = Bf(value);
    c_q = RmsNorm(c_q, kGammaCq, call_.epsilon_cq);
    double scale = 1;
    if (c_.PartialQuant()) {
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

    const int64_t head_columns = c_.nope + c_.rope;
    std::vector<double> q = Times(c_q, kWeightUqQr, c_.heads * head_columns);
    for (size_t j = 0; j < q.size(); ++j) {
      q[j] = c_.PartialQuant() ? q[j] * scale * F32At(kScaleWUqQr, static_cast<int64_t>(j)) : Bf(q[j]);
    }
    for (int64_t head = 0; head < c_.heads; ++head) {
      const auto first = q.begin() + head * head_columns;
      for (int64_t h = 0; h < c_.kv_rank; ++h) {
        double sum = 0;
        for (int64_t d = 0; d < c_.nope; ++d)
          sum += Bf(first[d]) * BfAt(kWeightUk, (head * c_.nope + d) * c_.kv_rank + h);
        query.push_back(Bf(sum));
      }
      const auto rope = Rope({first + c_.nope, first + head_columns}, t);
      query_rope.insert(query_rope.end(), rope.begin(), rope.end());
    }

    std::vector<double> key = Times(x, kWeightDkvKr, c_.kv_rank + c_.rope);
    for (double& value : key) value = Bf(value);
    kv.push_back(RmsNorm({key.begin(), key.begin() + c_.kv_rank}, kGammaCkv, call_.epsilon_ckv));
    kr.push_back(Rope({key.begin() + c_.kv_rank, key.end()}, t));
    for (size_t j = 0; j < kv.back().size(); ++j) {
      double& value = kv.back()[j];
      value = c_.PerChannel() ? Int8(value * F32At(kScaleCkv, static_cast<int64_t>(j))) : Bf(value);
    }
    for (size_t j = 0; j < kr.back().size() && c_.PerChannel(); ++j) {
      kr.back()[j] = Int8(kr.back()[j] * F32At(kScaleCkr, static_cast<int64_t>(j)));
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

class PlainFormula : public PrologV1Test {
 protected:
  void Check(const Config& config, uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + config.Name());
    PrologCall call(config);
    call.epsilon_cq = 0.01;
    call.epsilon_ckv = 0.2;
    call.Allocate(seed);
    const RunResult result = call.Run(stream_);
    ASSERT_TRUE(result.Ok()) << result;
    Formula formula(call);
    formula.Run();

    const auto bf16_elements = [&](Param param) {
      std::vector<double> values;
      for (size_t i = 0; i < call.buffer(param).size() / 2; ++i) {
        values.push_back(FromBf16(call.buffer(param).as<uint16_t>()[i]));
      }
      return values;
    };
    // A rounding that goes the other way moves single elements by a bf16 step or by one of the 127 steps of the
    // quantised cQ; a wrong argument moves everything.
    EXPECT_LT(RelativeError(formula.query, bf16_elements(kQueryOut)), 1e-2);
    EXPECT_LT(RelativeError(formula.query_rope, bf16_elements(kQueryRopeOut)), 1e-2);
    CheckCache(call, kKvCache, formula.kv);
    CheckCache(call, kKrCache, formula.kr);
  }

  void CheckCache(PrologCall& call, Param param, const std::vector<std::vector<double>>& expected) {
    const Config& c = call.config;
    const int64_t width = call[param].dims[3];
    const int64_t c0 = c.PerChannel() ? 32 : 16;
    for (size_t t = 0; t < expected.size(); ++t) {
      const int64_t slot = call.slots()[t];
      std::vector<double> row;
      for (int64_t d = 0; d < width; ++d) {
        const int64_t page = slot / c.block_size * c.block_size * width;
        const int64_t at =
            c.IsNzCache() ? page + d / c0 * c.block_size * c0 + slot % c.block_size * c0 + d % c0 : slot * width + d;
        row.push_back(c.PerChannel() ? static_cast<double>(call.buffer(param).as<int8_t>()[at])
                                     : FromBf16(call.buffer(param).as<uint16_t>()[at]));
        if (c.PerChannel()) {
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
  for (uint64_t seed = 0; seed < 60; ++seed) {
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

TEST_F(PlainFormula, BothCacheOrders) {
  for (const Scenario scenario : kScenarios) {
    for (const char* mode : {"PA_BSND", "PA_NZ"}) {
      Check(TinyConfig(scenario, mode), 1);
      Check(MediumConfig(scenario, mode).SetBatchSeq(3, 4), 2);
    }
  }
}

TEST_F(PlainFormula, DeviceSizes) {
  const ScopedSoc soc("ascend910b");
  for (const Scenario scenario : kScenarios) {
    for (const char* mode : {"PA_BSND", "PA_NZ"}) {
      Config config;
      config.scenario = scenario;
      config.cache_mode = mode;
      config.heads = 2;
      Check(config, 3);
    }
  }
}

}  // namespace
}  // namespace mlap::prolog_v1_test
