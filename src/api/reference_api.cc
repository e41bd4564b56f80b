// mlap_reference_run.
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "api/args_check.h"
#include "api/last_error.h"
#include "base/float_environment.h"
#include "core/prolog_plan.h"
#include "core/slot_check.h"
#include "mlaprolog/mlaprolog.h"
#include "reference/reference.h"

namespace mlap {
namespace {

template <class T>
void CopyOut(const std::vector<T>& values, const mlap_tensor& out) {
  if (out.data != nullptr && !values.empty()) std::memcpy(out.data, values.data(), values.size() * sizeof(T));
}

mlap_status RunChecked(const mlap_prolog_args& args) {
  const DefaultFloatEnvironment environment;
  PrologArgs prolog;
  Status status = ToPrologArgs(args, &prolog);
  if (status.ok()) {
    PrologPlan unused;  // planning checks that the sizes multiply without overflow
    status = PlanProlog(prolog.shape, prolog.mode, 1, &unused);
  }
  if (status.ok()) status = CheckSlots(prolog);
  if (!status.ok()) return FailWith(ToApiStatus(status), "mlap_reference_run: " + status.text());

  Intermediates seen;
  ReferenceOptions options;
  options.intermediates = args.intermediates != nullptr ? &seen : nullptr;
  if (args.progress != nullptr) {
    options.progress = [&](double done) { args.progress(args.progress_context, done); };
  }
  RunReference(prolog, options);
  if (args.intermediates != nullptr) {
    CopyOut(seen.c_q, args.intermediates->c_q);
    CopyOut(seen.c_q_quantized, args.intermediates->c_q_int8);
    CopyOut(seen.c_q_scale, args.intermediates->c_q_scale);
    CopyOut(seen.q_c, args.intermediates->q_c);
    CopyOut(seen.q_r, args.intermediates->q_r);
    CopyOut(seen.c_kv, args.intermediates->c_kv);
    CopyOut(seen.k_r, args.intermediates->k_r);
  }
  return MLAP_OK;
}

}  // namespace
}  // namespace mlap

mlap_status mlap_reference_run(const mlap_prolog_args* args) {
  if (args == nullptr || args->struct_size != sizeof(mlap_prolog_args)) {
    return mlap::FailWith(MLAP_INVALID_ARGUMENT,
                          "mlap_reference_run: args: expected a struct with struct_size set to its size");
  }
  try {
    return mlap::RunChecked(*args);
  } catch (const std::bad_alloc&) {
    return mlap::FailWith(MLAP_OUT_OF_MEMORY, "mlap_reference_run: out of memory; use fewer tokens");
  } catch (const std::exception& error) {
    return mlap::FailWith(MLAP_INVALID_ARGUMENT, std::string("mlap_reference_run: ") + error.what());
  } catch (...) {
    return mlap::FailWith(MLAP_INVALID_ARGUMENT, "mlap_reference_run: progress: expected not to throw");
  }
}
