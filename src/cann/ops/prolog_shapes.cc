#include "cann/ops/prolog_shapes.h"

#include <array>
#include <vector>

#include "base/weight_view.h"

namespace mlap::cann {
namespace {

// Products of sizes that come straight from a descriptor; what overflows is out of every limit anyway.
int64_t SaturatingMul(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

enum Symbol : int { kLead, kHe, kHcq, kUq, kN, kD, kHckv, kDr, kKvr, kT, kOne, kBlockNum, kBlockSize, kNkv, kDtile };

struct SymbolRow {
  const char* text;
  int64_t (*value)(const PrologDims&);
};

// In the order of Symbol; kLead is expanded separately.
constexpr SymbolRow kSymbols[] = {
    {"lead", nullptr},
    {"He", [](const PrologDims& d) { return d.He; }},
    {"Hcq", [](const PrologDims& d) { return d.Hcq; }},
    {"N*(D+Dr)", [](const PrologDims& d) { return SaturatingMul(d.N, SaturatingAdd(d.D, d.Dr)); }},
    {"N", [](const PrologDims& d) { return d.N; }},
    {"D", [](const PrologDims& d) { return d.D; }},
    {"Hckv", [](const PrologDims& d) { return d.Hckv; }},
    {"Dr", [](const PrologDims& d) { return d.Dr; }},
    {"Hckv+Dr", [](const PrologDims& d) { return SaturatingAdd(d.Hckv, d.Dr); }},
    {"T", [](const PrologDims& d) { return d.T; }},
    {"1", [](const PrologDims&) { return int64_t{1}; }},
    {"BlockNum", [](const PrologDims& d) { return d.BlockNum; }},
    {"BlockSize", [](const PrologDims& d) { return d.BlockSize; }},
    {"Nkv", [](const PrologDims& d) { return d.Nkv; }},
    {"Dtile", [](const PrologDims& d) { return d.Dtile; }},
};

// In the order of Param.
const std::vector<Symbol>& ShapeOf(Param param) {
  using Shapes = std::array<std::vector<Symbol>, kNumParams>;
  static const Shapes& kShapes = *new Shapes{{
      {kLead, kHe},                           // tokenX
      {kHe, kHcq},                            // weightDq
      {kHcq, kUq},                            // weightUqQr
      {kN, kD, kHckv},                        // weightUk
      {kHe, kKvr},                            // weightDkvKr
      {kHcq},                                 // rmsnormGammaCq
      {kHckv},                                // rmsnormGammaCkv
      {kLead, kDr},                           // ropeSin
      {kLead, kDr},                           // ropeCos
      {kLead},                                // cacheIndex
      {kBlockNum, kBlockSize, kNkv, kDtile},  // kvCacheRef
      {kBlockNum, kBlockSize, kNkv, kDr},     // krCacheRef
      {kT, kOne},                             // dequantScaleX
      {kOne, kHcq},                           // dequantScaleWDq
      {kOne, kUq},                            // dequantScaleWUqQr
      {kOne, kKvr},                           // dequantScaleWDkvKr
      {kOne, kHckv},                          // quantScaleCkv
      {kOne, kDr},                            // quantScaleCkr
      {kOne, kHcq},                           // smoothScalesCq
      {kLead, kN, kHckv},                     // queryOut
      {kLead, kN, kDr},                       // queryRopeOut
  }};
  return kShapes[param];
}

void Append(ExpectedShape* shape, int64_t dim, const char* symbol) {
  shape->symbols += shape->dims.empty() ? symbol : std::string(", ") + symbol;
  shape->dims.push_back(dim);
}

// The columns of a FRACTAL_NZ weight: of the matrix, or of its fractals.
int64_t NzColumns(const TensorDescriptor& weight) {
  return weight.rank == 2 ? weight.view_dims[1] : SaturatingMul(weight.view_dims[0], weight.view_dims[3]);
}

}  // namespace

PrologDims ReadDims(const PrologTensors& tensors) {
  PrologDims dims;
  const TensorDescriptor& x = tensors[kTokenX];
  dims.is_fused = x.rank == 2;
  dims.He = x.view_dims[x.rank - 1];
  if (dims.is_fused) {
    dims.T = x.view_dims[0];
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
  dims.BlockSize = kv.view_dims[1];
  dims.Nkv = kv.view_dims[2];
  dims.Dtile = kv.view_dims[3];
  return dims;
}

std::vector<ExpectedShape> ExpectedShapes(Param param, const PrologDims& dims, aclDataType dtype) {
  ExpectedShape shape;
  for (const Symbol symbol : ShapeOf(param)) {
    if (symbol == kLead && !dims.is_fused) {
      Append(&shape, dims.B, "B");
      Append(&shape, dims.S, "S");
    } else if (symbol == kLead) {
      Append(&shape, dims.T, "T");
    } else {
      Append(&shape, kSymbols[symbol].value(dims), kSymbols[symbol].text);
    }
  }
  shape.symbols = "(" + shape.symbols + ")";
  if (!IsNzWeight(param)) return {shape};

  const int64_t c0 = kFractalRowBytes / DtypeBytes(dtype);
  const int64_t k = shape.dims[0];
  const int64_t n = shape.dims[1];
  // Without +15: k and n may be as large as an int64 holds.
  const int64_t fractal_rows = k / kFractalRows + (k % kFractalRows != 0 ? 1 : 0);
  const int64_t fractal_columns = n / c0 + (n % c0 != 0 ? 1 : 0);
  return {shape,
          {{fractal_columns, fractal_rows, kFractalRows, c0}, "(n/C0, k/16, 16, C0) of (k, n) = " + shape.symbols}};
}

}  // namespace mlap::cann
