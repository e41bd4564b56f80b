// Preparing weights: FRACTAL_NZ images, and the split of kv_b_proj.
#include <algorithm>
#include <iterator>

#include "api/api_function.h"
#include "api/nz_image.h"
#include "api/strided_copy.h"
#include "api/tensor_checks.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 40;

// Elements that a fractal row of 32 bytes holds 16 or 32 of.
void CheckNzDtype(TensorChecks* checks, const char* name, mlap_dtype dtype) {
  if (!checks->ok()) return;
  const DtypeFacts* facts = FindDtype(dtype);
  if (facts == nullptr || facts->bytes > 2) {
    checks->Refuse(name, "a type of 1 or 2 bytes", DtypeText(dtype));
  }
}

// A row-major or transposed matrix and its image; one of them is written.
Status CheckNzPair(const mlap_tensor& matrix, const mlap_tensor& nz, bool writes_nz) {
  TensorChecks checks;
  if (checks.CheckStruct("matrix", matrix)) checks.CheckRank("matrix", matrix, {2});
  CheckNzDtype(&checks, "matrix", matrix.dtype);
  if (checks.ok() && matrix.layout == MLAP_FRACTAL_NZ) {
    checks.Refuse("matrix", "layout MLAP_ROW_MAJOR or MLAP_OUT_IN", "MLAP_FRACTAL_NZ");
  }
  if (!checks.CheckStruct("nz", nz)) return checks.status();
  checks.CheckDtype("nz", nz, matrix.dtype);
  if (nz.layout != MLAP_FRACTAL_NZ) checks.Refuse("nz", "layout MLAP_FRACTAL_NZ", "another one");
  if (!checks.ok()) return checks.status();
  const StridedView view = MatrixView(matrix);
  checks.CheckDims("nz", nz, NzDims(view.element_bytes, view.dims.size[0], view.dims.size[1]));
  checks.CheckMemory("matrix", matrix, writes_nz ? Access::kRead : Access::kWrite);
  checks.CheckMemory("nz", nz, Access::kRead);
  if (checks.ok() && !ViewOf(nz).IsContiguous()) checks.Refuse("nz", "a contiguous tensor", "strides with gaps");
  checks.CheckApart("nz", nz, "matrix", matrix);
  return checks.status();
}

mlap_status ConvertNz(const char* function, const mlap_tensor* matrix, const mlap_tensor* nz, bool writes_nz) {
  return Guarded(function, [&] {
    mlap_status status = CheckPlace(function, "matrix", matrix);
    if (status == MLAP_OK) status = CheckPlace(function, "nz", nz);
    if (status != MLAP_OK) return status;
    const Status checked = CheckNzPair(*matrix, *nz, writes_nz);
    if (!checked.ok()) return FailFunction(function, checked);
    if (DimsOf(*nz).Count() == 0) return MLAP_OK;
    if (writes_nz) {
      PackNz(MatrixView(*matrix), nz->data);
    } else {
      UnpackNz(nz->data, MatrixView(*matrix));
    }
    return MLAP_OK;
  });
}

mlap_status SplitKvB(const mlap_tensor& kv_b, const mlap_tensor& uk, const mlap_tensor& uv) {
  TensorChecks checks;
  if (checks.CheckStruct("kv_b_proj", kv_b)) checks.CheckRank("kv_b_proj", kv_b, {2});
  CheckNzDtype(&checks, "kv_b_proj", kv_b.dtype);
  checks.CheckMemory("kv_b_proj", kv_b, Access::kRead);
  const bool wants_uk = !IsAbsent(uk);
  const bool wants_uv = !IsAbsent(uv);
  if (!wants_uk && !wants_uv) checks.Refuse("weight_uk, weight_uv", "one of them at least", "none");
  if (wants_uk && checks.CheckStruct("weight_uk", uk)) checks.CheckRank("weight_uk", uk, {3});
  if (wants_uv && checks.CheckStruct("weight_uv", uv)) checks.CheckRank("weight_uv", uv, {3});
  if (!checks.ok()) return FailFunction("mlap_split_kv_b_proj", checks.status());

  const int64_t heads = wants_uk ? uk.dims[0] : uv.dims[0];
  const int64_t rows = kv_b.dims[0];
  const int64_t kv_rank = kv_b.dims[1];
  if (heads < 1 || rows % heads != 0) {
    checks.Refuse("kv_b_proj", "rows of a multiple of N, which is " + std::to_string(heads), std::to_string(rows));
    return FailFunction("mlap_split_kv_b_proj", checks.status());
  }
  const int64_t head_rows = rows / heads;  // D + Dv
  const int64_t nope = wants_uk ? uk.dims[1] : head_rows - uv.dims[2];
  if (nope < 0 || nope > head_rows) {
    checks.Refuse(wants_uk ? "weight_uk" : "weight_uv",
                  "at most the D + Dv = " + std::to_string(head_rows) + " of kv_b_proj",
                  DimsText(DimsOf(wants_uk ? uk : uv)));
  }
  const StridedView all = ViewOf(kv_b);
  const auto copy = [&](const char* name, const mlap_tensor& to, int64_t first, const Dims& dims, bool transposes) {
    if (!checks.CheckStrided(name, to, kv_b.dtype, dims, Access::kWrite)) return StridedView{};
    checks.CheckApart(name, to, "kv_b_proj", kv_b);
    StridedView from = all;
    from.data = all.data == nullptr ? nullptr : all.data + first * all.strides[0] * all.element_bytes;
    from.dims = dims;
    from.strides[0] = head_rows * all.strides[0];
    from.strides[1] = all.strides[transposes ? 1 : 0];
    from.strides[2] = all.strides[transposes ? 0 : 1];
    return from;
  };
  StridedView from_uk, from_uv;
  if (wants_uk) from_uk = copy("weight_uk", uk, 0, {heads, nope, kv_rank}, false);
  if (wants_uv) from_uv = copy("weight_uv", uv, nope, {heads, kv_rank, head_rows - nope}, true);
  if (wants_uk && wants_uv) checks.CheckApart("weight_uv", uv, "weight_uk", uk);
  if (!checks.ok()) return FailFunction("mlap_split_kv_b_proj", checks.status());
  if (wants_uk) CopyStrided(from_uk, ViewOf(uk));
  if (wants_uv) CopyStrided(from_uv, ViewOf(uv));
  return MLAP_OK;
}

}  // namespace
}  // namespace mlap

mlap_status mlap_nz_dims(mlap_dtype dtype, int64_t k, int64_t n, int64_t dims[MLAP_MAX_RANK]) {
  constexpr const char* kFunction = "mlap_nz_dims";
  return mlap::Guarded(kFunction, [&] {
    const mlap_status status = mlap::CheckPlace(kFunction, "dims", dims);
    if (status != MLAP_OK) return status;
    mlap::TensorChecks checks;
    mlap::CheckNzDtype(&checks, "dtype", dtype);
    for (const auto& [name, size] : {std::pair{"k", k}, std::pair{"n", n}}) {
      if (size < 0 || size > mlap::kLargestSize) checks.Refuse(name, "a size from 0 to 2^40", std::to_string(size));
    }
    if (!checks.ok()) return mlap::FailFunction(kFunction, checks.status());
    const mlap::Dims image = mlap::NzDims(mlap::FindDtype(dtype)->bytes, k, n);
    std::copy(std::begin(image.size), std::end(image.size), dims);
    return MLAP_OK;
  });
}

mlap_status mlap_nz_pack(const mlap_tensor* matrix, const mlap_tensor* nz) {
  return mlap::ConvertNz("mlap_nz_pack", matrix, nz, true);
}

mlap_status mlap_nz_unpack(const mlap_tensor* nz, const mlap_tensor* matrix) {
  return mlap::ConvertNz("mlap_nz_unpack", matrix, nz, false);
}

mlap_status mlap_split_kv_b_proj(const mlap_tensor* kv_b_proj, const mlap_tensor* weight_uk,
                                 const mlap_tensor* weight_uv) {
  constexpr const char* kFunction = "mlap_split_kv_b_proj";
  return mlap::Guarded(kFunction, [&] {
    const mlap_status status = mlap::CheckPlace(kFunction, "kv_b_proj", kv_b_proj);
    if (status != MLAP_OK) return status;
    const mlap_tensor absent = {};
    return mlap::SplitKvB(*kv_b_proj, weight_uk != nullptr ? *weight_uk : absent,
                          weight_uv != nullptr ? *weight_uv : absent);
  });
}
