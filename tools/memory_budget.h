// Refusing what would not fit into memory before it is begun.
#ifndef MLAP_TOOLS_MEMORY_BUDGET_H_
#define MLAP_TOOLS_MEMORY_BUDGET_H_

#include <string_view>

#include "case_shape.h"

namespace mlap::tools {

// Bytes the process may use: what the system says is available, at most the limit of the control group. Infinity if
// neither is known.
double AvailableBytes();

// Bytes of all tensors of a case.
double InputBytes(const CaseShape& shape);
double OutputBytes(const CaseShape& shape);

// Throws ToolError if `bytes` exceeds AvailableBytes(). `what` begins the text: "the case", ...
void RequireMemory(double bytes, std::string_view what);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_MEMORY_BUDGET_H_
