#include "api/run_args_check.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "api/strided_copy.h"

namespace mlap {
namespace {

constexpr int64_t kCopyAlignment = 64;

// Which kv_quant goes with which weights.
constexpr bool kTakesKv[][4] = {
    {true, false, false, false}, {true, false, true, true}, {true, true, false, true},
    {true, true, false, true},   {true, true, false, true}, {true, true, false, true},
};
constexpr const char* kKvNames[] = {"MLAP_KV_BF16", "MLAP_KV_PER_TENSOR", "MLAP_KV_PER_CHANNEL", "MLAP_KV_PER_GROUP"};

struct ModeRow {
  const char* name;
  SlotRule rule;
  CacheOrder order;
};
constexpr ModeRow kModes[] = {
    {"MLAP_PA_BSND", SlotRule::kIndex, CacheOrder::kRows},      {"MLAP_PA_NZ", SlotRule::kIndex, CacheOrder::kNz},
    {"MLAP_PA_BLK_BSND", SlotRule::kBlocks, CacheOrder::kRows}, {"MLAP_PA_BLK_NZ", SlotRule::kBlocks, CacheOrder::kNz},
    {"MLAP_BSND", SlotRule::kTokens, CacheOrder::kRows},        {"MLAP_TND", SlotRule::kTokens, CacheOrder::kRows},
};

// Also of numbers that std::to_string writes as zeros.
std::string NumberText(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", number);
  return text;
}

class CallBinder {
 public:
  CallBinder(const LayerWeights& weights, const mlap_run_args& args, BoundCall* call)
      : in_(args),
        call_(*call),
        to_(call->args),
        takes_kv_(kTakesKv[static_cast<int>(weights.args.mode.weight_quant)]) {
    to_ = weights.args;
  }

  Status Bind(CallParts parts) {
    Attributes();
    if (checks_.ok()) Lead();
    if (checks_.ok()) Inputs();
    if (parts == CallParts::kAll) {
      if (checks_.ok()) Caches();
      if (checks_.ok()) Slots();
      if (checks_.ok()) KeyScales();
      if (checks_.ok()) Outputs();
    }
    return checks_.status();
  }

 private:
  template <class T>
  void Input(const char* name, const mlap_tensor& tensor, mlap_dtype dtype, const Dims& dims, T** pointer) {
    if (checks_.CheckStrided(name, tensor, dtype, dims, Access::kRead)) call_.Bind(tensor, Access::kRead, pointer);
  }
  template <class T>
  void Output(const char* name, const mlap_tensor& tensor, mlap_dtype dtype, const Dims& dims, T** pointer) {
    if (checks_.CheckStrided(name, tensor, dtype, dims, Access::kWrite)) call_.Bind(tensor, Access::kWrite, pointer);
  }

  // The dimensions `dims` with or without a 1, wherever it stands: as the tensor has them, if it may.
  static Dims OneOf(const mlap_tensor& tensor, const Dims& dims, const Dims& longer) {
    return tensor.rank == longer.rank ? longer : dims;
  }

  void Absent(const char* name, const mlap_tensor& tensor, const char* where) {
    if (!IsAbsent(tensor))
      checks_.Refuse(name, std::string("no tensor ") + where, DimsText(DimsOf(tensor)), "leave it out");
  }

  void Attributes() {
    const auto check_enum = [&](const char* name, int value, int count) {
      if (value >= 0 && value < count) return;
      checks_.Refuse(name, "a value from 0 to " + std::to_string(count - 1), std::to_string(value),
                     "use a constant of mlaprolog.h");
    };
    check_enum("cache_mode", in_.cache_mode, MLAP_TND + 1);
    check_enum("kv_quant", in_.kv_quant, MLAP_KV_PER_GROUP + 1);
    check_enum("rope_style", in_.rope_style, MLAP_ROPE_NONE + 1);
    check_enum("rules", in_.rules, MLAP_RULES_950 + 1);
    if (!checks_.ok()) return;
    for (const auto& [name, factor] :
         {std::pair{"qc_qr_scale", in_.qc_qr_scale}, std::pair{"kc_scale", in_.kc_scale}}) {
      // A 0 is a struct that was not initialised. What binary32 rounds to 0 is meant, and multiplies as the device
      // does.
      if (factor != 0.0 && std::isfinite(static_cast<float>(factor))) continue;
      checks_.Refuse(name, "a factor other than 0 that is finite in binary32, 1 for none", NumberText(factor),
                     "mlap_run_args_init sets it to 1");
    }
    for (const auto& [name, epsilon] : {std::pair{"rmsnorm_epsilon_cq", in_.rmsnorm_epsilon_cq},
                                        std::pair{"rmsnorm_epsilon_ckv", in_.rmsnorm_epsilon_ckv}}) {
      if (epsilon >= 0.0 && std::isfinite(static_cast<float>(epsilon))) continue;
      checks_.Refuse(name, "0 or more and finite in binary32", NumberText(epsilon),
                     "mlap_run_args_init sets it to 1e-5");
    }
    if (!takes_kv_[in_.kv_quant]) {
      std::string legal;
      for (int kv = 0; kv <= MLAP_KV_PER_GROUP; ++kv) {
        if (takes_kv_[kv]) legal += (legal.empty() ? "" : ", ") + std::string(kKvNames[kv]);
      }
      checks_.Refuse("kv_quant", legal + " with weights of these types", kKvNames[in_.kv_quant],
                     "choose one of these, or weights of other types");
    }
    if (in_.kv_quant == MLAP_KV_PER_GROUP && kModes[in_.cache_mode].order == CacheOrder::kNz) {
      checks_.Refuse("cache_mode", "a mode of rows with MLAP_KV_PER_GROUP", kModes[in_.cache_mode].name,
                     "use MLAP_PA_BSND, MLAP_PA_BLK_BSND, MLAP_BSND or MLAP_TND");
    }
    to_.mode.kv_quant = static_cast<KvQuant>(in_.kv_quant);
    to_.mode.rules = static_cast<NumericRules>(in_.rules);
    to_.mode.rope_style = static_cast<RopeStyle>(in_.rope_style);
    to_.mode.epsilon_cq = static_cast<float>(in_.rmsnorm_epsilon_cq);
    to_.mode.epsilon_ckv = static_cast<float>(in_.rmsnorm_epsilon_ckv);
    to_.mode.cq_factor = static_cast<float>(in_.qc_qr_scale);
    to_.mode.ckv_factor = static_cast<float>(in_.kc_scale);
  }

  void Lead() {
    if (!checks_.CheckStruct("token_x", in_.token_x)) return;
    checks_.CheckRank("token_x", in_.token_x, {2, 3});
    if (!checks_.ok()) return;
    for (int i = 0; i < in_.token_x.rank - 1; ++i) lead_.Append(in_.token_x.dims[i]);
    tokens_ = to_.shape.tokens = lead_.Count();
    if (in_.cache_mode == MLAP_BSND && lead_.rank != 2) {
      checks_.Refuse("token_x", "[B, S, He] with MLAP_BSND", DimsText(DimsOf(in_.token_x)));
    }
    if (in_.cache_mode == MLAP_TND && lead_.rank != 1) {
      checks_.Refuse("token_x", "[T, He] with MLAP_TND", DimsText(DimsOf(in_.token_x)));
    }
  }

  void Inputs() {
    const PrologShape& shape = to_.shape;
    Input("token_x", in_.token_x, ToDtype(to_.mode.TokenType()), lead_.Then({shape.hidden}), &to_.token_x);
    if (!to_.mode.QuantizesX()) {
      Absent("dequant_scale_x", in_.dequant_scale_x, "with a BF16 token_x");
    } else if (to_.mode.weight_quant == WeightQuant::kMxFp8) {
      Input("dequant_scale_x", in_.dequant_scale_x, MLAP_FLOAT8_E8M0, {tokens_, shape.hidden / kMxGroup},
            &to_.mx_scale_x);
    } else {
      Input("dequant_scale_x", in_.dequant_scale_x, MLAP_FLOAT32, OneOf(in_.dequant_scale_x, {tokens_}, {tokens_, 1}),
            &to_.dequant_scale_x);
    }
    if (in_.rope_style == MLAP_ROPE_NONE) {
      Absent("rope_sin", in_.rope_sin, "with MLAP_ROPE_NONE");
      Absent("rope_cos", in_.rope_cos, "with MLAP_ROPE_NONE");
    } else {
      Input("rope_sin", in_.rope_sin, MLAP_BF16, lead_.Then({shape.rope}), &to_.rope_sin);
      Input("rope_cos", in_.rope_cos, MLAP_BF16, lead_.Then({shape.rope}), &to_.rope_cos);
    }
  }

  // A cache whose shape starts with [BlockNum, BlockSize], or as the tokens where they are the slots.
  CacheView Cache(const char* name, const mlap_tensor& tensor, mlap_dtype dtype, int64_t width) {
    const bool is_tnd = in_.cache_mode == MLAP_TND;
    Dims dims;
    if (kModes[in_.cache_mode].rule == SlotRule::kTokens) {
      dims = lead_.Then({1, width});
    } else {
      dims = {in_.kv_cache.dims[0], in_.kv_cache.dims[1], 1, width};
    }
    if (!checks_.CheckStrided(name, tensor, dtype, dims, Access::kWrite)) return {};
    const StridedView strided = ViewOf(tensor);
    const ElementType type = ToElementType(dtype);
    CacheView view = ContiguousCache(tensor.data, type, kModes[in_.cache_mode].order, dims.size[0],
                                     is_tnd ? 1 : dims.size[1], width);
    view.block_stride = strided.strides[0];
    view.slot_stride = strided.strides[is_tnd ? 0 : 1];
    view.element_stride = strided.strides[dims.rank - 1];
    const int64_t c0 = FractalColumns(type);
    if (view.order == CacheOrder::kNz && width % c0 != 0) {
      checks_.Refuse(name, "rows of a multiple of " + std::to_string(c0) + " elements in NZ pages",
                     std::to_string(width));
    }
    return view;
  }

  void Caches() {
    const PrologShape& shape = to_.shape;
    if (!checks_.CheckStruct("kv_cache", in_.kv_cache)) return;
    checks_.CheckRank("kv_cache", in_.kv_cache, {in_.cache_mode == MLAP_TND ? 3 : 4});
    if (checks_.ok() && kModes[in_.cache_mode].rule != SlotRule::kTokens && in_.kv_cache.dims[1] < 1) {
      checks_.Refuse("kv_cache", "pages of at least one slot", DimsText(DimsOf(in_.kv_cache)));
    }
    if (!checks_.ok()) return;
    if (in_.kv_quant == MLAP_KV_PER_GROUP) {
      to_.kv_cache =
          Cache("kv_cache", in_.kv_cache, ToDtype(to_.mode.QuantType()), GroupRow{shape.kv_rank, shape.rope}.Bytes());
      if (!IsAbsent(in_.kr_cache) && checks_.CheckStruct("kr_cache", in_.kr_cache) &&
          DimsOf(in_.kr_cache).Count() != 0) {
        checks_.Refuse("kr_cache", "an empty tensor or none with MLAP_KV_PER_GROUP, as kv_cache holds its rows",
                       DimsText(DimsOf(in_.kr_cache)));
      }
      return;
    }
    to_.kv_cache = Cache("kv_cache", in_.kv_cache,
                         in_.kv_quant == MLAP_KV_BF16 ? MLAP_BF16 : ToDtype(to_.mode.QuantType()), shape.kv_rank);
    to_.kr_cache =
        Cache("kr_cache", in_.kr_cache, in_.kv_quant == MLAP_KV_PER_CHANNEL ? MLAP_INT8 : MLAP_BF16, shape.rope);
  }

  void Slots() {
    TokenSlots& slots = to_.slots;
    slots.rule = kModes[in_.cache_mode].rule;
    if (slots.rule == SlotRule::kTokens) {
      Absent("cache_index", in_.cache_index, "with this cache_mode");
    } else if (slots.rule == SlotRule::kIndex) {
      Input("cache_index", in_.cache_index, MLAP_INT64, lead_, &slots.cache_index);
      slots.num_indices = tokens_;
    } else {
      BlockSlots();
      return;
    }
    Absent("actual_seq_len", in_.actual_seq_len, "with this cache_mode");
  }

  void BlockSlots() {
    TokenSlots& slots = to_.slots;
    if (lead_.rank == 2) {
      slots.num_sequences = lead_.size[0];
      slots.sequence_length = lead_.size[1];
      const int64_t pages = CeilDiv(slots.sequence_length, to_.kv_cache.block_size);
      Input("cache_index", in_.cache_index, MLAP_INT64, {slots.num_sequences, pages}, &slots.cache_index);
      slots.num_indices = slots.num_sequences * pages;
      Absent("actual_seq_len", in_.actual_seq_len, "with token_x [B, S, He]");
      return;
    }
    if (!checks_.CheckStruct("actual_seq_len", in_.actual_seq_len)) return;
    Input("actual_seq_len", in_.actual_seq_len, MLAP_INT32, {in_.actual_seq_len.dims[0]}, &slots.sequence_ends);
    slots.num_sequences = in_.actual_seq_len.dims[0];
    if (!checks_.CheckStruct("cache_index", in_.cache_index)) return;
    Input("cache_index", in_.cache_index, MLAP_INT64, {in_.cache_index.dims[0]}, &slots.cache_index);
    slots.num_indices = in_.cache_index.dims[0];
  }

  void KeyScales() {
    const PrologShape& shape = to_.shape;
    const char* const where = "with this kv_quant";
    if (in_.kv_quant == MLAP_KV_PER_CHANNEL) {
      Input("quant_scale_ckv", in_.quant_scale_ckv, MLAP_FLOAT32,
            OneOf(in_.quant_scale_ckv, {shape.kv_rank}, {1, shape.kv_rank}), &to_.quant_scale_ckv);
      Input("quant_scale_ckr", in_.quant_scale_ckr, MLAP_FLOAT32,
            OneOf(in_.quant_scale_ckr, {shape.rope}, {1, shape.rope}), &to_.quant_scale_ckr);
    } else {
      if (in_.kv_quant == MLAP_KV_PER_TENSOR) {
        Input("quant_scale_ckv", in_.quant_scale_ckv, MLAP_FLOAT32, {1}, &to_.quant_scale_ckv);
      } else {
        Absent("quant_scale_ckv", in_.quant_scale_ckv, where);
      }
      Absent("quant_scale_ckr", in_.quant_scale_ckr, where);
    }
    if (in_.kv_quant == MLAP_KV_PER_GROUP && to_.mode.QuantType() == ElementType::kInt8) {
      Input("k_nope_clip_alpha", in_.k_nope_clip_alpha, MLAP_FLOAT32, {1}, &to_.k_nope_clip_alpha);
    } else {
      Absent("k_nope_clip_alpha", in_.k_nope_clip_alpha, where);
    }
  }

  void Outputs() {
    const PrologShape& shape = to_.shape;
    const bool quantizes_query = to_.mode.QuantizesQuery();
    Output("query", in_.query, quantizes_query ? ToDtype(to_.mode.TokenType()) : MLAP_BF16,
           lead_.Then({shape.heads, shape.kv_rank}), &to_.query);
    Output("query_rope", in_.query_rope, MLAP_BF16, lead_.Then({shape.heads, shape.rope}), &to_.query_rope);
    if (quantizes_query) {
      Output("dequant_scale_q_nope", in_.dequant_scale_q_nope, MLAP_FLOAT32,
             OneOf(in_.dequant_scale_q_nope, {tokens_, shape.heads}, {tokens_, shape.heads, 1}),
             &to_.dequant_scale_q_nope);
    } else {
      Absent("dequant_scale_q_nope", in_.dequant_scale_q_nope, "with this kv_quant");
    }
    if (IsAbsent(in_.query_norm)) {
      return Absent("dequant_scale_q_norm", in_.dequant_scale_q_norm, "without query_norm");
    }
    if (shape.q_rank == 0) return Absent("query_norm", in_.query_norm, "with weights without weight_dq");
    Output("query_norm", in_.query_norm, ToDtype(to_.mode.CqType()), lead_.Then({shape.q_rank}), &to_.query_norm);
    const mlap_tensor& scale = in_.dequant_scale_q_norm;
    if (!to_.mode.QuantizesCq()) {
      Absent("dequant_scale_q_norm", scale, "with a BF16 query_norm");
    } else if (to_.mode.weight_quant == WeightQuant::kMxFp8) {
      Output("dequant_scale_q_norm", scale, MLAP_FLOAT8_E8M0, {tokens_, shape.q_rank / kMxGroup}, &to_.mx_scale_q_norm);
    } else {
      Output("dequant_scale_q_norm", scale, MLAP_FLOAT32, OneOf(scale, {tokens_}, {tokens_, 1}),
             &to_.dequant_scale_q_norm);
    }
  }

  const mlap_run_args& in_;
  BoundCall& call_;
  PrologArgs& to_;
  const bool (&takes_kv_)[4];
  TensorChecks checks_;
  Dims lead_;
  int64_t tokens_ = 0;
};

void SetPointer(void* pointer, void* address) { std::memcpy(pointer, &address, sizeof(address)); }

}  // namespace

void BoundCall::BindAddress(const mlap_tensor& tensor, Access access, void* pointer) {
  SetPointer(pointer, tensor.data);
  const StridedView view = ViewOf(tensor);
  if (view.IsContiguous() || view.dims.Count() == 0) return;
  copies_[num_copies_++] = {view, {}, access, pointer};
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(view.dims.Count()), static_cast<uint64_t>(view.element_bytes),
                             &bytes) ||
      __builtin_add_overflow(copy_bytes_, bytes + 2 * kCopyAlignment, &copy_bytes_)) {
    throw std::bad_alloc();
  }
}

void BoundCall::GatherInputs(char* memory) {
  for (int i = 0; i < num_copies_; ++i) {
    Copy& copy = copies_[i];
    const uintptr_t misaligned = reinterpret_cast<uintptr_t>(memory) % kCopyAlignment;
    memory += misaligned == 0 ? 0 : kCopyAlignment - misaligned;
    copy.dense = DenseView(copy.tensor, memory);
    SetPointer(copy.pointer, memory);
    if (copy.access == Access::kRead) CopyStrided(copy.tensor, copy.dense);
    memory += copy.tensor.dims.Count() * copy.tensor.element_bytes;
  }
}

void BoundCall::ScatterOutputs() const {
  for (int i = 0; i < num_copies_; ++i) {
    if (copies_[i].access == Access::kWrite) CopyStrided(copies_[i].dense, copies_[i].tensor);
  }
}

Status BindRunArgs(const LayerWeights& weights, const mlap_run_args& args, BoundCall* call, CallParts parts) {
  return CallBinder(weights, args, call).Bind(parts);
}

}  // namespace mlap

void mlap_run_args_init(mlap_run_args* args) {
  if (args == nullptr) return;
  *args = mlap_run_args{};
  args->struct_size = sizeof(*args);
  args->rmsnorm_epsilon_cq = 1e-5;
  args->rmsnorm_epsilon_ckv = 1e-5;
  args->qc_qr_scale = 1.0;
  args->kc_scale = 1.0;
}
