#include "engine/golden_case.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace mlap::test {

using tools::Dtype;
using tools::TensorView;

std::string GoldenCase::Metadata(const std::string& key) const { return file_.metadata().at(key); }

template <class T>
const T* GoldenCase::Pointer(const std::string& name) const {
  const TensorView* tensor = file_.Find(name);
  return tensor == nullptr ? nullptr : reinterpret_cast<const T*>(tensor->bytes);
}

WeightView GoldenCase::Weight(const std::string& name, int64_t k, int64_t n) const {
  const TensorView& tensor = file_.Tensor(name);
  return NzWeight(tensor.bytes, tensor.dtype == Dtype::kI8 ? ElementType::kInt8 : ElementType::kBf16, k, n);
}

std::vector<uint8_t> GoldenCase::Bytes(const std::string& name) const {
  const TensorView* tensor = file_.Find(name);
  if (tensor == nullptr) return {};
  const auto* bytes = reinterpret_cast<const uint8_t*>(tensor->bytes);
  return {bytes, bytes + tensor->num_bytes};
}

std::vector<float> GoldenCase::Numbers(const std::string& name) const {
  const TensorView* tensor = file_.Find(name);
  if (tensor == nullptr) return {};
  std::vector<float> numbers(tensor->num_bytes / tools::DtypeBytes(tensor->dtype));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (tensor->dtype == Dtype::kBF16) {
      numbers[i] = ToFloat(reinterpret_cast<const Bf16*>(tensor->bytes)[i]);
    } else if (tensor->dtype == Dtype::kI8) {
      numbers[i] = reinterpret_cast<const int8_t*>(tensor->bytes)[i];
    } else {
      numbers[i] = reinterpret_cast<const float*>(tensor->bytes)[i];
    }
  }
  return numbers;
}

GoldenCase::Outputs GoldenCase::FreshOutputs() const {
  Outputs out;
  out.query.assign(Bytes("expected.query").size(), 0xff);
  out.query_rope.assign(Bytes("expected.query_rope").size(), 0xff);
  out.dequant_scale_q_nope.assign(Numbers("expected.dequant_scale_q_nope").size(), -1.0f);
  out.kv_cache = Bytes("kv_cache");
  out.kr_cache = Bytes("kr_cache");
  return out;
}

PrologArgs GoldenCase::Args(Outputs* out) const {
  PrologArgs args;
  PrologShape& shape = args.shape;
  shape = {0, Size("hidden"), Size("q_rank"), Size("heads"), Size("nope"), Size("rope"), Size("kv_rank")};
  const std::vector<int64_t>& lead = file_.Tensor("cache_index").shape;
  shape.tokens = 1;
  for (const int64_t dim : lead) shape.tokens *= dim;
  struct Row {
    const char* scenario;
    WeightQuant weight_quant;
    KvQuant kv_quant;
  };
  static constexpr Row kRows[] = {{"non_quant", WeightQuant::kNone, KvQuant::kNone},
                                  {"partial", WeightQuant::kUqQr, KvQuant::kNone},
                                  {"partial_kv_per_channel", WeightQuant::kUqQr, KvQuant::kPerChannel},
                                  {"full_int8", WeightQuant::kFull, KvQuant::kNone},
                                  {"full_int8_kv_per_tensor", WeightQuant::kFull, KvQuant::kPerTensor}};
  for (const Row& row : kRows) {
    if (Scenario() != row.scenario) continue;
    args.mode.weight_quant = row.weight_quant;
    args.mode.kv_quant = row.kv_quant;
  }
  args.mode.epsilon_cq = static_cast<float>(std::stod(Metadata("rmsnorm_epsilon_cq")));
  args.mode.epsilon_ckv = static_cast<float>(std::stod(Metadata("rmsnorm_epsilon_ckv")));
  args.token_x = Pointer<void>("token_x");
  args.weight_dq = Weight("weight_dq", shape.hidden, shape.q_rank);
  args.weight_uq_qr = Weight("weight_uq_qr", shape.q_rank, shape.heads * shape.HeadColumns());
  args.weight_uk = Pointer<Bf16>("weight_uk");
  args.weight_dkv_kr = Weight("weight_dkv_kr", shape.hidden, shape.KvColumns());
  args.gamma_cq = Pointer<Bf16>("rmsnorm_gamma_cq");
  args.gamma_ckv = Pointer<Bf16>("rmsnorm_gamma_ckv");
  args.rope_sin = Pointer<Bf16>("rope_sin");
  args.rope_cos = Pointer<Bf16>("rope_cos");
  args.slots.cache_index = Pointer<int64_t>("cache_index");
  args.dequant_scale_x = Pointer<float>("dequant_scale_x");
  args.dequant_scale_w_dq = Pointer<float>("dequant_scale_w_dq");
  args.dequant_scale_w_dkv_kr = Pointer<float>("dequant_scale_w_dkv_kr");
  args.dequant_scale_w_uq_qr = Pointer<float>("dequant_scale_w_uq_qr");
  args.quant_scale_ckv = Pointer<float>("quant_scale_ckv");
  args.quant_scale_ckr = Pointer<float>("quant_scale_ckr");
  args.smooth_scales_cq = Pointer<float>("smooth_scales_cq");
  const CacheOrder order = Metadata("cache_mode") == "PA_NZ" ? CacheOrder::kNz : CacheOrder::kRows;
  const auto cache = [&](const std::string& name, std::vector<uint8_t>* memory) {
    const TensorView& tensor = file_.Tensor(name);
    return ContiguousCache(memory->data(), tensor.dtype == Dtype::kI8 ? ElementType::kInt8 : ElementType::kBf16, order,
                           tensor.shape[0], tensor.shape[1], tensor.shape[3]);
  };
  args.kv_cache = cache("kv_cache", &out->kv_cache);
  args.kr_cache = cache("kr_cache", &out->kr_cache);
  args.query = out->query.data();
  args.dequant_scale_q_nope = out->dequant_scale_q_nope.data();
  args.query_rope = reinterpret_cast<Bf16*>(out->query_rope.data());
  return args;
}

std::vector<std::string> GoldenCaseNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(MLAP_GOLDEN_CASES)) {
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string GoldenCasePath(const std::string& name) {
  return std::string(MLAP_GOLDEN_CASES) + "/" + name + ".safetensors";
}

}  // namespace mlap::test
