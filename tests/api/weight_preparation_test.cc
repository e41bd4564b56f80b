// FRACTAL_NZ images, the split of kv_b_proj, and reordered rope columns, by the definitions of their indices.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "mlaprolog/mlaprolog.h"

namespace mlap::test {
namespace {

// A tensor of 16-bit numbers 0, 1, 2, ..; or of bytes, the same modulo 251.
struct Numbers {
  std::vector<uint16_t> words;
  std::vector<uint8_t> bytes;
  mlap_tensor tensor;

  Numbers(mlap_dtype dtype, std::vector<int64_t> dims, mlap_layout layout = MLAP_ROW_MAJOR) {
    size_t count = 1;
    for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
    words.resize(count + 1);
    std::iota(words.begin(), words.end(), uint16_t{0});
    for (const uint16_t word : words) bytes.push_back(static_cast<uint8_t>(word % 251));
    tensor = {dtype == MLAP_BF16 ? static_cast<void*>(words.data()) : bytes.data(),
              dtype,
              layout,
              static_cast<int32_t>(dims.size()),
              {},
              {}};
    std::copy(dims.begin(), dims.end(), tensor.dims);
  }
  int At(int64_t index) const {
    return tensor.dtype == MLAP_BF16 ? words[static_cast<size_t>(index)] : bytes[static_cast<size_t>(index)];
  }
  void Clear(int value) {
    words.assign(words.size(), static_cast<uint16_t>(value));
    bytes.assign(bytes.size(), static_cast<uint8_t>(value));
  }
};

// The last refusal names the field and says what to do.
bool ErrorNames(const std::string& word) {
  const std::string text = mlap_last_error();
  return text.find(word) != std::string::npos && text.find("; ") != std::string::npos;
}

TEST(NzImages, HoldEveryElementAndZeros) {
  for (const mlap_dtype dtype : {MLAP_BF16, MLAP_INT8}) {
    const int64_t c0 = dtype == MLAP_BF16 ? 16 : 32;
    for (const int64_t k : {1, 15, 16, 17, 20, 48}) {
      for (const int64_t n : {1, 15, 16, 24, 31, 32, 33, 64}) {
        for (const mlap_layout layout : {MLAP_ROW_MAJOR, MLAP_OUT_IN}) {
          SCOPED_TRACE(std::to_string(k) + " x " + std::to_string(n) + ", layout " + std::to_string(layout));
          const bool is_out_in = layout == MLAP_OUT_IN;
          Numbers matrix(dtype, is_out_in ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n}, layout);
          int64_t dims[MLAP_MAX_RANK] = {};
          ASSERT_EQ(mlap_nz_dims(dtype, k, n, dims), MLAP_OK) << mlap_last_error();
          const int64_t padded_k = (k + 15) / 16 * 16, blocks = (n + c0 - 1) / c0;
          EXPECT_EQ(std::vector<int64_t>(dims, dims + 4), (std::vector<int64_t>{blocks, padded_k / 16, 16, c0}));
          Numbers image(dtype, {blocks, padded_k / 16, 16, c0}, MLAP_FRACTAL_NZ);
          image.Clear(0x77);
          ASSERT_EQ(mlap_nz_pack(&matrix.tensor, &image.tensor), MLAP_OK) << mlap_last_error();
          for (int64_t j = 0; j < blocks * c0; ++j) {
            for (int64_t i = 0; i < padded_k; ++i) {
              const int expected = i < k && j < n ? matrix.At(is_out_in ? j * k + i : i * n + j) : 0;
              ASSERT_EQ(image.At(j / c0 * padded_k * c0 + i * c0 + j % c0), expected) << i << ", " << j;
            }
          }
          Numbers back(dtype, is_out_in ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n}, layout);
          back.Clear(0x55);
          ASSERT_EQ(mlap_nz_unpack(&image.tensor, &back.tensor), MLAP_OK) << mlap_last_error();
          for (int64_t i = 0; i < k * n; ++i) ASSERT_EQ(back.At(i), matrix.At(i));
          EXPECT_EQ(back.At(k * n), 0x55);
        }
      }
    }
  }
}

TEST(NzImages, StridedMatrices) {
  // Every second column of a matrix twice as wide.
  Numbers wide(MLAP_BF16, {20, 48});
  mlap_tensor matrix = {wide.words.data(), MLAP_BF16, MLAP_ROW_MAJOR, 2, {20, 24}, {48, 2}};
  Numbers image(MLAP_BF16, {2, 2, 16, 16}, MLAP_FRACTAL_NZ);
  ASSERT_EQ(mlap_nz_pack(&matrix, &image.tensor), MLAP_OK) << mlap_last_error();
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t j = 0; j < 24; ++j) EXPECT_EQ(image.At(j / 16 * 512 + i * 16 + j % 16), i * 48 + j * 2);
  }
}

TEST(NzImages, Refusals) {
  using Change = std::function<void(mlap_tensor * matrix, mlap_tensor * nz)>;
  const std::pair<const char*, Change> cases[] = {
      {"matrix", [](mlap_tensor* m, mlap_tensor*) { *m = {}; }},
      {"matrix", [](mlap_tensor* m, mlap_tensor*) { m->data = nullptr; }},
      {"matrix", [](mlap_tensor* m, mlap_tensor*) { m->rank = 3; }},
      {"matrix", [](mlap_tensor* m, mlap_tensor*) { m->dtype = MLAP_FLOAT32; }},
      {"matrix", [](mlap_tensor* m, mlap_tensor*) { m->layout = MLAP_FRACTAL_NZ; }},
      {"nz", [](mlap_tensor* m, mlap_tensor*) { m->dims[0] = 33; }},
      {"nz", [](mlap_tensor*, mlap_tensor* nz) { *nz = {}; }},
      {"nz", [](mlap_tensor*, mlap_tensor* nz) { nz->data = nullptr; }},
      {"nz", [](mlap_tensor*, mlap_tensor* nz) { nz->dtype = MLAP_INT8; }},
      {"nz", [](mlap_tensor*, mlap_tensor* nz) { nz->layout = MLAP_ROW_MAJOR; }},
      {"nz", [](mlap_tensor*, mlap_tensor* nz) { nz->rank = 2; }},
      {"nz", [](mlap_tensor*, mlap_tensor* nz) { nz->dims[2] = 15; }},
      {"nz", [](mlap_tensor* m, mlap_tensor* nz) { nz->data = m->data; }},
  };
  for (const auto& [name, change] : cases) {
    Numbers matrix(MLAP_BF16, {32, 16});
    Numbers image(MLAP_BF16, {1, 2, 16, 16}, MLAP_FRACTAL_NZ);
    const std::vector<uint16_t> before = image.words;
    ASSERT_EQ(mlap_nz_pack(&matrix.tensor, &image.tensor), MLAP_OK) << mlap_last_error();
    image.words.assign(before.begin(), before.end());
    change(&matrix.tensor, &image.tensor);
    EXPECT_EQ(mlap_nz_pack(&matrix.tensor, &image.tensor), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames(name)) << name << ": " << mlap_last_error();
    EXPECT_EQ(mlap_nz_unpack(&image.tensor, &matrix.tensor), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames(name)) << name << ": " << mlap_last_error();
    EXPECT_EQ(image.words, before);
  }
  int64_t dims[MLAP_MAX_RANK];
  for (const int64_t bad : {int64_t{-1}, INT64_MAX}) {
    EXPECT_EQ(mlap_nz_dims(MLAP_BF16, bad, 1, dims), MLAP_INVALID_ARGUMENT);
    EXPECT_EQ(mlap_nz_dims(MLAP_BF16, 1, bad, dims), MLAP_INVALID_ARGUMENT);
  }
  EXPECT_EQ(mlap_nz_dims(MLAP_INT64, 1, 1, dims), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_nz_dims(MLAP_BF16, 1, 1, nullptr), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_nz_pack(nullptr, nullptr), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_nz_unpack(nullptr, nullptr), MLAP_INVALID_ARGUMENT);
}

TEST(SplitKvB, TakesEveryHeadApart) {
  constexpr int64_t N = 3, D = 4, Dv = 5, Hckv = 7;
  for (const mlap_dtype dtype : {MLAP_BF16, MLAP_INT8}) {
    Numbers kv_b(dtype, {N * (D + Dv), Hckv});
    for (const int wanted : {1, 2, 3}) {
      Numbers uk(dtype, {N, D, Hckv}), uv(dtype, {N, Hckv, Dv});
      ASSERT_EQ(mlap_split_kv_b_proj(&kv_b.tensor, (wanted & 1) != 0 ? &uk.tensor : nullptr,
                                     (wanted & 2) != 0 ? &uv.tensor : nullptr),
                MLAP_OK)
          << mlap_last_error();
      for (int64_t n = 0; n < N; ++n) {
        for (int64_t j = 0; j < Hckv; ++j) {
          for (int64_t d = 0; d < D && (wanted & 1) != 0; ++d) {
            EXPECT_EQ(uk.At((n * D + d) * Hckv + j), kv_b.At((n * (D + Dv) + d) * Hckv + j));
          }
          for (int64_t d = 0; d < Dv && (wanted & 2) != 0; ++d) {
            EXPECT_EQ(uv.At((n * Hckv + j) * Dv + d), kv_b.At((n * (D + Dv) + D + d) * Hckv + j));
          }
        }
      }
    }
  }
}

TEST(SplitKvB, Refusals) {
  using Change = std::function<void(mlap_tensor * kv_b, mlap_tensor * uk, mlap_tensor * uv)>;
  const std::pair<const char*, Change> cases[] = {
      {"kv_b_proj", [](mlap_tensor* kv_b, mlap_tensor*, mlap_tensor*) { *kv_b = {}; }},
      {"kv_b_proj", [](mlap_tensor* kv_b, mlap_tensor*, mlap_tensor*) { kv_b->rank = 1; }},
      {"kv_b_proj", [](mlap_tensor* kv_b, mlap_tensor*, mlap_tensor*) { kv_b->dims[0] = 10; }},
      {"kv_b_proj", [](mlap_tensor* kv_b, mlap_tensor*, mlap_tensor*) { kv_b->dtype = MLAP_FLOAT32; }},
      {"weight_uk", [](mlap_tensor*, mlap_tensor* uk, mlap_tensor*) { uk->dims[1] = 10; }},
      {"weight_uk", [](mlap_tensor*, mlap_tensor* uk, mlap_tensor*) { uk->dtype = MLAP_INT8; }},
      {"weight_uk", [](mlap_tensor*, mlap_tensor* uk, mlap_tensor*) { uk->dims[2] = 6; }},
      {"weight_uk", [](mlap_tensor* kv_b, mlap_tensor* uk, mlap_tensor*) { uk->data = kv_b->data; }},
      {"weight_uv", [](mlap_tensor*, mlap_tensor*, mlap_tensor* uv) { uv->dims[2] = 4; }},
      {"weight_uv", [](mlap_tensor*, mlap_tensor* uk, mlap_tensor* uv) { uv->data = uk->data; }},
      {"weight_uv", [](mlap_tensor*, mlap_tensor*, mlap_tensor* uv) { uv->rank = 2; }},
  };
  for (const auto& [name, change] : cases) {
    Numbers kv_b(MLAP_BF16, {27, 7}), uk(MLAP_BF16, {3, 4, 7}), uv(MLAP_BF16, {3, 7, 5});
    const auto before = uk.words;
    change(&kv_b.tensor, &uk.tensor, &uv.tensor);
    EXPECT_EQ(mlap_split_kv_b_proj(&kv_b.tensor, &uk.tensor, &uv.tensor), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames(name)) << name << ": " << mlap_last_error();
    EXPECT_EQ(uk.words, before);
  }
  Numbers kv_b(MLAP_BF16, {27, 7});
  EXPECT_EQ(mlap_split_kv_b_proj(&kv_b.tensor, nullptr, nullptr), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_split_kv_b_proj(nullptr, nullptr, nullptr), MLAP_INVALID_ARGUMENT);
}

// Where column `c` of a group comes from.
int64_t SourceColumn(int64_t c, int64_t group, int64_t rope, mlap_rope_order order) {
  const int64_t first = group - rope;
  if (c < first) return c;
  const int64_t i = c - first, half = rope / 2;
  return first + (order == MLAP_HALF_TO_INTERLEAVED ? i / 2 + i % 2 * half : i % half * 2 + i / half);
}

TEST(RopeReorder, MovesTheLastColumnsOfEachGroup) {
  struct Case {
    int64_t group, rope;
  };
  for (const Case& c : {Case{12, 8}, Case{8, 8}, Case{6, 2}, Case{24, 12}}) {
    for (const mlap_rope_order order : {MLAP_HALF_TO_INTERLEAVED, MLAP_INTERLEAVED_TO_HALF}) {
      for (const mlap_dtype dtype : {MLAP_BF16, MLAP_INT8}) {
        constexpr int64_t kRows = 5;
        Numbers from(dtype, {kRows, 24}), to(dtype, {kRows, 24});
        to.Clear(0);
        ASSERT_EQ(mlap_rope_reorder(&from.tensor, c.group, c.rope, order, &to.tensor), MLAP_OK) << mlap_last_error();
        for (int64_t row = 0; row < kRows; ++row) {
          for (int64_t j = 0; j < 24; ++j) {
            const int64_t source = j / c.group * c.group + SourceColumn(j % c.group, c.group, c.rope, order);
            EXPECT_EQ(to.At(row * 24 + j), from.At(row * 24 + source));
          }
        }
        // In place, and back.
        const auto words = to.words;
        const auto bytes = to.bytes;
        Numbers same(dtype, {kRows, 24});
        ASSERT_EQ(mlap_rope_reorder(&same.tensor, c.group, c.rope, order, &same.tensor), MLAP_OK);
        for (int64_t i = 0; i < kRows * 24; ++i) EXPECT_EQ(same.At(i), to.At(i));
        const auto back = order == MLAP_HALF_TO_INTERLEAVED ? MLAP_INTERLEAVED_TO_HALF : MLAP_HALF_TO_INTERLEAVED;
        ASSERT_EQ(mlap_rope_reorder(&same.tensor, c.group, c.rope, back, &same.tensor), MLAP_OK);
        for (int64_t i = 0; i < kRows * 24; ++i) EXPECT_EQ(same.At(i), from.At(i));
        // (out, in): rows instead of columns.
        Numbers out_in(dtype, {24, kRows}, MLAP_OUT_IN), moved(dtype, {24, kRows}, MLAP_OUT_IN);
        ASSERT_EQ(mlap_rope_reorder(&out_in.tensor, c.group, c.rope, order, &moved.tensor), MLAP_OK);
        for (int64_t j = 0; j < 24; ++j) {
          const int64_t source = j / c.group * c.group + SourceColumn(j % c.group, c.group, c.rope, order);
          for (int64_t i = 0; i < kRows; ++i) EXPECT_EQ(moved.At(j * kRows + i), out_in.At(source * kRows + i));
        }
      }
    }
  }
}

TEST(RopeReorder, Refusals) {
  using Change = std::function<void(mlap_tensor * from, mlap_tensor * to, int64_t * group, int64_t * rope)>;
  const std::pair<const char*, Change> cases[] = {
      {"from", [](mlap_tensor* from, mlap_tensor*, int64_t*, int64_t*) { *from = {}; }},
      {"from", [](mlap_tensor* from, mlap_tensor*, int64_t*, int64_t*) { from->layout = MLAP_FRACTAL_NZ; }},
      {"from", [](mlap_tensor* from, mlap_tensor*, int64_t*, int64_t*) { from->dims[1] = 23; }},
      {"from", [](mlap_tensor* from, mlap_tensor*, int64_t*, int64_t*) { from->dtype = MLAP_INT64; }},
      {"rope", [](mlap_tensor*, mlap_tensor*, int64_t*, int64_t* rope) { *rope = 3; }},
      {"rope", [](mlap_tensor*, mlap_tensor*, int64_t*, int64_t* rope) { *rope = 0; }},
      {"group", [](mlap_tensor*, mlap_tensor*, int64_t* group, int64_t*) { *group = 4; }},
      {"group", [](mlap_tensor*, mlap_tensor*, int64_t* group, int64_t*) { *group = INT64_MIN; }},
      {"to", [](mlap_tensor*, mlap_tensor* to, int64_t*, int64_t*) { *to = {}; }},
      {"to", [](mlap_tensor*, mlap_tensor* to, int64_t*, int64_t*) { to->dims[0] = 4; }},
      {"to", [](mlap_tensor*, mlap_tensor* to, int64_t*, int64_t*) { to->dtype = MLAP_INT8; }},
      {"to", [](mlap_tensor*, mlap_tensor* to, int64_t*, int64_t*) { to->layout = MLAP_OUT_IN; }},
      {"to",
       [](mlap_tensor* from, mlap_tensor* to, int64_t*, int64_t*) { to->data = static_cast<char*>(from->data) + 2; }},
  };
  for (const auto& [name, change] : cases) {
    Numbers from(MLAP_BF16, {5, 24}), to(MLAP_BF16, {5, 24});
    const auto before = to.words;
    int64_t group = 12, rope = 8;
    change(&from.tensor, &to.tensor, &group, &rope);
    EXPECT_EQ(mlap_rope_reorder(&from.tensor, group, rope, MLAP_HALF_TO_INTERLEAVED, &to.tensor),
              MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames(name)) << name << ": " << mlap_last_error();
    EXPECT_EQ(to.words, before);
  }
  EXPECT_EQ(mlap_rope_reorder(nullptr, 4, 4, MLAP_HALF_TO_INTERLEAVED, nullptr), MLAP_INVALID_ARGUMENT);
  Numbers both(MLAP_BF16, {5, 24});
  EXPECT_EQ(mlap_rope_reorder(&both.tensor, 4, 4, mlap_rope_order(2), &both.tensor), MLAP_INVALID_ARGUMENT);
  EXPECT_TRUE(ErrorNames("order")) << mlap_last_error();
}

}  // namespace
}  // namespace mlap::test
