// A case through the native interface: the reference, the operator, and the formula without roundings.
#ifndef MLAP_TOOLS_NATIVE_CASE_H_
#define MLAP_TOOLS_NATIVE_CASE_H_

#include <mlaprolog/mlaprolog.h>

#include <memory>

#include "prolog_case.h"

namespace mlap::tools {

// Refers to the case, which must live as long. Everything throws ToolError with the library's text if it refuses.
class NativeCase {
 public:
  explicit NativeCase(const PrologCase& prolog_case);

  // On copies of the caches, with a progress line; `intermediates`, if not null, receives what the reference computes
  // on the way, by name.
  CaseOutputs RunReference(TensorMap* intermediates) const;

  // On copies of the caches.
  CaseOutputs RunOperator() const;

  // "query", "query_rope", "c_kv" and "k_r" in binary64, a row per token.
  TensorMap RunExact() const;

 private:
  mlap_run_args BindOutputs(CaseOutputs* outputs) const;

  const PrologCase& case_;
  mlap_run_args args_;  // without caches and outputs
  std::shared_ptr<mlap_weights> weights_;
};

// What the reference writes for a case.
CaseOutputs RunReferenceOnCase(const PrologCase& prolog_case);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_NATIVE_CASE_H_
