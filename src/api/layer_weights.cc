#include "api/layer_weights.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "api/last_error.h"
#include "api/nz_image.h"
#include "api/strided_copy.h"
#include "api/tensor_checks.h"

namespace mlap {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 28;
constexpr int64_t kPieceAlignment = 4096;

// The matrices' types decide what is quantised.
struct QuantRow {
  WeightQuant quant;
  mlap_dtype down;  // weight_dq and weight_dkv_kr
  mlap_dtype up;    // weight_uq_qr
  bool has_mx_scales;
};
constexpr QuantRow kQuants[] = {
    {WeightQuant::kNone, MLAP_BF16, MLAP_BF16, false},
    {WeightQuant::kUqQr, MLAP_BF16, MLAP_INT8, false},
    {WeightQuant::kFull, MLAP_INT8, MLAP_INT8, false},
    {WeightQuant::kMxFp8, MLAP_FLOAT8_E4M3, MLAP_FLOAT8_E4M3, true},
    {WeightQuant::kFp8, MLAP_FLOAT8_E4M3, MLAP_FLOAT8_E4M3, false},
    {WeightQuant::kHiF8, MLAP_HIFLOAT8, MLAP_HIFLOAT8, false},
};

class WeightsMaker {
 public:
  WeightsMaker(const mlap_weights_args& args, LayerWeights* out) : in_(args), out_(out), to_(out->args) {}

  Status Make() {
    CheckStructs();
    if (checks_.ok()) FindSizes();
    if (checks_.ok()) FindQuant();
    if (!checks_.ok()) return checks_.status();
    const PrologShape& shape = to_.shape;
    if (has_low_rank_) {
      Matrix("weight_dq", in_.weight_dq, quant_->down, {"He", shape.hidden}, {"Hcq", shape.q_rank}, &to_.weight_dq);
      Dense("rmsnorm_gamma_cq", in_.rmsnorm_gamma_cq, MLAP_BF16, {shape.q_rank}, &to_.gamma_cq);
    }
    Matrix("weight_uq_qr", in_.weight_uq_qr, quant_->up, {has_low_rank_ ? "Hcq" : "He", UpRows()},
           {"N * (D + Dr)", UpColumns()}, &to_.weight_uq_qr);
    Dense("weight_uk", in_.weight_uk, MLAP_BF16, {shape.heads, shape.nope, shape.kv_rank}, &to_.weight_uk);
    Matrix("weight_dkv_kr", in_.weight_dkv_kr, quant_->down, {"He", shape.hidden}, {"Hckv + Dr", shape.KvColumns()},
           &to_.weight_dkv_kr);
    Dense("rmsnorm_gamma_ckv", in_.rmsnorm_gamma_ckv, MLAP_BF16, {shape.kv_rank}, &to_.gamma_ckv);
    Scales();
    if (checks_.ok() && in_.ownership == MLAP_COPY) CopyPieces();
    out_->ownership = in_.ownership;
    return checks_.status();
  }

 private:
  // One tensor's part of the handle's memory.
  struct Piece {
    int64_t bytes;
    std::function<void(char*)> fill;  // writes the bytes and points the arguments at them
  };

  int64_t UpRows() const { return has_low_rank_ ? to_.shape.q_rank : to_.shape.hidden; }
  int64_t UpColumns() const { return to_.shape.heads * to_.shape.HeadColumns(); }

  void CheckStructs() {
    if (in_.ownership != MLAP_COPY && in_.ownership != MLAP_BORROW) {
      checks_.Refuse("ownership", "MLAP_COPY or MLAP_BORROW", std::to_string(static_cast<int>(in_.ownership)));
    }
    has_low_rank_ = !IsAbsent(in_.weight_dq);
    if (has_low_rank_) {
      CheckMatrixStruct("weight_dq", in_.weight_dq);
      if (checks_.CheckStruct("rmsnorm_gamma_cq", in_.rmsnorm_gamma_cq)) {
        checks_.CheckRank("rmsnorm_gamma_cq", in_.rmsnorm_gamma_cq, {1});
      }
    } else {
      for (const auto& [name, tensor] : {std::pair{"rmsnorm_gamma_cq", &in_.rmsnorm_gamma_cq},
                                         std::pair{"dequant_scale_w_dq", &in_.dequant_scale_w_dq},
                                         std::pair{"smooth_scales_cq", &in_.smooth_scales_cq}}) {
        if (!IsAbsent(*tensor))
          checks_.Refuse(name, "no tensor without weight_dq", DimsText(DimsOf(*tensor)),
                         "pass weight_dq, or leave it out");
      }
      if (in_.dims.q_rank != 0) {
        checks_.Refuse("dims.q_rank", "0 without weight_dq", std::to_string(in_.dims.q_rank));
      }
    }
    CheckMatrixStruct("weight_uq_qr", in_.weight_uq_qr);
    CheckMatrixStruct("weight_dkv_kr", in_.weight_dkv_kr);
    if (checks_.CheckStruct("weight_uk", in_.weight_uk)) checks_.CheckRank("weight_uk", in_.weight_uk, {3});
  }

  void CheckMatrixStruct(const char* name, const mlap_tensor& tensor) {
    if (!checks_.CheckStruct(name, tensor)) return;
    if (tensor.layout == MLAP_FRACTAL_NZ) {
      checks_.CheckRank(name, tensor, {2, 4});
    } else {
      checks_.CheckRank(name, tensor, {2});
    }
  }

  // A matrix's size as its tensor tells it; that of a 4-D one includes the padding.
  static int64_t Rows(const mlap_tensor& tensor) {
    if (tensor.rank == 4) return std::min(tensor.dims[1], kLargestSize) * kFractalRows;
    return tensor.layout == MLAP_OUT_IN ? tensor.dims[1] : tensor.dims[0];
  }
  static int64_t Columns(const mlap_tensor& tensor) {
    if (tensor.rank == 4) return std::min(tensor.dims[0], kLargestSize) * std::min(tensor.dims[3], kLargestSize);
    return tensor.layout == MLAP_OUT_IN ? tensor.dims[0] : tensor.dims[1];
  }

  // A matrix that fits the other tensors the other way round only, which no legal one does.
  void CheckOrientation() {
    const auto refuse_if = [&](bool is_turned, const char* name, const mlap_tensor& tensor, const std::string& shape) {
      if (!is_turned || tensor.rank != 2 || tensor.layout == MLAP_FRACTAL_NZ) return;
      const bool is_out_in = tensor.layout == MLAP_OUT_IN;
      checks_.Refuse(name, shape + (is_out_in ? " given as (out, in)" : ""), DimsText(DimsOf(tensor)),
                     is_out_in ? "(in, out) tensors need MLAP_ROW_MAJOR or a transposed view"
                               : "(out, in) tensors need MLAP_OUT_IN or a transposed view");
    };
    const mlap_tensor& dq = in_.weight_dq;
    const mlap_tensor& uq_qr = in_.weight_uq_qr;
    const mlap_tensor& dkv_kr = in_.weight_dkv_kr;
    if (has_low_rank_) {
      const int64_t q_rank = in_.rmsnorm_gamma_cq.dims[0];
      const std::string hcq = " with the Hcq = " + std::to_string(q_rank) + " of rmsnorm_gamma_cq";
      refuse_if(Columns(dq) != q_rank && Rows(dq) == q_rank, "weight_dq", dq, "(He, Hcq)" + hcq);
      refuse_if(Rows(uq_qr) != q_rank && Columns(uq_qr) == q_rank, "weight_uq_qr", uq_qr, "(Hcq, N * (D + Dr))" + hcq);
    }
    // Whatever reads x has He rows.
    const mlap_tensor& first = has_low_rank_ ? dq : uq_qr;
    if (first.rank != 2 || dkv_kr.rank != 2 || Rows(dkv_kr) == Rows(first)) return;
    if (!has_low_rank_) {
      refuse_if(Columns(first) == Columns(dkv_kr) || Columns(first) == Rows(dkv_kr), "weight_uq_qr", uq_qr,
                "(He, N * (D + Dr)) and the He of weight_dkv_kr");
    }
    refuse_if(Columns(dkv_kr) == Rows(first), "weight_dkv_kr", dkv_kr,
              "(He, Hckv + Dr) with the He = " + std::to_string(Rows(first)) + " of the query's weights");
  }

  void FindSizes() {
    PrologShape& shape = to_.shape;
    const mlap_dims& given = in_.dims;
    for (const auto& [name, size] : {std::pair{"dims.hidden", given.hidden}, std::pair{"dims.q_rank", given.q_rank},
                                     std::pair{"dims.heads", given.heads}, std::pair{"dims.nope", given.nope},
                                     std::pair{"dims.rope", given.rope}, std::pair{"dims.kv_rank", given.kv_rank}}) {
      if (size < 0 || size > kLargestSize) {
        checks_.Refuse(name, "a size from 1 to 2^28, or 0 for the tensors'", std::to_string(size));
      }
    }
    CheckOrientation();
    if (!checks_.ok()) return;
    const auto or_else = [](int64_t value, int64_t otherwise) { return value != 0 ? value : otherwise; };
    const mlap_tensor& dkv_kr = in_.weight_dkv_kr;
    const bool dkv_kr_tells = dkv_kr.rank == 2 || !has_low_rank_ || in_.weight_dq.rank != 2;
    shape.hidden = or_else(given.hidden, Rows(dkv_kr_tells ? dkv_kr : in_.weight_dq));
    shape.q_rank = has_low_rank_ ? or_else(given.q_rank, in_.rmsnorm_gamma_cq.dims[0]) : 0;
    shape.heads = or_else(given.heads, in_.weight_uk.dims[0]);
    shape.nope = or_else(given.nope, in_.weight_uk.dims[1]);
    shape.kv_rank = or_else(given.kv_rank, in_.weight_uk.dims[2]);
    shape.rope = given.rope;
    if (shape.rope == 0 && dkv_kr.rank == 4 && in_.weight_uq_qr.rank == 2 && shape.heads > 0) {
      shape.rope = Columns(in_.weight_uq_qr) / shape.heads - shape.nope;
    } else if (shape.rope == 0) {
      shape.rope = Columns(dkv_kr) - shape.kv_rank;
    }

    struct Size {
      const char* name;
      const char* source;
      int64_t value;
    };
    for (const Size& size :
         {Size{"dims.hidden", "weight_dkv_kr", shape.hidden},
          Size{"dims.q_rank", "rmsnorm_gamma_cq", has_low_rank_ ? shape.q_rank : 1},
          Size{"dims.heads", "weight_uk", shape.heads}, Size{"dims.nope", "weight_uk", shape.nope},
          Size{"dims.rope", "weight_dkv_kr", shape.rope}, Size{"dims.kv_rank", "weight_uk", shape.kv_rank}}) {
      if (size.value >= 1 && size.value <= kLargestSize) continue;
      checks_.Refuse((std::string(size.name) + " or " + size.source).c_str(), "a size from 1 to 2^28",
                     std::to_string(size.value));
    }
    if (shape.rope % 2 != 0) {
      checks_.Refuse("dims.rope or weight_dkv_kr", "an even Dr = columns - Hckv", std::to_string(shape.rope));
    }
  }

  void FindQuant() {
    bool has_mx_scales = false;
    for (const mlap_tensor* scale :
         {&in_.dequant_scale_w_dq, &in_.dequant_scale_w_uq_qr, &in_.dequant_scale_w_dkv_kr}) {
      has_mx_scales |= scale->dtype == MLAP_FLOAT8_E8M0;
    }
    std::string legal_up;
    for (const QuantRow& row : kQuants) {
      if (row.down != in_.weight_dkv_kr.dtype) continue;
      if (row.up == in_.weight_uq_qr.dtype && (row.has_mx_scales == has_mx_scales || row.up != MLAP_FLOAT8_E4M3)) {
        quant_ = &row;
        to_.mode.weight_quant = row.quant;
        return;
      }
      // Two rows differ in their scales only.
      const std::string up = DtypeText(row.up);
      if (legal_up.find(up) == std::string::npos) legal_up.append(legal_up.empty() ? "" : " or ").append(up);
    }
    if (legal_up.empty()) {
      checks_.Refuse("weight_dkv_kr", "BF16, INT8, FLOAT8_E4M3 or HIFLOAT8", DtypeText(in_.weight_dkv_kr.dtype));
    } else {
      checks_.Refuse("weight_uq_qr", legal_up + " with a weight_dkv_kr of " + DtypeText(in_.weight_dkv_kr.dtype),
                     DtypeText(in_.weight_uq_qr.dtype));
    }
  }

  struct NamedSize {
    const char* symbol;
    int64_t value;
  };

  // W (k, n) in any layout.
  void Matrix(const char* name, const mlap_tensor& tensor, mlap_dtype dtype, const NamedSize& rows,
              const NamedSize& columns, WeightView* view) {
    const int64_t k = rows.value;
    const int64_t n = columns.value;
    checks_.CheckDtype(name, tensor, dtype);
    const int64_t element = FindDtype(dtype)->bytes;
    const bool is_nz = tensor.layout == MLAP_FRACTAL_NZ;
    const bool is_out_in = tensor.layout == MLAP_OUT_IN;
    const Dims dims = tensor.rank == 4 ? NzDims(element, k, n) : is_out_in ? Dims{n, k} : Dims{k, n};
    if (checks_.ok() && !(DimsOf(tensor) == dims)) {
      const NamedSize& first = is_out_in ? columns : rows;
      const NamedSize& second = is_out_in ? rows : columns;
      const std::string symbols = std::string("(") + first.symbol + ", " + second.symbol + ")";
      checks_.Refuse(name, "shape " + DimsText(dims) + (tensor.rank == 4 ? ", the image of " : " = ") + symbols,
                     DimsText(DimsOf(tensor)),
                     "He is of weight_dkv_kr, Hcq of rmsnorm_gamma_cq, N, D and Hckv of weight_uk, Dr of "
                     "weight_dkv_kr's columns, unless dims says otherwise");
    }
    checks_.CheckMemory(name, tensor, Access::kRead);
    if (!checks_.ok()) return;
    const StridedView source = MatrixView(tensor);
    if (is_nz && !ViewOf(tensor).IsContiguous()) {
      return checks_.Refuse(name, "a contiguous tensor in MLAP_FRACTAL_NZ", "strides with gaps",
                            "copy the image without gaps");
    }
    const ElementType type = ToElementType(dtype);
    if (in_.ownership == MLAP_COPY) {
      const int64_t bytes = NzBytes(element, k, n);
      pieces_.push_back({bytes, [=](char* to) {
                           if (is_nz) {
                             std::memcpy(to, source.data, static_cast<size_t>(bytes));
                           } else {
                             PackNz(source, to);
                           }
                           *view = NzWeight(to, type, k, n);
                         }});
      return;
    }
    if (is_nz) {
      *view = NzWeight(tensor.data, type, k, n);
    } else if (is_out_in) {
      checks_.Refuse(name, "MLAP_ROW_MAJOR or MLAP_FRACTAL_NZ to borrow from", "MLAP_OUT_IN",
                     "use MLAP_COPY, which packs it");
    } else if (source.strides[1] != 1 && n > 1) {
      checks_.Refuse(name, "columns side by side to borrow from",
                     "a column stride of " + std::to_string(source.strides[1]), "use MLAP_COPY, which packs it");
    } else {
      *view = RowMajorWeight(tensor.data, type, k, n);
      view->row_stride = k > 1 ? source.strides[0] : n;
    }
  }

  // Anything that stays in row-major order.
  template <class T>
  void Dense(const char* name, const mlap_tensor& tensor, mlap_dtype dtype, const Dims& dims, const T** pointer) {
    if (!checks_.CheckStrided(name, tensor, dtype, dims, Access::kRead)) return;
    const StridedView source = ViewOf(tensor);
    if (in_.ownership == MLAP_COPY) {
      pieces_.push_back({dims.Count() * source.element_bytes, [=](char* to) {
                           CopyStrided(source, DenseView(source, to));
                           *pointer = reinterpret_cast<const T*>(to);
                         }});
    } else if (!source.IsContiguous()) {
      checks_.Refuse(name, "a contiguous tensor to borrow", "strides with gaps", "use MLAP_COPY, which packs it");
    } else {
      *pointer = reinterpret_cast<const T*>(source.data);
    }
  }

  // FLOAT32 [n] or [1, n].
  void Row(const char* name, const mlap_tensor& tensor, int64_t n, const float** pointer) {
    Dense(name, tensor, MLAP_FLOAT32, tensor.rank == 1 ? Dims{n} : Dims{1, n}, pointer);
  }

  void Scales() {
    const PrologShape& shape = to_.shape;
    const bool is_mx = quant_->has_mx_scales;
    struct Scale {
      const char* name;
      const mlap_tensor& tensor;
      bool is_used;
      int64_t k, n;
      const float** pointer;
      const uint8_t** mx_pointer;
    };
    const bool is_full = quant_->quant >= WeightQuant::kFull;
    const Scale scales[] = {
        {"dequant_scale_w_dq", in_.dequant_scale_w_dq, is_full && has_low_rank_, shape.hidden, shape.q_rank,
         &to_.dequant_scale_w_dq, &to_.mx_scale_w_dq},
        {"dequant_scale_w_uq_qr", in_.dequant_scale_w_uq_qr, quant_->quant != WeightQuant::kNone, UpRows(), UpColumns(),
         &to_.dequant_scale_w_uq_qr, &to_.mx_scale_w_uq_qr},
        {"dequant_scale_w_dkv_kr", in_.dequant_scale_w_dkv_kr, is_full, shape.hidden, shape.KvColumns(),
         &to_.dequant_scale_w_dkv_kr, &to_.mx_scale_w_dkv_kr},
    };
    for (const Scale& scale : scales) {
      if (!scale.is_used) {
        if (!IsAbsent(scale.tensor)) {
          checks_.Refuse(scale.name, "no tensor with weights of these types", DimsText(DimsOf(scale.tensor)),
                         "leave it out");
        }
      } else if (is_mx) {
        if (scale.k % kMxGroup != 0) {
          checks_.Refuse(scale.name, "a reduction of a multiple of 32 for MXFP8", std::to_string(scale.k));
        }
        Dense(scale.name, scale.tensor, MLAP_FLOAT8_E8M0, {scale.n, scale.k / kMxGroup}, scale.mx_pointer);
      } else {
        Row(scale.name, scale.tensor, scale.n, scale.pointer);
      }
    }
    if (IsAbsent(in_.smooth_scales_cq)) return;
    if (quant_->quant == WeightQuant::kNone || is_mx) {
      checks_.Refuse("smooth_scales_cq", "no tensor with weights of these types",
                     DimsText(DimsOf(in_.smooth_scales_cq)), "leave it out");
    }
    Row("smooth_scales_cq", in_.smooth_scales_cq, shape.q_rank, &to_.smooth_scales_cq);
  }

  void CopyPieces() {
    const auto aligned = [](int64_t bytes) { return CeilDiv(bytes, kPieceAlignment) * kPieceAlignment; };
    int64_t total = 0;
    for (const Piece& piece : pieces_) {
      int64_t sum = 0;
      if (piece.bytes < 0 || __builtin_add_overflow(total, aligned(piece.bytes), &sum)) throw std::bad_alloc();
      total = sum;
    }
    out_->memory.Allocate(static_cast<size_t>(total));
    char* place = out_->memory.data();
    for (const Piece& piece : pieces_) {
      piece.fill(place);
      place += aligned(piece.bytes);
    }
  }

  const mlap_weights_args& in_;
  LayerWeights* out_;
  PrologArgs& to_;
  TensorChecks checks_;
  bool has_low_rank_ = true;
  const QuantRow* quant_ = nullptr;
  std::vector<Piece> pieces_;
};

}  // namespace

Status MakeLayerWeights(const mlap_weights_args& args, LayerWeights* weights) {
  return WeightsMaker(args, weights).Make();
}

WeightsTable& ProcessWeights() {
  // Never destroyed: static objects of the program may still hold handles when this library's are.
  static WeightsTable* const kTable = new WeightsTable(HandleKind::kWeights);
  return *kTable;
}

mlap_status FailUnknownWeights(const char* function, const void* handle) {
  return FailWith(MLAP_INVALID_ARGUMENT, std::string(function) +
                                             ": weights: expected those of mlap_weights_create, found " +
                                             (handle == nullptr ? "null" : "some that were destroyed or never made") +
                                             "; make them, and destroy them after the last call");
}

}  // namespace mlap
