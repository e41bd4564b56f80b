// mlap_check_limits: what the devices are known to take, every reason on a line, and texts that are cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "mlaprolog/mlaprolog.h"

namespace mlap::test {
namespace {

mlap_limits_args DeepSeekV3() {
  mlap_limits_args args = {};
  args.struct_size = sizeof(args);
  args.soc = "ascend910b";
  args.version = 3;
  args.dims = {7168, 1536, 128, 128, 64, 512};
  args.sequence = 8;
  args.block_size = 128;
  return args;
}

struct Answer {
  int is_accepted = -1;
  std::string reasons;
};

Answer Ask(const mlap_limits_args& args) {
  Answer answer;
  char text[4096];
  EXPECT_EQ(mlap_check_limits(&args, &answer.is_accepted, text, sizeof(text)), MLAP_OK) << mlap_last_error();
  answer.reasons = text;
  EXPECT_EQ(answer.is_accepted == 1, answer.reasons.empty()) << answer.reasons;
  return answer;
}

// The pairs (weight_quant, kv_quant) that each version and device has.
TEST(CheckLimits, ScenariosOfVersionsAndDevices) {
  using Pairs = std::vector<std::pair<int, int>>;
  const Pairs v1 = {{0, 0}, {1, 0}, {1, 2}};
  const Pairs v2 = {{0, 0}, {1, 0}, {1, 2}, {2, 0}, {2, 1}};
  const Pairs v3_a2 = {{0, 0}, {1, 0}, {1, 2}, {1, 3}, {2, 0}, {2, 1}, {2, 3}};
  Pairs v3_950 = v3_a2;
  for (const int weights : {3, 4, 5}) {
    for (const int kv : {0, 1, 3}) v3_950.emplace_back(weights, kv);
  }
  struct Case {
    const char* soc;
    int version;
    Pairs accepted;
  };
  for (const Case& c : {Case{"ascend910b", 1, v1}, Case{"ascend910_93", 1, v1}, Case{"ascend950", 1, {}},
                        Case{"ascend910b", 2, v2}, Case{"ascend910_93", 2, v2}, Case{"ascend950", 2, {}},
                        Case{"ascend910b", 3, v3_a2}, Case{"ascend910_93", 3, v3_a2}, Case{"ascend950", 3, v3_950}}) {
    Pairs accepted;
    for (int weights = 0; weights < 6; ++weights) {
      for (int kv = 0; kv < 4; ++kv) {
        mlap_limits_args args = DeepSeekV3();
        args.soc = c.soc;
        args.version = c.version;
        args.weight_quant = static_cast<mlap_weight_quant>(weights);
        args.kv_quant = static_cast<mlap_kv_quant>(kv);
        if (Ask(args).is_accepted == 1) accepted.emplace_back(weights, kv);
      }
    }
    EXPECT_EQ(accepted, c.accepted) << c.soc << ", version " << c.version;
  }
}

TEST(CheckLimits, AllReasonsAreGiven) {
  mlap_limits_args args = DeepSeekV3();
  args.dims = {2304, 0, 20, 64, 32, 256};
  args.block_size = 8;
  args.rope_style = MLAP_ROPE_HALF;
  const Answer answer = Ask(args);
  for (const char* word : {"He: ", "Hcq: ", "N: ", "D: ", "Dr: ", "Hckv: ", "BlockSize: ", "rope_style: "}) {
    EXPECT_NE(answer.reasons.find(word), std::string::npos) << word << " in " << answer.reasons;
  }
  EXPECT_EQ(std::count(answer.reasons.begin(), answer.reasons.end(), '\n'), 7);
  args.cache_mode = MLAP_TND;  // which has no pages
  EXPECT_EQ(Ask(args).reasons.find("BlockSize"), std::string::npos);
}

TEST(CheckLimits, TextsAreCut) {
  mlap_limits_args args = DeepSeekV3();
  args.dims.heads = 20;
  const std::string whole = Ask(args).reasons;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{10}, whole.size(), whole.size() + 1, whole.size() + 2}) {
    std::string text(whole.size() + 8, '#');
    int is_accepted = -1;
    ASSERT_EQ(mlap_check_limits(&args, &is_accepted, bytes == 0 ? nullptr : text.data(), bytes), MLAP_OK);
    EXPECT_EQ(is_accepted, 0);
    if (bytes == 0) continue;
    EXPECT_EQ(std::string(text.c_str()), whole.substr(0, bytes - 1));
    EXPECT_EQ(text.substr(bytes), std::string(text.size() - bytes, '#'));
  }
}

TEST(CheckLimits, Refusals) {
  using Change = void (*)(mlap_limits_args*);
  const std::pair<const char*, Change> cases[] = {
      {"soc", [](mlap_limits_args* args) { args->soc = nullptr; }},
      {"soc", [](mlap_limits_args* args) { args->soc = "ascend310"; }},
      {"version", [](mlap_limits_args* args) { args->version = 0; }},
      {"version", [](mlap_limits_args* args) { args->version = 4; }},
      {"cache_mode", [](mlap_limits_args* args) { args->cache_mode = mlap_cache_mode(6); }},
      {"weight_quant", [](mlap_limits_args* args) { args->weight_quant = mlap_weight_quant(-1); }},
      {"kv_quant", [](mlap_limits_args* args) { args->kv_quant = mlap_kv_quant(4); }},
      {"rope_style", [](mlap_limits_args* args) { args->rope_style = mlap_rope_style(4); }},
      {"dims.heads", [](mlap_limits_args* args) { args->dims.heads = -1; }},
      {"batch", [](mlap_limits_args* args) { args->batch = INT64_MIN; }},
      {"block_size", [](mlap_limits_args* args) { args->block_size = -16; }},
      {"args", [](mlap_limits_args* args) { args->struct_size = 0; }},
  };
  for (const auto& [name, change] : cases) {
    mlap_limits_args args = DeepSeekV3();
    change(&args);
    int is_accepted = -1;
    char text[8] = "before";
    EXPECT_EQ(mlap_check_limits(&args, &is_accepted, text, sizeof(text)), MLAP_INVALID_ARGUMENT) << name;
    EXPECT_NE(std::string(mlap_last_error()).find(name), std::string::npos) << name << ": " << mlap_last_error();
    EXPECT_EQ(is_accepted, -1);
    EXPECT_STREQ(text, "before");
  }
  const mlap_limits_args args = DeepSeekV3();
  int is_accepted = -1;
  EXPECT_EQ(mlap_check_limits(&args, nullptr, nullptr, 0), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_check_limits(&args, &is_accepted, nullptr, 5), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_check_limits(nullptr, &is_accepted, nullptr, 0), MLAP_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace mlap::test
