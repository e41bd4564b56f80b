#include "model_table.h"

#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "safetensors_error.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

// clang-format off
//                          He   Hcq    N    D   Dr Hckv     eps   theta  yarn
constexpr Model kModels[] = {
    {"deepseek-v3",        {7168, 1536, 128, 128, 64, 512}, 1e-6, 1e4,    40, "also R1, V3.1, V3.2"},
    {"deepseek-v2",        {5120, 1536, 128, 128, 64, 512}, 1e-6, 1e4,    40, "also V2.5, Coder-V2"},
    {"kimi-k2",            {7168, 1536,  64, 128, 64, 512}, 1e-6, 5e4,    32, "also K2-Thinking, K2.5"},
    {"longcat-flash",      {6144, 1536,  64, 128, 64, 512}, 1e-5, 1e7,     1, "scales the latents besides"},
    {"longcat-flash-lite", {3072, 1536,  32, 128, 64, 512}, 1e-5, 1e4,    10, "theta assumed"},
    {"openpangu-ultra",    {7680, 1536, 128, 128, 64, 512}, 1e-5, 2.56e7,  1, "RoPE on halves: permute its columns"},
    {"mistral-large-3",    {7168, 1536, 128, 128, 64, 512}, 1e-6, 1e4,    40, "RoPE constants assumed"},
    {"youtu-llm",          {2048, 1536,  16, 128, 64, 512}, 1e-6, 1.6e6,   1, "2 B parameters; theta assumed"},
    {"glm-5",              {6144, 2048,  64, 192, 64, 512}, 1e-5, 1e6,     1, "theta assumed"},
    {"glm-4.7-flash",      {2048,  768,  20, 192, 64, 512}, 1e-5, 1e6,     1, ""},
    {"minicpm3",           {2560,  768,  40,  64, 32, 256}, 1e-5, 1e4,     1, "long RoPE not modelled"},
    {"mistral-small-4",    {4096, 1024,  32,  64, 64, 256}, 1e-6, 1e4,   128, "theta assumed"},
    {"tiny",               {  96,   64,   4,  32, 32,  64}, 1e-6, 1e4,     1, "no model: for tests"},
};
// clang-format on

}  // namespace

std::span<const Model> Models() { return kModels; }

const Model& FindModel(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Model& model : kModels) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  Fail("--model: expected one of {} (or list), found '{}'", fmt::join(names, ", "), OneLine(name));
}

}  // namespace mlap::tools
