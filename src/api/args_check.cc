#include "api/args_check.h"

#include <algorithm>
#include <string>
#include <vector>

namespace mlap {
namespace {

const char* DtypeText(mlap_dtype dtype) {
  switch (dtype) {
    case MLAP_BF16:
      return "BF16";
    case MLAP_INT8:
      return "INT8";
    case MLAP_FLOAT32:
      return "FLOAT32";
    case MLAP_INT64:
      return "INT64";
    case MLAP_INT32:
      return "INT32";
  }
  return "an unknown type";
}

std::string DimsText(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  return text + "]";
}

std::string DimsText(const mlap_tensor& tensor) {
  return DimsText(std::vector<int64_t>(tensor.dims, tensor.dims + std::clamp(tensor.rank, 0, MLAP_MAX_RANK)));
}

bool IsAbsent(const mlap_tensor& tensor) { return tensor.data == nullptr && tensor.rank == 0; }

// Collects the first fault of a call's tensors.
class TensorChecks {
 public:
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  void Refuse(const char* name, const std::string& expected, const std::string& found) {
    if (!ok()) return;
    status_ = Status(StatusCode::kInvalidArgument, std::string(name) + ": expected " + expected + ", found " + found);
  }

  // A tensor whose struct makes sense by itself: legal rank, dimensions that are not negative and multiply to less than
  // 2^59 elements.
  bool CheckStruct(const char* name, const mlap_tensor& tensor) {
    if (!ok()) return false;
    if (IsAbsent(tensor)) {
      Refuse(name, "a tensor", "none");
      return false;
    }
    if (tensor.rank < 1 || tensor.rank > MLAP_MAX_RANK) {
      Refuse(name, "a rank from 1 to 4", std::to_string(tensor.rank));
      return false;
    }
    int64_t count = 1;
    for (int i = 0; i < tensor.rank; ++i) {
      if (tensor.dims[i] < 0 || (tensor.dims[i] > 0 && __builtin_mul_overflow(count, tensor.dims[i], &count)) ||
          count > (int64_t{1} << 59)) {
        Refuse(name, "dimensions that are not negative and fit into memory", DimsText(tensor));
        return false;
      }
    }
    return true;
  }

  void CheckDtype(const char* name, const mlap_tensor& tensor, mlap_dtype dtype) {
    if (ok() && tensor.dtype != dtype) Refuse(name, DtypeText(dtype), DtypeText(tensor.dtype));
  }

  // The exact shape, row-major and contiguous, with memory behind it.
  void CheckPlain(const char* name, const mlap_tensor& tensor, mlap_dtype dtype, const std::vector<int64_t>& dims) {
    if (!CheckStruct(name, tensor)) return;
    CheckDtype(name, tensor, dtype);
    CheckDims(name, tensor, dims);
    if (!ok()) return;
    CheckRowMajor(name, tensor);
    if (!ok()) return;
    if (!IsContiguous(tensor)) return Refuse(name, "a contiguous tensor", "strides with gaps");
    CheckData(name, tensor);
  }

  void CheckRowMajor(const char* name, const mlap_tensor& tensor) {
    if (ok() && tensor.layout != MLAP_ROW_MAJOR) {
      Refuse(name, "layout MLAP_ROW_MAJOR", std::to_string(static_cast<int>(tensor.layout)));
    }
  }

  void CheckDims(const char* name, const mlap_tensor& tensor, const std::vector<int64_t>& dims) {
    if (ok() && std::vector<int64_t>(tensor.dims, tensor.dims + tensor.rank) != dims) {
      Refuse(name, "shape " + DimsText(dims), DimsText(tensor));
    }
  }

  void CheckData(const char* name, const mlap_tensor& tensor) {
    for (int i = 0; i < tensor.rank; ++i) {
      if (tensor.dims[i] == 0) return;
    }
    if (ok() && tensor.data == nullptr) Refuse(name, "memory", "a null pointer");
  }

  static bool IsContiguous(const mlap_tensor& tensor) {
    bool all_zero = true;
    for (int i = 0; i < tensor.rank; ++i) all_zero &= tensor.strides[i] == 0;
    if (all_zero) return true;
    int64_t expected = 1;
    for (int i = tensor.rank; i-- > 0;) {
      if (tensor.dims[i] != 1 && tensor.strides[i] != expected) return false;
      expected *= tensor.dims[i] > 0 ? tensor.dims[i] : 1;
    }
    return true;
  }

 private:
  Status status_;
};

ElementType ToElementType(mlap_dtype dtype) { return dtype == MLAP_INT8 ? ElementType::kInt8 : ElementType::kBf16; }

// W (k, n), row-major or FRACTAL_NZ.
WeightView CheckWeight(TensorChecks* checks, const char* name, const mlap_tensor& tensor, int64_t k, int64_t n) {
  if (!checks->CheckStruct(name, tensor)) return {};
  const ElementType type = ToElementType(tensor.dtype);
  if (tensor.dtype != MLAP_BF16 && tensor.dtype != MLAP_INT8) {
    checks->Refuse(name, "BF16 or INT8", DtypeText(tensor.dtype));
    return {};
  }
  const bool is_nz = tensor.layout == MLAP_FRACTAL_NZ;
  if (!is_nz) checks->CheckRowMajor(name, tensor);
  const int64_t c0 = FractalColumns(type);
  checks->CheckDims(name, tensor,
                    is_nz ? std::vector<int64_t>{CeilDiv(n, c0), CeilDiv(k, kFractalRows), kFractalRows, c0}
                          : std::vector<int64_t>{k, n});
  if (checks->ok() && !TensorChecks::IsContiguous(tensor))
    checks->Refuse(name, "a contiguous tensor", "strides with gaps");
  checks->CheckData(name, tensor);
  return is_nz ? NzWeight(tensor.data, type, k, n) : RowMajorWeight(tensor.data, type, k, n);
}

CacheView CheckCache(TensorChecks* checks, const char* name, const mlap_tensor& tensor, mlap_dtype dtype,
                     const std::vector<int64_t>& dims, CacheOrder order) {
  if (!checks->CheckStruct(name, tensor)) return {};
  checks->CheckDtype(name, tensor, dtype);
  checks->CheckRowMajor(name, tensor);
  checks->CheckDims(name, tensor, dims);
  checks->CheckData(name, tensor);
  if (!checks->ok()) return {};
  const ElementType type = ToElementType(dtype);
  CacheView view = ContiguousCache(tensor.data, type, order, dims[0], dims[1], dims[3]);
  if (!TensorChecks::IsContiguous(tensor)) {
    int64_t reach = 0;
    bool overflow = false;
    for (int i = 0; i < tensor.rank; ++i) {
      int64_t step = 0;
      overflow |= __builtin_mul_overflow(tensor.dims[i], tensor.strides[i], &step) ||
                  __builtin_add_overflow(reach, step < 0 ? -(step + 1) : step, &reach);
    }
    if (overflow || reach > (int64_t{1} << 59)) {
      checks->Refuse(name, "strides that stay in memory", "strides beyond 2^59 elements");
      return {};
    }
    view.block_stride = tensor.strides[0];
    view.slot_stride = tensor.strides[1];
    view.element_stride = tensor.strides[3];
  }
  if (order == CacheOrder::kNz && view.width % FractalColumns(type) != 0) {
    checks->Refuse(name, "rows of a multiple of " + std::to_string(FractalColumns(type)) + " elements for PA_NZ",
                   std::to_string(view.width));
  }
  return view;
}

}  // namespace

Status ToPrologArgs(const mlap_prolog_args& args, PrologArgs* out) {
  TensorChecks checks;
  checks.CheckStruct("token_x", args.token_x);
  checks.CheckStruct("weight_uk", args.weight_uk);
  checks.CheckStruct("rmsnorm_gamma_cq", args.rmsnorm_gamma_cq);
  checks.CheckStruct("rope_cos", args.rope_cos);
  checks.CheckStruct("kv_cache", args.kv_cache);
  checks.CheckStruct("weight_uq_qr", args.weight_uq_qr);
  if (!checks.ok()) return checks.status();
  if (args.token_x.rank != 2 && args.token_x.rank != 3) checks.Refuse("token_x", "rank 2 or 3", DimsText(args.token_x));
  if (args.weight_uk.rank != 3) checks.Refuse("weight_uk", "rank 3", DimsText(args.weight_uk));
  if (args.kv_cache.rank != 4) checks.Refuse("kv_cache", "rank 4", DimsText(args.kv_cache));
  if (args.cache_mode != MLAP_PA_BSND && args.cache_mode != MLAP_PA_NZ) {
    checks.Refuse("cache_mode", "MLAP_PA_BSND or MLAP_PA_NZ", std::to_string(static_cast<int>(args.cache_mode)));
  }
  if (!checks.ok()) return checks.status();

  PrologArgs result;
  PrologShape& shape = result.shape;
  std::vector<int64_t> lead(args.token_x.dims, args.token_x.dims + args.token_x.rank - 1);
  shape.tokens = lead.size() == 1 ? lead[0] : lead[0] * lead[1];
  shape.hidden = args.token_x.dims[args.token_x.rank - 1];
  shape.q_rank = args.rmsnorm_gamma_cq.dims[0];
  shape.heads = args.weight_uk.dims[0];
  shape.nope = args.weight_uk.dims[1];
  shape.kv_rank = args.weight_uk.dims[2];
  shape.rope = args.rope_cos.dims[args.rope_cos.rank - 1];
  constexpr int64_t kLargest = int64_t{1} << 28;
  for (const int64_t size : {shape.hidden, shape.q_rank, shape.heads, shape.nope, shape.kv_rank, shape.rope}) {
    if (size < 1 || size > kLargest) {
      checks.Refuse("token_x, weight_uk, rmsnorm_gamma_cq, rope_cos", "sizes from 1 to 2^28", std::to_string(size));
    }
  }
  if (shape.rope % 2 != 0) checks.Refuse("rope_cos", "an even last dimension", std::to_string(shape.rope));
  if (!checks.ok()) return checks.status();

  const auto with_lead = [&](std::vector<int64_t> dims) {
    dims.insert(dims.begin(), lead.begin(), lead.end());
    return dims;
  };
  const int64_t uq_columns = shape.heads * shape.HeadColumns();
  const bool int8_weight = args.weight_uq_qr.dtype == MLAP_INT8;
  const bool int8_cache = args.kv_cache.dtype == MLAP_INT8;
  result.mode.weight_quant = int8_weight ? WeightQuant::kUqQr : WeightQuant::kNone;
  result.mode.kv_quant = int8_cache ? KvQuant::kPerChannel : KvQuant::kNone;
  result.mode.epsilon_cq = static_cast<float>(args.rmsnorm_epsilon_cq);
  result.mode.epsilon_ckv = static_cast<float>(args.rmsnorm_epsilon_ckv);

  checks.CheckPlain("token_x", args.token_x, MLAP_BF16, with_lead({shape.hidden}));
  result.weight_dq = CheckWeight(&checks, "weight_dq", args.weight_dq, shape.hidden, shape.q_rank);
  checks.CheckDtype("weight_dq", args.weight_dq, MLAP_BF16);
  result.weight_uq_qr = CheckWeight(&checks, "weight_uq_qr", args.weight_uq_qr, shape.q_rank, uq_columns);
  checks.CheckPlain("weight_uk", args.weight_uk, MLAP_BF16, {shape.heads, shape.nope, shape.kv_rank});
  result.weight_dkv_kr = CheckWeight(&checks, "weight_dkv_kr", args.weight_dkv_kr, shape.hidden, shape.KvColumns());
  checks.CheckDtype("weight_dkv_kr", args.weight_dkv_kr, MLAP_BF16);
  checks.CheckPlain("rmsnorm_gamma_cq", args.rmsnorm_gamma_cq, MLAP_BF16, {shape.q_rank});
  checks.CheckPlain("rmsnorm_gamma_ckv", args.rmsnorm_gamma_ckv, MLAP_BF16, {shape.kv_rank});
  checks.CheckPlain("rope_sin", args.rope_sin, MLAP_BF16, with_lead({shape.rope}));
  checks.CheckPlain("rope_cos", args.rope_cos, MLAP_BF16, with_lead({shape.rope}));
  checks.CheckPlain("cache_index", args.cache_index, MLAP_INT64, lead);

  const CacheOrder order = args.cache_mode == MLAP_PA_NZ ? CacheOrder::kNz : CacheOrder::kRows;
  const mlap_dtype cache_dtype = int8_cache ? MLAP_INT8 : MLAP_BF16;
  const int64_t pages = args.kv_cache.dims[0];
  const int64_t page_slots = args.kv_cache.dims[1];
  if (page_slots < 1) checks.Refuse("kv_cache", "pages of at least one slot", DimsText(args.kv_cache));
  result.kv_cache =
      CheckCache(&checks, "kv_cache", args.kv_cache, cache_dtype, {pages, page_slots, 1, shape.kv_rank}, order);
  result.kr_cache =
      CheckCache(&checks, "kr_cache", args.kr_cache, cache_dtype, {pages, page_slots, 1, shape.rope}, order);
  if (int8_cache && !int8_weight) checks.Refuse("kv_cache", "BF16 with a BF16 weight_uq_qr", "INT8");

  struct Scale {
    const char* name;
    const mlap_tensor& tensor;
    bool is_used;
    bool is_optional;
    int64_t columns;
    const float** pointer;
  };
  const Scale scales[] = {
      {"dequant_scale_w_uq_qr", args.dequant_scale_w_uq_qr, int8_weight, false, uq_columns,
       &result.dequant_scale_w_uq_qr},
      {"quant_scale_ckv", args.quant_scale_ckv, int8_cache, false, shape.kv_rank, &result.quant_scale_ckv},
      {"quant_scale_ckr", args.quant_scale_ckr, int8_cache, false, shape.rope, &result.quant_scale_ckr},
      {"smooth_scales_cq", args.smooth_scales_cq, int8_weight, true, shape.q_rank, &result.smooth_scales_cq}};
  for (const Scale& scale : scales) {
    if (IsAbsent(scale.tensor) && (!scale.is_used || scale.is_optional)) continue;
    if (!scale.is_used) {
      checks.Refuse(scale.name, "no tensor in this scenario", DimsText(scale.tensor));
      break;
    }
    checks.CheckPlain(scale.name, scale.tensor, MLAP_FLOAT32, {1, scale.columns});
    *scale.pointer = static_cast<const float*>(scale.tensor.data);
  }
  checks.CheckPlain("query", args.query, MLAP_BF16, with_lead({shape.heads, shape.kv_rank}));
  checks.CheckPlain("query_rope", args.query_rope, MLAP_BF16, with_lead({shape.heads, shape.rope}));

  if (args.intermediates != nullptr) {
    const mlap_intermediates& wanted = *args.intermediates;
    if (wanted.struct_size != sizeof(mlap_intermediates)) {
      checks.Refuse("intermediates", "struct_size set to its size", std::to_string(wanted.struct_size));
      return checks.status();
    }
    const auto check = [&](const char* name, const mlap_tensor& tensor, mlap_dtype dtype,
                           const std::vector<int64_t>& dims) {
      if (!IsAbsent(tensor)) checks.CheckPlain(name, tensor, dtype, dims);
    };
    const int64_t T = shape.tokens;
    check("intermediates.c_q", wanted.c_q, MLAP_FLOAT32, {T, shape.q_rank});
    check("intermediates.c_q_int8", wanted.c_q_int8, MLAP_INT8, {T, shape.q_rank});
    check("intermediates.c_q_scale", wanted.c_q_scale, MLAP_FLOAT32, {T});
    check("intermediates.q_c", wanted.q_c, MLAP_FLOAT32, {T, shape.heads, shape.nope});
    check("intermediates.q_r", wanted.q_r, MLAP_FLOAT32, {T, shape.heads, shape.rope});
    check("intermediates.c_kv", wanted.c_kv, MLAP_FLOAT32, {T, shape.kv_rank});
    check("intermediates.k_r", wanted.k_r, MLAP_FLOAT32, {T, shape.rope});
    if (!int8_weight && (!IsAbsent(wanted.c_q_int8) || !IsAbsent(wanted.c_q_scale))) {
      checks.Refuse("intermediates.c_q_int8, c_q_scale", "none without quantisation", "a tensor");
    }
  }
  if (!checks.ok()) return checks.status();

  result.token_x = static_cast<const Bf16*>(args.token_x.data);
  result.weight_uk = static_cast<const Bf16*>(args.weight_uk.data);
  result.gamma_cq = static_cast<const Bf16*>(args.rmsnorm_gamma_cq.data);
  result.gamma_ckv = static_cast<const Bf16*>(args.rmsnorm_gamma_ckv.data);
  result.rope_sin = static_cast<const Bf16*>(args.rope_sin.data);
  result.rope_cos = static_cast<const Bf16*>(args.rope_cos.data);
  result.slots.cache_index = static_cast<const int64_t*>(args.cache_index.data);
  result.query = static_cast<Bf16*>(args.query.data);
  result.query_rope = static_cast<Bf16*>(args.query_rope.data);
  *out = result;
  return Status();
}

}  // namespace mlap
