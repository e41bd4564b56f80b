// The reference's results for a case, through the native interface.
#ifndef MLAP_TOOLS_REFERENCE_CASE_H_
#define MLAP_TOOLS_REFERENCE_CASE_H_

#include <mlaprolog/mlaprolog.h>

#include "prolog_case.h"

namespace mlap::tools {

// Runs the reference on copies of the caches. Shows progress. Throws ToolError if the reference refuses. 8-bit floats
// follow MLAP_RULES_950, whatever `rules` says.
CaseOutputs RunReferenceOnCase(const PrologCase& prolog_case, mlap_numeric_rules rules);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_REFERENCE_CASE_H_
