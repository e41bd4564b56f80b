// mlap_rope_table against the formulas, computed here with the math library.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bf16.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap::test {
namespace {

// A table of every position [T, Dr] in binary32.
struct Table {
  std::vector<int64_t> positions;
  int64_t rope;
  std::vector<float> sin, cos;

  Table(std::vector<int64_t> at, int64_t rope_columns) : positions(std::move(at)), rope(rope_columns) {
    sin.assign(positions.size() * static_cast<size_t>(rope), -7.0f);
    cos = sin;
  }
  mlap_tensor Positions() {
    return {positions.data(), MLAP_INT64, MLAP_ROW_MAJOR, 1, {static_cast<int64_t>(positions.size())}, {}};
  }
  mlap_tensor Rows(std::vector<float>* values) const {
    return {values->data(), MLAP_FLOAT32, MLAP_ROW_MAJOR, 2, {static_cast<int64_t>(positions.size()), rope}, {}};
  }
  mlap_status Fill(const mlap_rope_table_args& args) {
    const mlap_tensor p = Positions(), s = Rows(&sin), c = Rows(&cos);
    return mlap_rope_table(&args, &p, &s, &c);
  }
};

mlap_rope_table_args Defaults() {
  mlap_rope_table_args args;
  mlap_rope_table_args_init(&args);
  return args;
}

// DeepSeek's definition of YaRN, line by line.
std::vector<double> YarnFrequencies(const mlap_rope_table_args& args, int64_t rope) {
  const double dim = static_cast<double>(rope);
  const auto correction_dim = [&](double rotations) {
    return dim * std::log(args.original_max_position / (rotations * 2.0 * M_PI)) / (2.0 * std::log(args.base));
  };
  const double low = std::max(std::floor(correction_dim(args.beta_fast)), 0.0);
  double high = std::min(std::ceil(correction_dim(args.beta_slow)), dim - 1.0);
  if (low == high) high += 0.001;
  std::vector<double> frequencies;
  for (int64_t i = 0; i < rope / 2; ++i) {
    const double extra = 1.0 / std::pow(args.base, 2.0 * static_cast<double>(i) / dim);
    const double inter = extra / args.factor;
    const double mask = 1.0 - std::min(std::max((static_cast<double>(i) - low) / (high - low), 0.0), 1.0);
    frequencies.push_back(args.factor > 1.0 ? inter * (1.0 - mask) + extra * mask : extra);
  }
  return frequencies;
}

double Mscale(double factor, double mscale) { return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; }

TEST(RopeTable, FollowsTheFormulas) {
  struct Case {
    double base, factor, mscale, mscale_all_dim;
    int64_t rope;
  };
  for (const Case& c :
       {Case{1e4, 1, 1, 1, 64}, Case{2.56e7, 1, 1, 1, 32}, Case{1e4, 40, 1, 1, 64}, Case{1e4, 40, 0.707, 0.707, 64},
        Case{5e4, 32, 1, 0, 64}, Case{1e6, 10, 0.5, 1, 2}, Case{1e4, 128, 1, 0.25, 6}}) {
    mlap_rope_table_args args = Defaults();
    args.base = c.base;
    args.factor = c.factor;
    args.mscale = c.mscale;
    args.mscale_all_dim = c.mscale_all_dim;
    Table table({0, 1, 4095, 100000}, c.rope);
    ASSERT_EQ(table.Fill(args), MLAP_OK) << mlap_last_error();
    const std::vector<double> frequencies = YarnFrequencies(args, c.rope);
    const double scale = Mscale(c.factor, c.mscale) / Mscale(c.factor, c.mscale_all_dim);
    for (size_t t = 0; t < table.positions.size(); ++t) {
      for (int64_t i = 0; i < c.rope; ++i) {
        const double angle =
            static_cast<double>(table.positions[t]) * frequencies[static_cast<size_t>(i % (c.rope / 2))];
        const size_t at = t * static_cast<size_t>(c.rope) + static_cast<size_t>(i);
        // An angle of 1e5 has an error of about 1e-11; the table is rounded to binary32.
        EXPECT_NEAR(table.sin[at], std::sin(angle) * scale, 1.2e-7 * scale) << c.base << " " << t << " " << i;
        EXPECT_NEAR(table.cos[at], std::cos(angle) * scale, 1.2e-7 * scale) << c.base << " " << t << " " << i;
      }
    }
  }
}

TEST(RopeTable, StylesOnlyMoveColumns) {
  Table halves({3, 17}, 8), same({3, 17}, 8), interleaved({3, 17}, 8);
  mlap_rope_table_args args = Defaults();
  ASSERT_EQ(halves.Fill(args), MLAP_OK);
  args.rope_style = MLAP_ROPE_HALF;
  ASSERT_EQ(same.Fill(args), MLAP_OK);
  EXPECT_EQ(same.sin, halves.sin);
  args.rope_style = MLAP_ROPE_INTERLEAVED;
  ASSERT_EQ(interleaved.Fill(args), MLAP_OK);
  for (size_t t = 0; t < 2; ++t) {
    for (size_t i = 0; i < 4; ++i) {
      for (const size_t part : {0, 1}) {
        EXPECT_EQ(interleaved.sin[t * 8 + 2 * i + part], halves.sin[t * 8 + part * 4 + i]);
        EXPECT_EQ(interleaved.cos[t * 8 + 2 * i + part], halves.cos[t * 8 + part * 4 + i]);
      }
    }
  }
}

TEST(RopeTable, TypesStridesAndShapes) {
  const mlap_rope_table_args args = Defaults();
  Table wide({5, 6, 7, 8, 9, 10}, 16);
  ASSERT_EQ(wide.Fill(args), MLAP_OK) << mlap_last_error();
  // INT32 positions [2, 3], every second of an array; BF16 tables [2, 3, 16] with gaps, sin and cos in one buffer.
  int32_t positions[12];
  for (int i = 0; i < 12; ++i) positions[i] = i % 2 == 0 ? 5 + i / 2 : -1;
  std::vector<uint16_t> both(6 * 32, 0x7777);
  const mlap_tensor p = {positions, MLAP_INT32, MLAP_ROW_MAJOR, 2, {2, 3}, {6, 2}};
  const mlap_tensor s = {both.data(), MLAP_BF16, MLAP_ROW_MAJOR, 3, {2, 3, 16}, {96, 32, 1}};
  std::vector<uint16_t> dense(6 * 16, 0x7777);
  const mlap_tensor c = {dense.data(), MLAP_BF16, MLAP_ROW_MAJOR, 3, {2, 3, 16}, {}};
  ASSERT_EQ(mlap_rope_table(&args, &p, &s, &c), MLAP_OK) << mlap_last_error();
  for (size_t t = 0; t < 6; ++t) {
    for (size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(both[t * 32 + i], RoundToBf16(wide.sin[t * 16 + i]).bits);
      EXPECT_EQ(both[t * 32 + 16 + i], 0x7777);
      EXPECT_EQ(dense[t * 16 + i], RoundToBf16(wide.cos[t * 16 + i]).bits);
    }
  }
}

TEST(RopeTable, NoPositionsWriteNothingWhateverTheWidth) {
  struct Case {
    int64_t rope;
    mlap_status status;
  };
  const mlap_rope_table_args args = Defaults();
  const mlap_tensor p = {nullptr, MLAP_INT64, MLAP_ROW_MAJOR, 1, {0}, {}};
  for (const Case& c :
       {Case{64, MLAP_OK}, Case{int64_t{1} << 28, MLAP_OK}, Case{(int64_t{1} << 28) + 2, MLAP_INVALID_ARGUMENT},
        Case{int64_t{1} << 36, MLAP_INVALID_ARGUMENT}, Case{3, MLAP_INVALID_ARGUMENT}}) {
    const mlap_tensor table = {nullptr, MLAP_FLOAT32, MLAP_ROW_MAJOR, 2, {0, c.rope}, {}};
    EXPECT_EQ(mlap_rope_table(&args, &p, &table, &table), c.status) << c.rope << ": " << mlap_last_error();
    if (c.status == MLAP_OK) continue;
    EXPECT_NE(std::string(mlap_last_error()).find("rope_sin"), std::string::npos) << mlap_last_error();
  }
}

TEST(RopeTable, Refusals) {
  struct Number {
    const char* name;
    double mlap_rope_table_args::*member;
    std::vector<double> bad;
  };
  const double nan = std::nan(""), infinity = HUGE_VAL;
  const Number numbers[] = {
      {"base", &mlap_rope_table_args::base, {0, 1, -3, nan, infinity}},
      {"factor", &mlap_rope_table_args::factor, {0, 0.5, -1, nan, infinity}},
      {"original_max_position", &mlap_rope_table_args::original_max_position, {0, -1, nan, infinity}},
      {"beta_fast", &mlap_rope_table_args::beta_fast, {0, -1, nan, infinity}},
      {"beta_slow", &mlap_rope_table_args::beta_slow, {0, -1, nan, infinity}},
      {"mscale", &mlap_rope_table_args::mscale, {-1, nan, infinity}},
      {"mscale_all_dim", &mlap_rope_table_args::mscale_all_dim, {-1, nan, infinity}},
  };
  for (const Number& number : numbers) {
    for (const double value : number.bad) {
      mlap_rope_table_args args = Defaults();
      args.factor = 40;
      args.*number.member = value;
      Table table({1}, 4);
      EXPECT_EQ(table.Fill(args), MLAP_INVALID_ARGUMENT) << number.name << " " << value;
      EXPECT_NE(std::string(mlap_last_error()).find(number.name), std::string::npos) << mlap_last_error();
      EXPECT_EQ(table.sin[0], -7.0f);
    }
  }
  for (const int64_t position : {int64_t{-1}, INT64_MIN, (int64_t{1} << 31) + 1}) {
    Table table({0, position}, 4);
    EXPECT_EQ(table.Fill(Defaults()), MLAP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(mlap_last_error()).find("positions"), std::string::npos) << mlap_last_error();
    EXPECT_EQ(table.sin[0], -7.0f);
  }
  mlap_rope_table_args args = Defaults();
  Table table({1, 2}, 4);
  const mlap_tensor p = table.Positions(), s = table.Rows(&table.sin), c = table.Rows(&table.cos);
  struct Damaged {
    const char* name;
    mlap_tensor p, s, c;
  };
  std::vector<Damaged> all = {{"positions", {}, s, c}, {"rope_sin", p, {}, c}, {"rope_cos", p, s, {}},
                              {"rope_cos", p, s, s},   {"positions", p, s, c}, {"positions", p, s, c},
                              {"rope_sin", p, s, c},   {"rope_sin", p, s, c},  {"rope_cos", p, s, c}};
  all[4].p.dtype = MLAP_FLOAT32;
  all[5].p.rank = 4;
  all[6].s.dims[1] = 3;
  all[7].s.dtype = MLAP_INT8;
  all[8].c.dtype = MLAP_BF16;
  for (const Damaged& damaged : all) {
    EXPECT_EQ(mlap_rope_table(&args, &damaged.p, &damaged.s, &damaged.c), MLAP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(mlap_last_error()).find(damaged.name), std::string::npos) << mlap_last_error();
  }
  args.rope_style = MLAP_ROPE_NONE;
  EXPECT_EQ(mlap_rope_table(&args, &p, &s, &c), MLAP_INVALID_ARGUMENT);
  args.struct_size = 0;
  EXPECT_EQ(mlap_rope_table(&args, &p, &s, &c), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_rope_table(nullptr, &p, &s, &c), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_rope_table(&args, nullptr, &s, &c), MLAP_INVALID_ARGUMENT);
  mlap_rope_table_args_init(nullptr);
}

}  // namespace
}  // namespace mlap::test
