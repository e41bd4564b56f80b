// The library, the machine, and what was chosen for it.
#include "tensor_argument.h"

namespace mlap::python {
namespace {

namespace nb = nanobind;

// (name, is_built, is_usable, why_unusable), in ascending order of preference.
nb::list Isas() {
  nb::list isas;
  for (size_t i = 0; i < mlap_isa_count(); ++i) {
    mlap_isa isa = {};
    isa.struct_size = sizeof(isa);
    ThrowIfFailed(mlap_isa_at(i, &isa));
    isas.append(nb::make_tuple(isa.name, isa.is_built != 0, isa.is_usable != 0, isa.why_unusable));
  }
  return isas;
}

// op -> kernel
nb::dict Kernels() {
  nb::dict kernels;
  for (size_t i = 0; i < mlap_kernel_count(); ++i) {
    mlap_kernel kernel = {};
    kernel.struct_size = sizeof(kernel);
    ThrowIfFailed(mlap_kernel_at(i, &kernel));
    kernels[kernel.op] = nb::str(kernel.name);
  }
  return kernels;
}

const char* ChosenIsa() {
  const char* name = nullptr;
  ThrowIfFailed(mlap_chosen_isa(&name));
  return name;
}

}  // namespace

void DefineMachine(nb::module_& module) {
  module.def("version", &mlap_version_string);
  module.def("cpu_name", &mlap_cpu_name);
  module.def("isas", &Isas);
  module.def("kernels", &Kernels);
  module.def("chosen_isa", &ChosenIsa);
}

}  // namespace mlap::python
