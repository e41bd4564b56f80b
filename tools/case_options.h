// The options that describe a case to generate, and the recipe that follows from them.
#ifndef MLAP_TOOLS_CASE_OPTIONS_H_
#define MLAP_TOOLS_CASE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "case_generator.h"

namespace mlap::tools {

// 0, or a negative number where 0 is a value: not given, the model's or the default value.
struct CaseOptions {
  std::string model = "deepseek-v3";
  std::string scenario = "non-quant";
  std::string cache_mode = "PA_BSND";
  bool smooth = false;
  bool query_norm = false;
  std::string soc = "auto";
  int64_t heads = 0;
  int64_t hidden = 0;
  int64_t q_rank = 0;
  int64_t kv_rank = 0;
  int64_t nope = 0;
  int64_t rope = 0;
  int64_t tokens = 0;
  int64_t batch = 0;
  int64_t seq = 0;
  int64_t sequences = 0;
  int64_t block_size = 128;
  std::string blocks = "auto";
  double epsilon = -1.0;
  double rope_theta = 0.0;
  double yarn_factor = -1.0;
  double qc_qr_scale = 1.0;
  double kc_scale = 1.0;
  double clip_alpha = -1.0;
  int64_t seed = 1;
};

// Throws ToolError: an unknown model, scenario or cache mode, or sizes that contradict each other.
CaseRecipe MakeRecipe(const CaseOptions& options);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_CASE_OPTIONS_H_
