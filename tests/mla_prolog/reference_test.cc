// The calls against the reference, at the device's sizes and at others: every argument has to be the right one.
#include "reference/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/e4m3.h"
#include "base/hif8.h"
#include "base/prolog_args.h"
#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

ElementType TypeOf(aclDataType dtype) {
  switch (dtype) {
    case ACL_INT8:
      return ElementType::kInt8;
    case ACL_FLOAT8_E4M3FN:
      return ElementType::kE4m3;
    case ACL_HIFLOAT8:
      return ElementType::kHiF8;
    default:
      return ElementType::kBf16;
  }
}

// What the reference writes into, beside the call's own inputs.
class ReferenceRun {
 public:
  explicit ReferenceRun(PrologCall& call) : call_(call), written_(kNumParams) {
    for (const Param param : kWritten) written_[param] = call.buffer(param).Bytes();
  }

  std::vector<uint8_t>& written(Param param) { return written_[param]; }

  void Run(NumericRules rules) {
    const Config& c = call_.config;
    PrologArgs args;
    args.shape = {c.Tokens(), c.hidden, c.q_rank, c.heads, c.nope, c.rope, c.kv_rank};
    args.mode.weight_quant = static_cast<WeightQuant>(c.scenario.weight_mode);
    args.mode.kv_quant = static_cast<KvQuant>(c.scenario.kv_mode);
    args.mode.epsilon_cq = static_cast<float>(call_.epsilon_cq);
    args.mode.epsilon_ckv = static_cast<float>(call_.epsilon_ckv);
    args.mode.cq_factor = static_cast<float>(call_.modes.qc_qr_scale);
    args.mode.ckv_factor = static_cast<float>(call_.modes.kc_scale);
    args.mode.rules = rules;
    args.token_x = In<void>(kTokenX);
    args.weight_dq = Weight(kWeightDq, c.hidden, c.q_rank);
    args.weight_uq_qr = Weight(kWeightUqQr, c.q_rank, c.heads * (c.nope + c.rope));
    args.weight_uk = In<Bf16>(kWeightUk);
    args.weight_dkv_kr = Weight(kWeightDkvKr, c.hidden, c.kv_rank + c.rope);
    args.gamma_cq = In<Bf16>(kGammaCq);
    args.gamma_ckv = In<Bf16>(kGammaCkv);
    args.rope_sin = In<Bf16>(kRopeSin);
    args.rope_cos = In<Bf16>(kRopeCos);
    // The rows one by one, whatever the mode calls them.
    for (int64_t t = 0; t < c.Tokens(); ++t) slots_.push_back(call_.SlotOf(t));
    args.slots.cache_index = slots_.data();
    args.kv_cache = Cache(kKvCache, c.KvWidth());
    if (!c.PerGroup()) args.kr_cache = Cache(kKrCache, c.rope);
    if (c.scenario.weight_mode == 3) {
      args.mx_scale_x = In<uint8_t>(kScaleX);
      args.mx_scale_w_dq = In<uint8_t>(kScaleWDq);
      args.mx_scale_w_uq_qr = In<uint8_t>(kScaleWUqQr);
      args.mx_scale_w_dkv_kr = In<uint8_t>(kScaleWDkvKr);
      args.mx_scale_q_norm = Out<uint8_t>(kScaleQNorm);
    } else {
      args.dequant_scale_x = In<float>(kScaleX);
      args.dequant_scale_w_dq = In<float>(kScaleWDq);
      args.dequant_scale_w_uq_qr = In<float>(kScaleWUqQr);
      args.dequant_scale_w_dkv_kr = In<float>(kScaleWDkvKr);
      args.dequant_scale_q_norm = Out<float>(kScaleQNorm);
    }
    args.quant_scale_ckv = In<float>(kScaleCkv);
    args.quant_scale_ckr = In<float>(kScaleCkr);
    args.smooth_scales_cq = In<float>(kSmooth);
    args.k_nope_clip_alpha = In<float>(kClipAlpha);
    args.query = Out<void>(kQueryOut);
    args.query_rope = Out<Bf16>(kQueryRopeOut);
    args.dequant_scale_q_nope = Out<float>(kScaleQNope);
    args.query_norm = Out<void>(kQueryNorm);
    RunReference(args, {});
  }

 private:
  template <class T>
  const T* In(Param param) {
    return call_[param].null ? nullptr : reinterpret_cast<const T*>(call_.buffer(param).data());
  }
  template <class T>
  T* Out(Param param) {
    return call_[param].null ? nullptr : reinterpret_cast<T*>(written_[param].data());
  }
  WeightView Weight(Param param, int64_t k, int64_t n) {
    return NzWeight(In<void>(param), TypeOf(call_[param].dtype), k, n);
  }
  CacheView Cache(Param param, int64_t width) {
    const Config& c = call_.config;
    return ContiguousCache(written_[param].data(), TypeOf(call_[param].dtype),
                           c.IsNzCache() ? CacheOrder::kNz : CacheOrder::kRows, c.IsTokens() ? 1 : c.block_num,
                           c.IsTokens() ? c.Tokens() : c.block_size, width);
  }

  PrologCall& call_;
  std::vector<std::vector<uint8_t>> written_;
  std::vector<int64_t> slots_;
};

double NumberAt(const std::vector<uint8_t>& bytes, aclDataType dtype, size_t i) {
  switch (dtype) {
    case ACL_INT8:
      return static_cast<int8_t>(bytes[i]);
    case ACL_FLOAT8_E4M3FN:
      return static_cast<double>(ToFloat(E4m3{bytes[i]}));
    case ACL_HIFLOAT8:
      return static_cast<double>(ToFloat(HiF8{bytes[i]}));
    case ACL_FLOAT8_E8M0:
      return bytes[i];
    case ACL_FLOAT: {
      float value;
      std::memcpy(&value, &bytes[4 * i], sizeof(value));
      return static_cast<double>(value);
    }
    default: {
      Bf16 value;
      std::memcpy(&value, &bytes[2 * i], sizeof(value));
      return static_cast<double>(ToFloat(value));
    }
  }
}

class AgainstReference : public PrologTest {
 protected:
  void Check(const Config& config, NumericRules rules) {
    SCOPED_TRACE(config.Name());
    PrologCall call(config);
    if (config.IsV3()) {
      call.modes.qc_qr_scale = 1.5;
      call.modes.kc_scale = 0.75;
    }
    call.Allocate();
    ReferenceRun reference(call);
    const RunResult result = call.Run(stream_);
    ASSERT_TRUE(result.Ok()) << result;
    reference.Run(rules);
    for (const Param param : kWritten) {
      if (call[param].null) continue;
      const std::vector<uint8_t> found = call.buffer(param).Bytes();
      const std::vector<uint8_t>& expected = reference.written(param);
      // Rows that hold several types differ in single bytes, by roundings that go the other way.
      if (param == kKvCache && config.PerGroup()) {
        size_t different = 0;
        for (size_t i = 0; i < found.size(); ++i) different += found[i] != expected[i] ? 1 : 0;
        EXPECT_LE(static_cast<double>(different), 0.005 * static_cast<double>(found.size())) << ParamName(param);
        continue;
      }
      double difference = 0;
      double magnitude = 0;
      for (size_t i = 0; i < found.size() / call[param].ElementBytes(); ++i) {
        const double wanted = NumberAt(expected, call[param].dtype, i);
        const double got = NumberAt(found, call[param].dtype, i);
        ASSERT_EQ(std::isfinite(got), std::isfinite(wanted)) << ParamName(param) << " " << i;
        if (!std::isfinite(wanted)) continue;
        difference += (got - wanted) * (got - wanted);
        magnitude += wanted * wanted;
      }
      EXPECT_LE(std::sqrt(difference), 2e-3 * std::sqrt(magnitude)) << ParamName(param);
    }
  }
};

TEST_F(AgainstReference, EveryScenarioAndCacheMode) {
  const ScopedSoc soc("none");
  std::vector<Scenario> scenarios = AllScenarios();
  scenarios.push_back({Version::kV1, 2, 0, true});
  for (const Scenario& scenario : scenarios) {
    // Without a device the rules are those of the oldest that computes the scenario.
    const NumericRules rules = scenario.weight_mode >= 3 ? NumericRules::k950 : NumericRules::kA2;
    for (const char* mode : ModesOf(scenario)) {
      for (const Config& config : FormsOf(TinyConfig(scenario, mode), 6)) Check(config, rules);
    }
    Check(MediumConfig(scenario), rules);
  }
}

TEST_F(AgainstReference, DevicesHaveTheirRules) {
  for (const Scenario& scenario : kScenarios) {
    if (scenario.version == Version::kV1) continue;
    Config config;
    config.scenario = scenario;
    Check(config, NumericRules::kA2);
  }
  const ScopedSoc soc("ascend950");
  for (const Scenario& scenario : kScenarios950) {
    Config config;
    config.scenario = scenario;
    Check(config, NumericRules::k950);
  }
}

}  // namespace
}  // namespace mlap::prolog_test
