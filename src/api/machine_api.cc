// The part of mlaprolog.h that tells about the machine and the kernels chosen for it.
#include <iterator>
#include <string>

#include "api/last_error.h"
#include "cpu/dispatch.h"
#include "cpu/isa.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {
namespace {

#define MLAP_STRINGIZE_(x) #x
#define MLAP_STRINGIZE(x) MLAP_STRINGIZE_(x)
constexpr char kVersion[] =
    MLAP_STRINGIZE(MLAP_VERSION_MAJOR) "." MLAP_STRINGIZE(MLAP_VERSION_MINOR) "." MLAP_STRINGIZE(MLAP_VERSION_PATCH);
#undef MLAP_STRINGIZE
#undef MLAP_STRINGIZE_

// What the texts of this process are kept in: they are handed out as pointers.
struct MachineTexts {
  std::string cpu_name = CpuName();
  std::string why_unusable[kNumIsas];

  MachineTexts() {
    const CpuFeatures features = FeaturesFrom(ReadCpuid());
    for (int i = 0; i < kNumIsas; ++i) why_unusable[i] = WhyUnusable(Isas()[i], features);
  }
};

const MachineTexts& Texts() {
  static const MachineTexts* const kTexts = new MachineTexts;
  return *kTexts;
}

constexpr const char* kOps[] = {
#define MLAP_KERNEL_OP(member, Fn) #member,
    MLAP_KERNEL_LIST(MLAP_KERNEL_OP)
#undef MLAP_KERNEL_OP
};

// Checks an indexed query's arguments: a struct of this version and an index below `count`.
template <class Struct>
mlap_status CheckQuery(const char* function, const Struct* out, size_t index, size_t count) {
  if (out == nullptr || out->struct_size != sizeof(Struct)) {
    return FailWith(MLAP_INVALID_ARGUMENT,
                    std::string(function) + ": expected a struct with struct_size " + std::to_string(sizeof(Struct)) +
                        ", found " + (out == nullptr ? "null" : "struct_size " + std::to_string(out->struct_size)) +
                        "; set it with sizeof");
  }
  if (index >= count) {
    return FailWith(MLAP_INVALID_ARGUMENT, std::string(function) + ": index: expected less than " +
                                               std::to_string(count) + ", found " + std::to_string(index) +
                                               "; stop there");
  }
  return MLAP_OK;
}

}  // namespace
}  // namespace mlap

using mlap::CheckQuery;
using mlap::FailWith;

const char* mlap_version_string(void) { return mlap::kVersion; }

const char* mlap_last_error(void) { return mlap::LastErrorText(); }

const char* mlap_cpu_name(void) { return mlap::Texts().cpu_name.c_str(); }

size_t mlap_isa_count(void) { return mlap::kNumIsas; }

mlap_status mlap_isa_at(size_t index, mlap_isa* isa) {
  const mlap_status status = CheckQuery("mlap_isa_at", isa, index, mlap_isa_count());
  if (status != MLAP_OK) return status;
  const mlap::Isa& row = mlap::Isas()[index];
  isa->name = row.name;
  isa->is_built = row.use != nullptr ? 1 : 0;
  isa->why_unusable = mlap::Texts().why_unusable[index].c_str();
  isa->is_usable = *isa->why_unusable == '\0' ? 1 : 0;
  return MLAP_OK;
}

size_t mlap_kernel_count(void) { return std::size(mlap::kOps); }

mlap_status mlap_kernel_at(size_t index, mlap_kernel* kernel) {
  const mlap_status status = CheckQuery("mlap_kernel_at", kernel, index, mlap_kernel_count());
  if (status != MLAP_OK) return status;
  const mlap::KernelChoice* choice = nullptr;
  const mlap::Status chosen = mlap::ProcessKernels(&choice);
  if (!chosen.ok()) return mlap::ToApiStatus(chosen);
  const char* const names[] = {
#define MLAP_KERNEL_NAME(member, Fn) choice->table.member.name,
      MLAP_KERNEL_LIST(MLAP_KERNEL_NAME)
#undef MLAP_KERNEL_NAME
  };
  kernel->op = mlap::kOps[index];
  kernel->name = names[index];
  return MLAP_OK;
}

mlap_status mlap_chosen_isa(const char** name) {
  if (name == nullptr)
    return FailWith(MLAP_INVALID_ARGUMENT, "mlap_chosen_isa: name: expected a place, found null; pass its address");
  const mlap::KernelChoice* choice = nullptr;
  const mlap::Status chosen = mlap::ProcessKernels(&choice);
  if (!chosen.ok()) return mlap::ToApiStatus(chosen);
  *name = choice->isa;
  return MLAP_OK;
}

mlap_status mlap_num_threads(int* num_threads) {
  if (num_threads == nullptr) {
    return FailWith(MLAP_INVALID_ARGUMENT,
                    "mlap_num_threads: num_threads: expected a place, found null; pass its address");
  }
  return mlap::ToApiStatus(mlap::ConfiguredThreads(num_threads));
}
