#include "cann/ops/prolog_shapes.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/weight_view.h"
#include "cann/ops/size_arithmetic.h"

namespace mlap::cann {
namespace {

// kLead is (T) or (B, S); the others are one dimension.
enum Symbol : int {
  kLead,
  kHe,
  kHeGroups,
  kHcq,
  kHcqGroups,
  kUq,
  kN,
  kD,
  kHckv,
  kDr,
  kKvr,
  kB,
  kS,
  kT,
  kOne,
  kBlockNum,
  kBlockSize,
  kPagesOfS,
  kNkv,
  kDtile,
  kIndices
};

// A dimension of any length.
constexpr int64_t kAnyLength = -1;

struct SymbolRow {
  const char* text;
  int64_t (*value)(const PrologDims&);
};

int64_t PagesOfS(const PrologDims& d) {
  // Without S + BlockSize - 1: S may be as large as an int64 holds.
  return d.BlockSize <= 0 ? 0 : d.S / d.BlockSize + (d.S % d.BlockSize != 0 ? 1 : 0);
}

// In the order of Symbol; kLead is expanded separately.
constexpr SymbolRow kSymbols[] = {
    {"lead", nullptr},
    {"He", [](const PrologDims& d) { return d.He; }},
    {"He/32", [](const PrologDims& d) { return d.He / kMxGroup; }},
    {"Hcq", [](const PrologDims& d) { return d.Hcq; }},
    {"Hcq/32", [](const PrologDims& d) { return d.Hcq / kMxGroup; }},
    {"N*(D+Dr)", [](const PrologDims& d) { return SaturatingMul(d.N, SaturatingAdd(d.D, d.Dr)); }},
    {"N", [](const PrologDims& d) { return d.N; }},
    {"D", [](const PrologDims& d) { return d.D; }},
    {"Hckv", [](const PrologDims& d) { return d.Hckv; }},
    {"Dr", [](const PrologDims& d) { return d.Dr; }},
    {"Hckv+Dr", [](const PrologDims& d) { return SaturatingAdd(d.Hckv, d.Dr); }},
    {"B", [](const PrologDims& d) { return d.B; }},
    {"S", [](const PrologDims& d) { return d.S; }},
    {"T", [](const PrologDims& d) { return d.T; }},
    {"1", [](const PrologDims&) { return int64_t{1}; }},
    {"BlockNum", [](const PrologDims& d) { return d.BlockNum; }},
    {"BlockSize", [](const PrologDims& d) { return d.BlockSize; }},
    {"ceil(S/BlockSize)", PagesOfS},
    {"Nkv", [](const PrologDims& d) { return d.Nkv; }},
    {"Dtile", [](const PrologDims& d) { return d.Dtile; }},
    {"pages of all sequences", [](const PrologDims&) { return kAnyLength; }},
};

bool Always(const CallKind&, const PrologDims&) { return true; }
bool IsMx(const CallKind& kind, const PrologDims&) { return kind.scenario->HasMxScales(); }
bool IsOneScale(const CallKind& kind, const PrologDims&) {
  return kind.scenario->kv_quant == KvQuant::kPerTensor && kind.version->takes_one_ckv_scale;
}
bool IsPaged(const CallKind& kind, const PrologDims&) { return kind.cache_mode->IsPaged(); }
bool ListsSequences(const CallKind& kind, const PrologDims& dims) {
  return kind.cache_mode->ListsSequences(dims.is_fused);
}
bool ListsPages(const CallKind& kind, const PrologDims&) { return kind.cache_mode->slots == SlotRule::kBlocks; }

// The first row that applies to a parameter holds.
struct ShapeRow {
  Param param;
  bool (*applies)(const CallKind&, const PrologDims&);
  std::vector<Symbol> shape;
};

const std::vector<ShapeRow>& ShapeRows() {
  // Never destroyed, like every static of the library: a call may come while the program ends.
  static const std::vector<ShapeRow>& kRows = *new std::vector<ShapeRow>{
      {kTokenX, Always, {kLead, kHe}},
      {kWeightDq, Always, {kHe, kHcq}},
      {kWeightUqQr, Always, {kHcq, kUq}},
      {kWeightUk, Always, {kN, kD, kHckv}},
      {kWeightDkvKr, Always, {kHe, kKvr}},
      {kGammaCq, Always, {kHcq}},
      {kGammaCkv, Always, {kHckv}},
      {kRopeSin, Always, {kLead, kDr}},
      {kRopeCos, Always, {kLead, kDr}},
      {kCacheIndex, ListsSequences, {kIndices}},
      {kCacheIndex, ListsPages, {kB, kPagesOfS}},
      {kCacheIndex, Always, {kLead}},
      {kKvCache, IsPaged, {kBlockNum, kBlockSize, kNkv, kDtile}},
      {kKvCache, Always, {kLead, kNkv, kDtile}},
      {kKrCache, IsPaged, {kBlockNum, kBlockSize, kNkv, kDr}},
      {kKrCache, Always, {kLead, kNkv, kDr}},
      {kDequantScaleX, IsMx, {kT, kHeGroups}},
      {kDequantScaleX, Always, {kT, kOne}},
      {kDequantScaleWDq, IsMx, {kHcq, kHeGroups}},
      {kDequantScaleWDq, Always, {kOne, kHcq}},
      {kDequantScaleWUqQr, IsMx, {kUq, kHcqGroups}},
      {kDequantScaleWUqQr, Always, {kOne, kUq}},
      {kDequantScaleWDkvKr, IsMx, {kKvr, kHeGroups}},
      {kDequantScaleWDkvKr, Always, {kOne, kKvr}},
      {kQuantScaleCkv, IsOneScale, {kOne}},
      {kQuantScaleCkv, Always, {kOne, kHckv}},
      {kQuantScaleCkr, Always, {kOne, kDr}},
      {kSmoothScalesCq, Always, {kOne, kHcq}},
      {kActualSeqLen, Always, {kB}},
      {kKNopeClipAlpha, Always, {kOne}},
      {kQueryOut, Always, {kLead, kN, kHckv}},
      {kQueryRopeOut, Always, {kLead, kN, kDr}},
      {kDequantScaleQNopeOut, Always, {kT, kN, kOne}},
      {kQueryNormOut, Always, {kLead, kHcq}},
      {kDequantScaleQNormOut, IsMx, {kT, kHcqGroups}},
      {kDequantScaleQNormOut, Always, {kT, kOne}},
  };
  return kRows;
}

const std::vector<Symbol>& SymbolsOf(Param param, const CallKind& kind, const PrologDims& dims) {
  return std::find_if(ShapeRows().begin(), ShapeRows().end(),
                      [&](const ShapeRow& row) { return row.param == param && row.applies(kind, dims); })
      ->shape;
}

struct Shape {
  std::array<int64_t, 5> dims{};
  size_t rank = 0;
};

// The shape's dimensions, and their symbols' text if that is asked for.
Shape Expand(const std::vector<Symbol>& symbols, const PrologDims& dims, std::string* text) {
  Shape shape;
  const auto append = [&](Symbol symbol) {
    if (text != nullptr) *text += (shape.rank == 0 ? "" : ", ") + std::string(kSymbols[symbol].text);
    shape.dims[shape.rank++] = kSymbols[symbol].value(dims);
  };
  for (const Symbol symbol : symbols) {
    if (symbol != kLead) {
      append(symbol);
    } else if (dims.is_fused) {
      append(kT);
    } else {
      append(kB);
      append(kS);
    }
  }
  return shape;
}

// A weight's matrix as fractals.
Shape FractalsOf(const Shape& matrix, aclDataType dtype) {
  const int64_t c0 = kFractalRowBytes / DtypeBytes(dtype);
  const int64_t k = matrix.dims[0];
  const int64_t n = matrix.dims[1];
  // Without +15: k and n may be as large as an int64 holds.
  const int64_t fractal_rows = k / kFractalRows + (k % kFractalRows != 0 ? 1 : 0);
  const int64_t fractal_columns = n / c0 + (n % c0 != 0 ? 1 : 0);
  return {{fractal_columns, fractal_rows, kFractalRows, c0}, 4};
}

bool HasShape(const TensorDescriptor& tensor, const Shape& shape) {
  if (tensor.rank != shape.rank) return false;
  for (size_t i = 0; i < tensor.rank; ++i) {
    if (shape.dims[i] != kAnyLength && shape.dims[i] != tensor.view_dims[i]) return false;
  }
  return true;
}

// The columns of a FRACTAL_NZ weight: of the matrix, or of its fractals.
int64_t NzColumns(const TensorDescriptor& weight) {
  return weight.rank == 2 ? weight.view_dims[1] : SaturatingMul(weight.view_dims[0], weight.view_dims[3]);
}

}  // namespace

PrologDims ReadDims(const PrologTensors& tensors, const CacheMode& cache_mode) {
  PrologDims dims;
  const TensorDescriptor& x = tensors[kTokenX];
  dims.is_fused = x.rank == 2;
  dims.He = x.view_dims[x.rank - 1];
  if (dims.is_fused) {
    dims.T = x.view_dims[0];
    if (cache_mode.ListsSequences(true)) dims.B = tensors[kActualSeqLen].view_dims[0];
  } else {
    dims.B = x.view_dims[0];
    dims.S = x.view_dims[1];
    dims.T = SaturatingMul(dims.B, dims.S);
  }
  dims.N = tensors[kWeightUk].view_dims[0];
  dims.D = tensors[kWeightUk].view_dims[1];
  const TensorDescriptor& cos = tensors[kRopeCos];
  dims.Dr = cos.view_dims[cos.rank - 1];
  dims.Hcq = NzColumns(tensors[kWeightDq]);
  dims.Hckv = NzColumns(tensors[kWeightDkvKr]) - dims.Dr;
  const TensorDescriptor& kv = tensors[kKvCache];
  dims.BlockNum = kv.view_dims[0];
  if (cache_mode.IsPaged()) dims.BlockSize = kv.view_dims[1];
  dims.Nkv = kv.view_dims[kv.rank - 2];
  dims.Dtile = kv.view_dims[kv.rank - 1];
  return dims;
}

bool HasExpectedShape(const TensorDescriptor& tensor, Param param, const CallKind& kind, const PrologDims& dims) {
  const Shape shape = Expand(SymbolsOf(param, kind, dims), dims, nullptr);
  return HasShape(tensor, shape) || (IsNzWeight(param) && HasShape(tensor, FractalsOf(shape, tensor.dtype)));
}

std::string ExpectedShapeText(const TensorDescriptor& tensor, Param param, const CallKind& kind,
                              const PrologDims& dims) {
  std::string symbols;
  const Shape shape = Expand(SymbolsOf(param, kind, dims), dims, &symbols);
  symbols = "(" + symbols + ")";
  // A length that may be any has no number.
  if (shape.rank == 1 && shape.dims[0] == kAnyLength) return symbols;
  std::string text = DimsText(shape.dims.data(), shape.rank) + " = " + symbols;
  if (!IsNzWeight(param)) return text;
  const Shape fractals = FractalsOf(shape, tensor.dtype);
  return text + " or " + DimsText(fractals.dims.data(), fractals.rank) +
         " = (n/C0, k/16, 16, C0) of (k, n) = " + symbols;
}

}  // namespace mlap::cann
