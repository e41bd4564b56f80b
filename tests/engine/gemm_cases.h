// The shapes, weight layouts and scratch memory that the tests of matrix products share.
#ifndef MLAP_TESTS_ENGINE_GEMM_CASES_H_
#define MLAP_TESTS_ENGINE_GEMM_CASES_H_

#include <cstdint>
#include <vector>

#include "base/weight_view.h"
#include "kernels/gemm/gemm.h"
#include "support/guarded_buffer.h"

namespace mlap::test {

// Full of NaN patterns: a kernel must not rely on what it finds there.
inline void* Scratch() {
  static GuardedBuffer* const kScratch = new GuardedBuffer(kGemmScratchBytes);
  kScratch->Fill(0xff);
  return kScratch->data();
}

struct GemmCase {
  int64_t rows, k, n, column_begin, column_end;
  bool is_nz;
};

inline WeightView MakeWeight(const GemmCase& c, const GuardedBuffer& buffer, ElementType type) {
  return c.is_nz ? NzWeight(buffer.data(), type, c.k, c.n) : RowMajorWeight(buffer.data(), type, c.k, c.n);
}

inline size_t WeightElements(const GemmCase& c, ElementType type) {
  if (!c.is_nz) return static_cast<size_t>(c.k * c.n);
  const int64_t c0 = FractalColumns(type);
  return static_cast<size_t>(CeilDiv(c.n, c0) * CeilDiv(c.k, kFractalRows) * kFractalRows * c0);
}

// Every k and n around the kernels' steps and blocks, row counts around the tiles, column ranges that start and end
// anywhere.
inline std::vector<GemmCase> GemmCases() {
  std::vector<GemmCase> cases;
  for (const bool is_nz : {true, false}) {
    for (int64_t k = 1; k <= 37; ++k) cases.push_back({3, k, 33, 0, 33, is_nz});
    for (int64_t n = 1; n <= 99; ++n) cases.push_back({2, 21, n, 0, n, is_nz});
    for (int64_t rows = 1; rows <= 26; ++rows) cases.push_back({rows, 18, 70, 0, 70, is_nz});
    for (int64_t begin = 0; begin < 70; begin += 7) {
      for (int64_t end = begin + 1; end <= 100; end += 11) cases.push_back({9, 19, 100, begin, end, is_nz});
    }
    // More rows, columns and k than one block of any kernel.
    cases.push_back({70, 300, 260, 5, 250, is_nz});
    cases.push_back({270, 150, 100, 0, 100, is_nz});
    cases.push_back({530, 40, 36, 3, 36, is_nz});
    cases.push_back({17, 512, 192, 0, 192, is_nz});
    cases.push_back({48, 100, 50, 3, 49, is_nz});
    cases.push_back({64, 2100, 70, 0, 70, is_nz});
    cases.push_back({97, 2100, 130, 20, 130, is_nz});
    cases.push_back({66, 273, 300, 0, 300, is_nz});
    cases.push_back({80, 1061, 70, 0, 70, is_nz});
    cases.push_back({290, 545, 300, 7, 297, is_nz});
    cases.push_back({5, 1536, 48, 16, 48, is_nz});
    // Numbers of tiles of rows, whole and not, around a block's; short and long k in whole steps and not.
    for (const int64_t rows : {33, 47, 65, 97, 129, 193, 255, 289}) {
      cases.push_back({rows, rows % 4 == 1 ? 130 : 290, 70, 0, 36, is_nz});
    }
    cases.push_back({193, 256, 64, 0, 64, is_nz});
    cases.push_back({2049, 34, 40, 0, 40, is_nz});
  }
  return cases;
}

}  // namespace mlap::test

#endif  // MLAP_TESTS_ENGINE_GEMM_CASES_H_
