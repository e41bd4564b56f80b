// Cases with the sizes of real models and random contents.
#ifndef MLAP_TOOLS_CASE_GENERATOR_H_
#define MLAP_TOOLS_CASE_GENERATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "prolog_case.h"

namespace mlap::tools {

struct CaseRecipe {
  CaseShape shape;
  double epsilon = 1e-6;
  double rope_theta = 1e4;
  double yarn_factor = 1.0;
  double qc_qr_scale = 1.0;
  double kc_scale = 1.0;
  float clip_alpha = 0.9f;
  std::string soc;
  std::vector<int32_t> sequence_ends;  // with shape.HasSequenceEnds()
  uint64_t seed = 1;
};

// The ends of `count` sequences of random lengths, which may be 0, of `tokens` in all.
std::vector<int32_t> RandomSequenceEnds(uint64_t seed, int64_t tokens, int64_t count);

// The contents depend on the recipe only: same bytes on every machine and with every number of threads.
//
//   token_x       N(0, 1); 8-bit: quantised per token         weights  N(0, 0.02^2) in FRACTAL_NZ; 8-bit: these,
//                                                                      quantised per column, MXFP8 per 32 values of one
//   gammas        N(1, 0.1^2)                                 rope     of random positions below 4096, consecutive
//   cache_index   distinct random slots or pages                       within a sequence of a (B, S) case
//   caches        N(0, 1), or random bytes                    smooth   uniform in [0.5, 2)
//   quant scales  the type's range by 4 deviations, +-20 %
//
// Shows progress. Throws ToolError: it does not fit into memory, or there are fewer slots or pages than needed.
PrologCase GenerateCase(const CaseRecipe& recipe);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_CASE_GENERATOR_H_
