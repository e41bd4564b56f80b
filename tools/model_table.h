// The sizes of published models whose attention is MLA with a low-rank query and rotary positions.
#ifndef MLAP_TOOLS_MODEL_TABLE_H_
#define MLAP_TOOLS_MODEL_TABLE_H_

#include <span>
#include <string_view>

#include "case_shape.h"

namespace mlap::tools {

struct Model {
  std::string_view name;
  LayerDims dims;
  double epsilon;
  double rope_theta;
  double yarn_factor;  // 1: plain RoPE
  std::string_view note;
};

std::span<const Model> Models();

// Throws ToolError, with the names there are.
const Model& FindModel(std::string_view name);

}  // namespace mlap::tools

#endif  // MLAP_TOOLS_MODEL_TABLE_H_
