// mlap_compare.
#include <string>

#include "api/api_function.h"
#include "api/comparison.h"
#include "api/tensor_checks.h"
#include "base/float_environment.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {
namespace {

bool IsStandard(mlap_standard standard) {
  for (size_t i = 0; StandardAt(i) != nullptr; ++i) {
    if (StandardAt(i)->standard == standard) return true;
  }
  return false;
}

mlap_status CompareChecked(const mlap_tensor& actual, const mlap_tensor& golden, const mlap_tensor* benchmark,
                           mlap_standard standard, mlap_comparison* result) {
  TensorChecks checks;
  if (!IsStandard(standard)) checks.Refuse("standard", "an mlap_standard", std::to_string(static_cast<int>(standard)));
  const auto check = [&](const char* name, const mlap_tensor& tensor) {
    if (!checks.CheckStruct(name, tensor)) return;
    checks.CheckRowMajor(name, tensor);
    checks.CheckDims(name, tensor, DimsOf(actual));
    checks.CheckMemory(name, tensor, Access::kRead);
  };
  check("actual", actual);
  check("golden", golden);
  const char* expected = nullptr;
  if (checks.ok() && !StandardTakes(standard, actual.dtype, &expected)) {
    checks.Refuse("actual", expected, DtypeText(actual.dtype));
  }
  if (checks.ok() && standard == MLAP_STANDARD_EXACT) checks.CheckDtype("golden", golden, actual.dtype);
  if (checks.ok() && NeedsBenchmark(standard) != (benchmark != nullptr)) {
    checks.Refuse("benchmark", NeedsBenchmark(standard) ? "a tensor for this standard" : "null for this standard",
                  benchmark != nullptr ? "a tensor" : "null");
  }
  if (benchmark != nullptr) check("benchmark", *benchmark);
  if (!checks.ok()) return FailFunction("mlap_compare", checks.status());
  const DefaultFloatEnvironment environment;
  Compare(actual, golden, benchmark, standard, result);
  return MLAP_OK;
}

}  // namespace
}  // namespace mlap

mlap_status mlap_standard_at(size_t index, mlap_standard* standard, const char** name) {
  constexpr const char* kFunction = "mlap_standard_at";
  return mlap::Guarded(kFunction, [&] {
    mlap_status status = mlap::CheckPlace(kFunction, "standard", standard);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "name", name);
    if (status != MLAP_OK) return status;
    const mlap::StandardName* row = mlap::StandardAt(index);
    if (row == nullptr) {
      return mlap::FailWith(MLAP_INVALID_ARGUMENT,
                            std::string(kFunction) + ": index: expected the place of a standard, found " +
                                std::to_string(index) + "; the first index that is refused is their number");
    }
    *standard = row->standard;
    *name = row->name;
    return MLAP_OK;
  });
}

mlap_status mlap_compare(const mlap_tensor* actual, const mlap_tensor* golden, const mlap_tensor* benchmark,
                         mlap_standard standard, mlap_comparison* comparison) {
  constexpr const char* kFunction = "mlap_compare";
  return mlap::Guarded(kFunction, [&] {
    mlap_status status = mlap::CheckPlace(kFunction, "actual", actual);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "golden", golden);
    if (status == MLAP_OK) status = mlap::CheckStructSize(kFunction, "comparison", comparison);
    return status == MLAP_OK ? mlap::CompareChecked(*actual, *golden, benchmark, standard, comparison) : status;
  });
}
