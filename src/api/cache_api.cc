// Converting caches: between orders of pages, and between orders of per-group rows.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "api/api_function.h"
#include "api/strided_copy.h"
#include "api/tensor_checks.h"
#include "base/cache_view.h"
#include "base/prolog_args.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {
namespace {

// ---- Pages ----

CacheView PagesOf(const mlap_tensor& cache, mlap_cache_mode mode) {
  const StridedView strided = ViewOf(cache);
  CacheView view =
      ContiguousCache(cache.data, ToElementType(cache.dtype), mode == MLAP_PA_NZ ? CacheOrder::kNz : CacheOrder::kRows,
                      cache.dims[0], cache.dims[1], cache.dims[3]);
  view.block_stride = strided.strides[0];
  view.slot_stride = strided.strides[1];
  view.element_stride = strided.strides[3];
  return view;
}

Status CheckPages(const mlap_tensor& from, mlap_cache_mode from_mode, const mlap_tensor& to, mlap_cache_mode to_mode) {
  TensorChecks checks;
  for (const auto& [name, mode] : {std::pair{"from_mode", from_mode}, std::pair{"to_mode", to_mode}}) {
    if (mode == MLAP_PA_BSND || mode == MLAP_PA_NZ) continue;
    checks.Refuse(name, "MLAP_PA_BSND or MLAP_PA_NZ", std::to_string(static_cast<int>(mode)));
  }
  if (!checks.CheckStruct("from", from)) return checks.status();
  checks.CheckRank("from", from, {4});
  if (from.dtype != MLAP_BF16 && from.dtype != MLAP_INT8 && from.dtype != MLAP_FLOAT8_E4M3 &&
      from.dtype != MLAP_HIFLOAT8) {
    checks.Refuse("from", "a cache's type: BF16, INT8, FLOAT8_E4M3 or HIFLOAT8", DtypeText(from.dtype));
  }
  if (checks.ok() && (from.dims[1] < 1 || from.dims[2] != 1 || from.dims[3] < 1)) {
    checks.Refuse("from", "[BlockNum, BlockSize, 1, width]", DimsText(DimsOf(from)));
  }
  const int64_t c0 = checks.ok() ? FractalColumns(ToElementType(from.dtype)) : 1;
  if (checks.ok() && (from_mode == MLAP_PA_NZ || to_mode == MLAP_PA_NZ) && from.dims[3] % c0 != 0) {
    checks.Refuse("from", "rows of a multiple of " + std::to_string(c0) + " elements for NZ pages",
                  std::to_string(from.dims[3]));
  }
  checks.CheckRowMajor("from", from);
  checks.CheckMemory("from", from, Access::kRead);
  if (!checks.ok()) return checks.status();
  checks.CheckStrided("to", to, from.dtype, DimsOf(from), Access::kWrite);
  if (checks.ok()) checks.CheckApart("to", to, "from", from);
  return checks.status();
}

void ConvertPages(const CacheView& from, const CacheView& to) {
  const int64_t bytes = ElementBytes(from.type);
  const int64_t run = std::min(from.RunLength(), to.RunLength());
  for (int64_t slot = 0; slot < from.Capacity(); ++slot) {
    for (int64_t d = 0; d < from.width; d += run) {
      const char* in = static_cast<const char*>(from.data) + from.Offset(slot, d) * bytes;
      char* out = static_cast<char*>(to.data) + to.Offset(slot, d) * bytes;
      const ByteView source = {const_cast<char*>(in), bytes, {run}, {from.element_stride * bytes}};
      CopyBytes(source, {out, bytes, {run}, {to.element_stride * bytes}});
    }
  }
}

// ---- Per-group rows ----

// Where the parts of a row lie, in bytes.
struct RowLayout {
  GroupRow row;
  int64_t rope;
  int64_t scales;

  RowLayout(int64_t kv_rank, int64_t rope_columns, mlap_row_order order) : row{kv_rank, rope_columns} {
    const int64_t scale_bytes = row.NumGroups() * static_cast<int64_t>(sizeof(float));
    const bool is_cann = order == MLAP_ROW_CANN;
    rope = is_cann ? row.RopeOffset() : kv_rank + scale_bytes;
    scales = is_cann ? row.ScaleOffset() : kv_rank;
  }
};

void CheckOrder(TensorChecks* checks, const char* name, mlap_row_order order) {
  if (order == MLAP_ROW_CANN || order == MLAP_ROW_FLASHMLA) return;
  checks->Refuse(name, "MLAP_ROW_CANN or MLAP_ROW_FLASHMLA", std::to_string(static_cast<int>(order)));
}

// Rows of bytes side by side.
void CheckRows(TensorChecks* checks, const char* name, const mlap_tensor& rows, Access access) {
  if (!checks->CheckStruct(name, rows)) return;
  if (rows.dtype != MLAP_INT8 && rows.dtype != MLAP_FLOAT8_E4M3 && rows.dtype != MLAP_HIFLOAT8) {
    checks->Refuse(name, "INT8, FLOAT8_E4M3 or HIFLOAT8", DtypeText(rows.dtype));
  }
  checks->CheckRowMajor(name, rows);
  checks->CheckMemory(name, rows, access);
  if (!checks->ok()) return;
  const StridedView view = ViewOf(rows);
  if (view.dims.size[rows.rank - 1] > 1 && view.strides[rows.rank - 1] != 1) {
    checks->Refuse(name, "rows of bytes side by side",
                   "a last stride of " + std::to_string(view.strides[rows.rank - 1]));
  }
}

// Columns of the rows' bytes as a view with the shape of `like`, whose last dimension holds elements of a part.
ByteView PartOf(const mlap_tensor& rows, int64_t offset, const StridedView& like) {
  ByteView part = ToByteView(ViewOf(rows));
  part.data += offset;
  part.element_bytes = like.element_bytes;
  part.dims = like.dims;
  part.steps[part.dims.rank - 1] = like.element_bytes;
  return part;
}

enum class Direction { kSplit, kJoin };

mlap_status MoveParts(const char* function, Direction direction, const mlap_tensor& rows, mlap_row_order order,
                      const mlap_tensor& values, const mlap_tensor& rope, const mlap_tensor& scales) {
  const Access parts_access = direction == Direction::kSplit ? Access::kWrite : Access::kRead;
  TensorChecks checks;
  CheckOrder(&checks, "order", order);
  CheckRows(&checks, "rows", rows, direction == Direction::kSplit ? Access::kRead : Access::kWrite);
  checks.CheckStruct("values", values);
  checks.CheckStruct("rope", rope);
  if (checks.ok()) checks.CheckRank("values", values, {rows.rank});
  if (checks.ok()) checks.CheckRank("rope", rope, {rows.rank});
  if (!checks.ok()) return FailFunction(function, checks.status());
  const int last = rows.rank - 1;
  const RowLayout layout(values.dims[last], rope.dims[last], order);
  Dims lead = DimsOf(rows);
  --lead.rank;
  checks.CheckStrided("values", values, rows.dtype, lead.Then({layout.row.kv_rank}), parts_access);
  checks.CheckStrided("rope", rope, MLAP_BF16, lead.Then({layout.row.rope}), parts_access);
  checks.CheckStrided("scales", scales, MLAP_FLOAT32, lead.Then({layout.row.NumGroups()}), parts_access);
  if (checks.ok() && rows.dims[last] != layout.row.Bytes()) {
    checks.Refuse("rows",
                  "rows of " + std::to_string(layout.row.Bytes()) + " bytes, which values, rope and scales have",
                  std::to_string(rows.dims[last]));
  }
  if (!checks.ok()) return FailFunction(function, checks.status());
  checks.CheckApart("values", values, "rows", rows);
  checks.CheckApart("rope", rope, "rows", rows);
  checks.CheckApart("scales", scales, "rows", rows);
  if (!checks.ok()) return FailFunction(function, checks.status());
  if (lead.Count() == 0) return MLAP_OK;
  struct Part {
    int64_t offset;
    StridedView tensor;
  };
  for (const Part& part :
       {Part{0, ViewOf(values)}, Part{layout.rope, ViewOf(rope)}, Part{layout.scales, ViewOf(scales)}}) {
    const ByteView in_rows = PartOf(rows, part.offset, part.tensor);
    const ByteView apart = ToByteView(part.tensor);
    CopyBytes(direction == Direction::kSplit ? in_rows : apart, direction == Direction::kSplit ? apart : in_rows);
  }
  return MLAP_OK;
}

mlap_status ReorderRows(const char* function, const mlap_tensor& from, mlap_row_order from_order, const mlap_tensor& to,
                        mlap_row_order to_order, int64_t kv_rank, int64_t rope) {
  constexpr int64_t kLargestSize = int64_t{1} << 28;
  TensorChecks checks;
  CheckOrder(&checks, "from_order", from_order);
  CheckOrder(&checks, "to_order", to_order);
  for (const auto& [name, size] : {std::pair{"kv_rank", kv_rank}, std::pair{"rope", rope}}) {
    if (size < 1 || size > kLargestSize) checks.Refuse(name, "a size from 1 to 2^28", std::to_string(size));
  }
  CheckRows(&checks, "from", from, Access::kRead);
  if (!checks.ok()) return FailFunction(function, checks.status());
  const RowLayout old_layout(kv_rank, rope, from_order);
  const RowLayout new_layout(kv_rank, rope, to_order);
  const int64_t row_bytes = old_layout.row.Bytes();
  if (from.dims[from.rank - 1] != row_bytes) {
    checks.Refuse("from", "rows of " + std::to_string(row_bytes) + " bytes for this kv_rank and rope",
                  std::to_string(from.dims[from.rank - 1]));
  }
  CheckRows(&checks, "to", to, Access::kWrite);
  checks.CheckDtype("to", to, from.dtype);
  checks.CheckDims("to", to, DimsOf(from));
  if (!checks.ok()) return FailFunction(function, checks.status());
  const StridedView in = ViewOf(from);
  const StridedView out = ViewOf(to);
  const bool is_in_place = in.data == out.data && std::equal(in.strides, in.strides + in.dims.rank, out.strides);
  if (!is_in_place) checks.CheckApart("to", to, "from", from);
  if (!checks.ok()) return FailFunction(function, checks.status());
  if (in.dims.Count() == 0) return MLAP_OK;

  std::vector<char> old_row(static_cast<size_t>(row_bytes)), new_row(old_row.size());
  Dims lead = in.dims;
  --lead.rank;
  for (int64_t i = 0; i < lead.Count(); ++i) {
    int64_t in_offset = 0, out_offset = 0, rest = i;
    for (int d = lead.rank; d-- > 0;) {
      in_offset += rest % lead.size[d] * in.strides[d];
      out_offset += rest % lead.size[d] * out.strides[d];
      rest /= lead.size[d];
    }
    std::memcpy(old_row.data(), in.data + in_offset, old_row.size());
    const auto move = [&](int64_t old_place, int64_t new_place, int64_t bytes) {
      std::memcpy(new_row.data() + new_place, old_row.data() + old_place, static_cast<size_t>(bytes));
    };
    move(0, 0, kv_rank);
    move(old_layout.rope, new_layout.rope, 2 * rope);
    move(old_layout.scales, new_layout.scales, 4 * old_layout.row.NumGroups());
    std::memcpy(out.data + out_offset, new_row.data(), new_row.size());
  }
  return MLAP_OK;
}

}  // namespace
}  // namespace mlap

mlap_status mlap_cache_convert(const mlap_tensor* from, mlap_cache_mode from_mode, const mlap_tensor* to,
                               mlap_cache_mode to_mode) {
  constexpr const char* kFunction = "mlap_cache_convert";
  return mlap::Guarded(kFunction, [&] {
    mlap_status status = mlap::CheckPlace(kFunction, "from", from);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "to", to);
    if (status != MLAP_OK) return status;
    const mlap::Status checked = mlap::CheckPages(*from, from_mode, *to, to_mode);
    if (!checked.ok()) return mlap::FailFunction(kFunction, checked);
    mlap::ConvertPages(mlap::PagesOf(*from, from_mode), mlap::PagesOf(*to, to_mode));
    return MLAP_OK;
  });
}

mlap_status mlap_cache_rows_split(const mlap_tensor* rows, mlap_row_order order, const mlap_tensor* values,
                                  const mlap_tensor* rope, const mlap_tensor* scales) {
  constexpr const char* kFunction = "mlap_cache_rows_split";
  return mlap::Guarded(kFunction, [&] {
    mlap_status status = mlap::CheckPlace(kFunction, "rows", rows);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "values", values);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "rope", rope);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "scales", scales);
    if (status != MLAP_OK) return status;
    return mlap::MoveParts(kFunction, mlap::Direction::kSplit, *rows, order, *values, *rope, *scales);
  });
}

mlap_status mlap_cache_rows_join(const mlap_tensor* values, const mlap_tensor* rope, const mlap_tensor* scales,
                                 const mlap_tensor* rows, mlap_row_order order) {
  constexpr const char* kFunction = "mlap_cache_rows_join";
  return mlap::Guarded(kFunction, [&] {
    mlap_status status = mlap::CheckPlace(kFunction, "values", values);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "rope", rope);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "scales", scales);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "rows", rows);
    if (status != MLAP_OK) return status;
    return mlap::MoveParts(kFunction, mlap::Direction::kJoin, *rows, order, *values, *rope, *scales);
  });
}

mlap_status mlap_cache_rows_reorder(const mlap_tensor* from, mlap_row_order from_order, const mlap_tensor* to,
                                    mlap_row_order to_order, int64_t kv_rank, int64_t rope) {
  constexpr const char* kFunction = "mlap_cache_rows_reorder";
  return mlap::Guarded(kFunction, [&] {
    mlap_status status = mlap::CheckPlace(kFunction, "from", from);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "to", to);
    if (status != MLAP_OK) return status;
    return mlap::ReorderRows(kFunction, *from, from_order, *to, to_order, kv_rank, rope);
  });
}
