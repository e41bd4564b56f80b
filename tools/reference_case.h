// The reference's results for a case, through the native interface.
#ifndef MLAP_TOOLS_REFERENCE_CASE_H_
#define MLAP_TOOLS_REFERENCE_CASE_H_

#include "prolog_case.h"

namespace mlap::tools {

// Runs the reference on copies of the caches. Shows progress. Throws ToolError if the reference refuses.
CaseOutputs RunReferenceOnCase(const PrologCase& prolog_case);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_REFERENCE_CASE_H_
