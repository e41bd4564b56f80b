// Comparing the operator's results with those of the reference, or with expected ones.
#ifndef MLAP_TOOLS_OUTPUT_CHECK_H_
#define MLAP_TOOLS_OUTPUT_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "prolog_case.h"

namespace mlap::tools {

// One output against its reference. Sums and maxima are over the elements that are finite in both; of a cache, over the
// rows that were written.
//
// Accepted, for an order of additions that is not the reference's:
//   query, query_rope   relative_norm <= 2e-3, worst <= 2^-5
//   bf16 caches         relative_norm <= 1e-3, worst <= 2^-5
//   int8 caches         no difference above 1, at most 0.5 % of the elements (but always one) different
//   everywhere          differences below 2^-100 count as none; NaN and infinities at the same places; cache bytes that
//   no token addresses unchanged
struct OutputCheck {
  std::string name;
  bool is_int8 = false;
  int64_t num_elements = 0;
  double relative_norm = 0.0;       // ||x - ref|| / ||ref||, Frobenius
  double worst = 0.0;               // max |x - ref| / root mean square of the reference's row
  int64_t num_different = 0;        // int8
  int64_t max_difference = 0;       // int8
  int64_t num_other_nonfinite = 0;  // NaN or infinite in one and not the same in the other
  int64_t num_touched = 0;          // bytes of a cache that should not have changed and did
  bool is_accepted = false;
};

// Compares the outputs that `reference` has.
std::vector<OutputCheck> CheckOutputs(const PrologCase& prolog_case, const CaseOutputs& outputs,
                                      const CaseOutputs& reference);

bool AllAccepted(const std::vector<OutputCheck>& checks);

// A table with one line per output and a verdict, indented by two.
std::string FormatChecks(const std::vector<OutputCheck>& checks);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_OUTPUT_CHECK_H_
