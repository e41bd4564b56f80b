// What prepares weights, tables and caches.
#include "tensor_argument.h"

namespace mlap::python {
namespace {

namespace nb = nanobind;

nb::tuple NzDims(int dtype, int64_t k, int64_t n) {
  int64_t dims[MLAP_MAX_RANK];
  ThrowIfFailed(mlap_nz_dims(static_cast<mlap_dtype>(dtype), k, n, dims));
  return nb::make_tuple(dims[0], dims[1], dims[2], dims[3]);
}

void NzPack(nb::handle matrix, nb::handle nz) {
  const mlap_tensor from = ToTensor(matrix);
  const mlap_tensor to = ToTensor(nz);
  CallUnlocked([&] { return mlap_nz_pack(&from, &to); });
}

void NzUnpack(nb::handle nz, nb::handle matrix) {
  const mlap_tensor from = ToTensor(nz);
  const mlap_tensor to = ToTensor(matrix);
  CallUnlocked([&] { return mlap_nz_unpack(&from, &to); });
}

void SplitKvBProj(nb::handle kv_b_proj, nb::handle weight_uk, nb::handle weight_uv) {
  const mlap_tensor from = ToTensor(kv_b_proj);
  const mlap_tensor uk = ToTensor(weight_uk);
  const mlap_tensor uv = ToTensor(weight_uv);
  CallUnlocked([&] {
    return mlap_split_kv_b_proj(&from, weight_uk.is_none() ? nullptr : &uk, weight_uv.is_none() ? nullptr : &uv);
  });
}

void RopeReorder(nb::handle from, int64_t group, int64_t rope, int order, nb::handle to) {
  const mlap_tensor source = ToTensor(from);
  const mlap_tensor target = ToTensor(to);
  CallUnlocked([&] { return mlap_rope_reorder(&source, group, rope, static_cast<mlap_rope_order>(order), &target); });
}

// numbers: base, factor, original_max_position, beta_fast, beta_slow, mscale, mscale_all_dim
void RopeTable(nb::handle positions, nb::handle rope_sin, nb::handle rope_cos, int rope_style,
               const nb::tuple& numbers) {
  mlap_rope_table_args args;
  mlap_rope_table_args_init(&args);
  double* const members[] = {&args.base,      &args.factor, &args.original_max_position, &args.beta_fast,
                             &args.beta_slow, &args.mscale, &args.mscale_all_dim};
  if (numbers.size() != std::size(members)) throw nb::value_error("seven numbers are expected");
  for (size_t i = 0; i < std::size(members); ++i) *members[i] = nb::cast<double>(numbers[i]);
  args.rope_style = static_cast<mlap_rope_style>(rope_style);
  const mlap_tensor places = ToTensor(positions);
  const mlap_tensor sin = ToTensor(rope_sin);
  const mlap_tensor cos = ToTensor(rope_cos);
  CallUnlocked([&] { return mlap_rope_table(&args, &places, &sin, &cos); });
}

void CacheConvert(nb::handle from, int from_mode, nb::handle to, int to_mode) {
  const mlap_tensor source = ToTensor(from);
  const mlap_tensor target = ToTensor(to);
  CallUnlocked([&] {
    return mlap_cache_convert(&source, static_cast<mlap_cache_mode>(from_mode), &target,
                              static_cast<mlap_cache_mode>(to_mode));
  });
}

void RowsSplit(nb::handle rows, int order, nb::handle values, nb::handle rope, nb::handle scales) {
  const mlap_tensor from = ToTensor(rows);
  const mlap_tensor to[] = {ToTensor(values), ToTensor(rope), ToTensor(scales)};
  CallUnlocked(
      [&] { return mlap_cache_rows_split(&from, static_cast<mlap_row_order>(order), &to[0], &to[1], &to[2]); });
}

void RowsJoin(nb::handle values, nb::handle rope, nb::handle scales, nb::handle rows, int order) {
  const mlap_tensor from[] = {ToTensor(values), ToTensor(rope), ToTensor(scales)};
  const mlap_tensor to = ToTensor(rows);
  CallUnlocked(
      [&] { return mlap_cache_rows_join(&from[0], &from[1], &from[2], &to, static_cast<mlap_row_order>(order)); });
}

void RowsReorder(nb::handle from, int from_order, nb::handle to, int to_order, int64_t kv_rank, int64_t rope) {
  const mlap_tensor source = ToTensor(from);
  const mlap_tensor target = ToTensor(to);
  CallUnlocked([&] {
    return mlap_cache_rows_reorder(&source, static_cast<mlap_row_order>(from_order), &target,
                                   static_cast<mlap_row_order>(to_order), kv_rank, rope);
  });
}

}  // namespace

void DefinePreparation(nb::module_& module) {
  const auto tensor = [](const char* name) { return nb::arg(name).none(); };
  module.def("nz_dims", &NzDims, nb::arg("dtype"), nb::arg("k"), nb::arg("n"));
  module.def("nz_pack", &NzPack, tensor("matrix"), tensor("nz"));
  module.def("nz_unpack", &NzUnpack, tensor("nz"), tensor("matrix"));
  module.def("split_kv_b_proj", &SplitKvBProj, tensor("kv_b_proj"), tensor("weight_uk"), tensor("weight_uv"));
  module.def("rope_reorder", &RopeReorder, tensor("source"), nb::arg("group"), nb::arg("rope"), nb::arg("order"),
             tensor("target"));
  module.def("rope_table", &RopeTable, tensor("positions"), tensor("rope_sin"), tensor("rope_cos"),
             nb::arg("rope_style"), nb::arg("numbers"));
  module.def("cache_convert", &CacheConvert, tensor("source"), nb::arg("source_mode"), tensor("target"),
             nb::arg("target_mode"));
  module.def("cache_rows_split", &RowsSplit, tensor("rows"), nb::arg("order"), tensor("values"), tensor("rope"),
             tensor("scales"));
  module.def("cache_rows_join", &RowsJoin, tensor("values"), tensor("rope"), tensor("scales"), tensor("rows"),
             nb::arg("order"));
  module.def("cache_rows_reorder", &RowsReorder, tensor("source"), nb::arg("source_order"), tensor("target"),
             nb::arg("target_order"), nb::arg("kv_rank"), nb::arg("rope"));
}

}  // namespace mlap::python
