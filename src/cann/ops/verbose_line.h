// MLAP_VERBOSE=1: a line on the standard error for each operator call.
#ifndef MLAP_CANN_OPS_VERBOSE_LINE_H_
#define MLAP_CANN_OPS_VERBOSE_LINE_H_

#include <string>

#include "core/prolog_plan.h"
#include "mlaprolog/cann_report.h"

namespace mlap::cann {

// Whether the environment asks for it; read once.
bool IsVerbose();

// "mlaprolog,aclnnMlaProlog,<scenario>,<isa>,<threads>,<sizes>,<plan>,<kernel>,<stage>:<milliseconds>,..."
std::string VerboseLine(const mlap_cann_report& report, const PrologPlan& plan);

// Writes the line in one piece.
void PrintVerboseLine(const std::string& line);

}  // namespace mlap::cann

#endif  // MLAP_CANN_OPS_VERBOSE_LINE_H_
