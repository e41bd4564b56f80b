#include "engine/golden_case.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/e4m3.h"
#include "base/hif8.h"

namespace mlap::test {

using tools::Dtype;
using tools::TensorView;

std::string GoldenCase::Metadata(const std::string& key) const { return file_.metadata().at(key); }

template <class T>
const T* GoldenCase::Pointer(const std::string& name) const {
  const TensorView* tensor = file_.Find(name);
  return tensor == nullptr ? nullptr : reinterpret_cast<const T*>(tensor->bytes);
}

namespace {

// HiFloat8 has no type of its own in these files.
ElementType TypeOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::kI8:
      return ElementType::kInt8;
    case Dtype::kF8E4M3:
      return ElementType::kE4m3;
    case Dtype::kU8:
      return ElementType::kHiF8;
    case Dtype::kF32:
      return ElementType::kFloat32;
    default:
      return ElementType::kBf16;
  }
}

}  // namespace

WeightView GoldenCase::Weight(const std::string& name, int64_t k, int64_t n) const {
  const TensorView& tensor = file_.Tensor(name);
  return tensor.shape.size() == 2 ? RowMajorWeight(tensor.bytes, TypeOf(tensor.dtype), k, n)
                                  : NzWeight(tensor.bytes, TypeOf(tensor.dtype), k, n);
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
  return ToNumbers(Bytes(name), TypeOf(tensor->dtype));
}

GoldenCase::Outputs GoldenCase::FreshOutputs() const {
  Outputs out;
  out.query.assign(Bytes("expected.query").size(), 0xff);
  out.query_rope.assign(Bytes("expected.query_rope").size(), 0xff);
  out.query_norm.assign(Bytes("expected.query_norm").size(), 0xff);
  out.dequant_scale_q_nope.assign(Numbers("expected.dequant_scale_q_nope").size(), -1.0f);
  const std::vector<uint8_t> norm_scale = Bytes("expected.dequant_scale_q_norm");
  if (Metadata("weight_quant_mode") == "3") {
    out.mx_scale_q_norm.assign(norm_scale.size(), 0x77);
  } else {
    out.dequant_scale_q_norm.assign(norm_scale.size() / sizeof(float), -1.0f);
  }
  out.kv_cache = Bytes("kv_cache");
  out.kr_cache = Bytes("kr_cache");
  return out;
}

TokenSlots GoldenCase::Slots(int64_t tokens) const {
  TokenSlots slots;
  const std::string mode = Metadata("cache_mode");
  slots.cache_index = Pointer<int64_t>("cache_index");
  slots.rule = mode == "BSND" || mode == "TND" ? SlotRule::kTokens
               : mode.starts_with("PA_BLK")    ? SlotRule::kBlocks
                                               : SlotRule::kIndex;
  if (slots.rule != SlotRule::kBlocks) return slots;
  slots.num_indices = static_cast<int64_t>(Bytes("cache_index").size() / sizeof(int64_t));
  slots.sequence_ends = Pointer<int32_t>("actual_seq_len");
  slots.num_sequences =
      slots.sequence_ends != nullptr ? file_.Tensor("actual_seq_len").shape[0] : file_.Tensor("token_x").shape[0];
  slots.sequence_length = slots.num_sequences == 0 ? 0 : tokens / slots.num_sequences;
  return slots;
}

// The shape is [BlockNum, BlockSize, 1, width], [T, 1, width], or [0] for one that is not used.
CacheView GoldenCase::Cache(const std::string& name, std::vector<uint8_t>* memory) const {
  const TensorView& tensor = file_.Tensor(name);
  const std::vector<int64_t>& shape = tensor.shape;
  if (shape.size() == 1) return {};
  const bool is_nz = Metadata("cache_mode").ends_with("_NZ");
  return ContiguousCache(memory->data(), TypeOf(tensor.dtype), is_nz ? CacheOrder::kNz : CacheOrder::kRows, shape[0],
                         shape.size() == 4 ? shape[1] : 1, shape.back());
}

PrologArgs GoldenCase::Args(Outputs* out) const {
  PrologArgs args;
  PrologShape& shape = args.shape;
  shape = {1, Size("hidden"), Size("q_rank"), Size("heads"), Size("nope"), Size("rope"), Size("kv_rank")};
  const std::vector<int64_t>& x_shape = file_.Tensor("token_x").shape;
  for (size_t i = 0; i + 1 < x_shape.size(); ++i) shape.tokens *= x_shape[i];
  args.mode.weight_quant = static_cast<WeightQuant>(Size("weight_quant_mode"));
  args.mode.kv_quant = static_cast<KvQuant>(Size("kv_cache_quant_mode"));
  args.mode.epsilon_cq = std::stof(Metadata("rmsnorm_epsilon_cq"));
  args.mode.epsilon_ckv = std::stof(Metadata("rmsnorm_epsilon_ckv"));
  args.mode.cq_factor = std::stof(Metadata("qc_qr_scale"));
  args.mode.ckv_factor = std::stof(Metadata("kc_scale"));
  args.mode.rules = Metadata("soc") == "ascend950" ? NumericRules::k950 : NumericRules::kA2;
  args.token_x = Pointer<void>("token_x");
  args.weight_dq = Weight("weight_dq", shape.hidden, shape.q_rank);
  args.weight_uq_qr = Weight("weight_uq_qr", shape.q_rank, shape.heads * shape.HeadColumns());
  args.weight_uk = Pointer<Bf16>("weight_uk");
  args.weight_dkv_kr = Weight("weight_dkv_kr", shape.hidden, shape.KvColumns());
  args.gamma_cq = Pointer<Bf16>("rmsnorm_gamma_cq");
  args.gamma_ckv = Pointer<Bf16>("rmsnorm_gamma_ckv");
  args.rope_sin = Pointer<Bf16>("rope_sin");
  args.rope_cos = Pointer<Bf16>("rope_cos");
  args.slots = Slots(shape.tokens);
  args.kv_cache = Cache("kv_cache", &out->kv_cache);
  args.kr_cache = Cache("kr_cache", &out->kr_cache);
  struct Scale {
    const char* name;
    const float* PrologArgs::*scale;
    const uint8_t* PrologArgs::*mx_scale;
  };
  for (const Scale& scale :
       {Scale{"dequant_scale_x", &PrologArgs::dequant_scale_x, &PrologArgs::mx_scale_x},
        Scale{"dequant_scale_w_dq", &PrologArgs::dequant_scale_w_dq, &PrologArgs::mx_scale_w_dq},
        Scale{"dequant_scale_w_uq_qr", &PrologArgs::dequant_scale_w_uq_qr, &PrologArgs::mx_scale_w_uq_qr},
        Scale{"dequant_scale_w_dkv_kr", &PrologArgs::dequant_scale_w_dkv_kr, &PrologArgs::mx_scale_w_dkv_kr}}) {
    if (args.mode.weight_quant == WeightQuant::kMxFp8) {
      args.*scale.mx_scale = Pointer<uint8_t>(scale.name);
    } else {
      args.*scale.scale = Pointer<float>(scale.name);
    }
  }
  args.quant_scale_ckv = Pointer<float>("quant_scale_ckv");
  args.quant_scale_ckr = Pointer<float>("quant_scale_ckr");
  args.smooth_scales_cq = Pointer<float>("smooth_scales_cq");
  args.k_nope_clip_alpha = Pointer<float>("k_nope_clip_alpha");
  args.query = out->query.data();
  args.query_rope = reinterpret_cast<Bf16*>(out->query_rope.data());
  args.dequant_scale_q_nope = out->dequant_scale_q_nope.data();
  if (!out->query_norm.empty()) args.query_norm = out->query_norm.data();
  if (!out->dequant_scale_q_norm.empty()) args.dequant_scale_q_norm = out->dequant_scale_q_norm.data();
  if (!out->mx_scale_q_norm.empty()) args.mx_scale_q_norm = out->mx_scale_q_norm.data();
  return args;
}

std::vector<float> ToNumbers(const std::vector<uint8_t>& bytes, ElementType type) {
  std::vector<float> numbers(bytes.size() / static_cast<size_t>(ElementBytes(type)));
  for (size_t i = 0; i < numbers.size(); ++i) {
    switch (type) {
      case ElementType::kInt8:
        numbers[i] = static_cast<int8_t>(bytes[i]);
        break;
      case ElementType::kE4m3:
        numbers[i] = ToFloat(E4m3{bytes[i]});
        break;
      case ElementType::kHiF8:
        numbers[i] = ToFloat(HiF8{bytes[i]});
        break;
      case ElementType::kFloat32:
        std::memcpy(&numbers[i], &bytes[4 * i], sizeof(float));
        break;
      default: {
        Bf16 value;
        std::memcpy(&value, &bytes[2 * i], sizeof(value));
        numbers[i] = ToFloat(value);
      }
    }
  }
  return numbers;
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
