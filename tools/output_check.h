// Comparing the operator's results with those of the reference, or with expected ones.
#ifndef MLAP_TOOLS_OUTPUT_CHECK_H_
#define MLAP_TOOLS_OUTPUT_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "prolog_case.h"

namespace mlap::tools {

// How the elements of an output are compared.
enum class CheckKind { kBf16, kEightBit, kScales, kExact };

// One output against its reference; of a per-group cache one for each part of its rows. Sums and maxima are over the
// elements that are finite in both; of a cache, over the rows that were written.
//
// Accepted, for an order of additions that is not the reference's:
//   query, query_rope, query_norm in bf16   relative_norm <= 2e-3, worst <= 2^-5
//   bf16 caches                             relative_norm <= 1e-3, worst <= 2^-5
//   8-bit outputs                           neighbouring values in at most 0.5 % of the elements (but always one)
//   scales                                  worst <= 1e-4, relative to each; E8M0 equal
//   everywhere                              differences below 2^-100 count as none; NaN and infinities at the same
//                                           places; cache bytes that no token addresses unchanged
struct OutputCheck {
  std::string name;
  CheckKind kind = CheckKind::kBf16;
  int64_t num_elements = 0;
  double relative_norm = 0.0;       // ||x - ref|| / ||ref||, Frobenius; bf16
  double worst = 0.0;               // max |x - ref| / root mean square of the reference's row; of scales / |ref|
  int64_t num_different = 0;        // 8-bit
  int64_t max_difference = 0;       // 8-bit, in values of the type
  int64_t num_other_nonfinite = 0;  // NaN or infinite in one and not the same in the other
  int64_t num_touched = 0;          // bytes of a cache that should not have changed and did
  bool is_accepted = false;
};

// Compares the outputs that `reference` has, which has the shapes of the case.
std::vector<OutputCheck> CheckOutputs(const PrologCase& prolog_case, const CaseOutputs& outputs,
                                      const CaseOutputs& reference);

bool AllAccepted(const std::vector<OutputCheck>& checks);

// A table with one line per output and a verdict, indented by two.
std::string FormatChecks(const std::vector<OutputCheck>& checks);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_OUTPUT_CHECK_H_
