// Cases with the sizes of real models and random contents.
#ifndef MLAP_TOOLS_CASE_GENERATOR_H_
#define MLAP_TOOLS_CASE_GENERATOR_H_

#include <cstdint>

#include "prolog_case.h"

namespace mlap::tools {

struct CaseRecipe {
  CaseShape shape;
  double epsilon = 1e-6;
  double rope_theta = 1e4;
  double yarn_factor = 1.0;
  uint64_t seed = 1;
};

// The contents depend on the recipe only: same bytes on every machine and with every number of threads.
//
//   token_x       N(0, 1)                       weights  N(0, 0.02^2) in FRACTAL_NZ; int8: these, quantised per column
//   gammas        N(1, 0.1^2)                   rope     of random positions below 4096, consecutive within a sequence
//   cache_index   distinct random slots         caches   N(0, 1), or random bytes
//   quant scales  127 by 4 deviations, +-20 %   smooth   uniform in [0.5, 2)
//
// Shows progress. Throws ToolError: it does not fit into memory, or there are fewer slots than tokens.
PrologCase GenerateCase(const CaseRecipe& recipe);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_CASE_GENERATOR_H_
