// Comparisons by named standards, and what a device would say.
#include <nanobind/stl/string.h>

#include <vector>

#include "tensor_argument.h"

namespace mlap::python {
namespace {

namespace nb = nanobind;

struct Measure {
  const char* name;
  double mlap_comparison::*member;
};
constexpr Measure kMeasures[] = {
    {"relative_norm", &mlap_comparison::relative_norm},
    {"max_row_rms", &mlap_comparison::max_row_rms},
    {"cosine", &mlap_comparison::cosine},
    {"max_abs", &mlap_comparison::max_abs},
    {"mere", &mlap_comparison::mere},
    {"mare", &mlap_comparison::mare},
    {"rmse", &mlap_comparison::rmse},
    {"share_beyond", &mlap_comparison::share_beyond},
};
constexpr Measure kRatios[] = {
    {"mare_ratio", &mlap_comparison::mare_ratio},
    {"mere_ratio", &mlap_comparison::mere_ratio},
    {"rmse_ratio", &mlap_comparison::rmse_ratio},
    {"small_value_ratio", &mlap_comparison::small_value_ratio},
};

nb::dict Compare(nb::handle actual, nb::handle golden, nb::handle benchmark, int standard) {
  const mlap_tensor a = ToTensor(actual);
  const mlap_tensor g = ToTensor(golden);
  const mlap_tensor b = ToTensor(benchmark);
  mlap_comparison comparison = {};
  comparison.struct_size = sizeof(comparison);
  CallUnlocked([&] {
    return mlap_compare(&a, &g, benchmark.is_none() ? nullptr : &b, static_cast<mlap_standard>(standard), &comparison);
  });
  nb::dict result;
  result["passed"] = comparison.is_passed != 0;
  result["verdict"] = nb::str(comparison.verdict);
  result["num_elements"] = comparison.num_elements;
  result["num_different"] = comparison.num_different;
  result["num_nonfinite_different"] = comparison.num_nonfinite_different;
  for (const Measure& measure : kMeasures) result[measure.name] = comparison.*measure.member;
  if (!benchmark.is_none()) {
    for (const Measure& ratio : kRatios) result[ratio.name] = comparison.*ratio.member;
  }
  return result;
}

// name -> value
nb::dict Standards() {
  nb::dict standards;
  mlap_standard standard;
  const char* name = nullptr;
  for (size_t i = 0; mlap_standard_at(i, &standard, &name) == MLAP_OK; ++i) {
    standards[name] = static_cast<int>(standard);
  }
  return standards;
}

// (is_accepted, reasons). sizes: the layer's six, batch, sequence, block_size; modes: cache_mode, weight_quant,
// kv_quant, rope_style.
nb::tuple CheckLimits(const std::string& soc, int version, const nb::tuple& sizes, const nb::tuple& modes) {
  if (sizes.size() != 9 || modes.size() != 4) throw nb::value_error("nine sizes and four modes are expected");
  mlap_limits_args args = {};
  args.struct_size = sizeof(args);
  args.soc = soc.c_str();
  args.version = version;
  int64_t* const members[] = {&args.dims.hidden,  &args.dims.q_rank, &args.dims.heads, &args.dims.nope, &args.dims.rope,
                              &args.dims.kv_rank, &args.batch,       &args.sequence,   &args.block_size};
  for (size_t i = 0; i < std::size(members); ++i) *members[i] = nb::cast<int64_t>(sizes[i]);
  args.cache_mode = static_cast<mlap_cache_mode>(nb::cast<int>(modes[0]));
  args.weight_quant = static_cast<mlap_weight_quant>(nb::cast<int>(modes[1]));
  args.kv_quant = static_cast<mlap_kv_quant>(nb::cast<int>(modes[2]));
  args.rope_style = static_cast<mlap_rope_style>(nb::cast<int>(modes[3]));
  int is_accepted = 0;
  std::vector<char> reasons(1 << 14);
  ThrowIfFailed(mlap_check_limits(&args, &is_accepted, reasons.data(), reasons.size()));
  return nb::make_tuple(is_accepted != 0, nb::str(is_accepted != 0 ? "" : reasons.data()));
}

}  // namespace

void DefineComparison(nb::module_& module) {
  module.def("compare", &Compare, nb::arg("actual").none(), nb::arg("golden").none(), nb::arg("benchmark").none(),
             nb::arg("standard"));
  module.def("standards", &Standards);
  module.def("check_limits", &CheckLimits, nb::arg("soc"), nb::arg("version"), nb::arg("sizes"), nb::arg("modes"));
}

}  // namespace mlap::python
