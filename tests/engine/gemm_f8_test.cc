// The products of 8-bit floats, with and without block scales: every code, exact sums, and the scalar kernel's bits on
// every usable ISA.
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/e4m3.h"
#include "base/e8m0.h"
#include "base/hif8.h"
#include "engine/gemm_cases.h"
#include "gtest/gtest.h"
#include "support/guarded_buffer.h"
#include "support/random_values.h"
#include "support/usable_isas.h"

namespace mlap {
namespace {

using test::GemmCase;
using test::GemmCases;
using test::GuardedBuffer;
using test::MakeWeight;
using test::RandomValues;
using test::Scratch;
using test::WeightElements;

struct Format {
  ElementType type;
  bool has_scales;
  uint8_t one, nan;
};

constexpr Format kFormats[] = {{ElementType::kE4m3, false, 0x38, 0x7f},
                               {ElementType::kHiF8, false, 0x08, 0x80},
                               {ElementType::kE4m3, true, 0x38, 0x7f}};

float Decode(ElementType type, uint8_t code) {
  return type == ElementType::kE4m3 ? ToFloat(E4m3{code}) : ToFloat(HiF8{code});
}

uint8_t FiniteCode(ElementType type, RandomValues* random) {
  for (;;) {
    const auto code = static_cast<uint8_t>(random->Below(256));
    if (std::isfinite(Decode(type, code))) return code;
  }
}

// A call with operands between guard pages.
struct Problem {
  Format format;
  int64_t rows, k, blocks;
  GuardedBuffer a, w, a_scales, w_scales;
  WeightView weight;

  // Scales have bytes in [lowest_scale, lowest_scale + 16).
  Problem(const Format& f, const GemmCase& c, RandomValues* random, int lowest_scale = 119)
      : format(f),
        rows(c.rows),
        k(c.k),
        blocks(CeilDiv(c.k, kMxGroup)),
        a(static_cast<size_t>(c.rows * c.k)),
        w(WeightElements(c, f.type)),
        a_scales(f.has_scales ? static_cast<size_t>(c.rows * blocks) : 0),
        w_scales(f.has_scales ? static_cast<size_t>(c.n * blocks) : 0),
        weight(MakeWeight(c, w, f.type)) {
    // A NaN in the padding would show if a kernel let the padding in.
    w.Fill(f.nan);
    for (int64_t i = 0; i < c.rows * c.k; ++i) a.data()[i] = FiniteCode(f.type, random);
    for (int64_t i = 0; i < c.k; ++i) {
      for (int64_t j = 0; j < c.n; ++j) w.data()[weight.Offset(i, j)] = FiniteCode(f.type, random);
    }
    for (GuardedBuffer* scales : {&a_scales, &w_scales}) {
      for (size_t i = 0; i < scales->size(); ++i) {
        scales->data()[i] = static_cast<uint8_t>(lowest_scale + random->Below(16));
      }
    }
  }

  GemmF8Args Args(int64_t first_row, int64_t num_rows, int64_t begin, int64_t end, float* c, int64_t c_stride) const {
    GemmF8Args args = {a.data() + first_row * k, k, num_rows, weight, begin, end, c, c_stride, Scratch()};
    if (format.has_scales) {
      args.a_scales = a_scales.data() + first_row * blocks;
      args.w_scales = w_scales.data();
      args.a_scale_stride = args.w_scale_stride = blocks;
    }
    return args;
  }

  double A(int64_t m, int64_t i) const {
    const double value = Decode(format.type, a.data()[m * k + i]);
    return format.has_scales ? std::ldexp(value, a_scales.data()[m * blocks + i / kMxGroup] - 127) : value;
  }
  double W(int64_t i, int64_t j) const {
    const double value = Decode(format.type, w.data()[weight.Offset(i, j)]);
    return format.has_scales ? std::ldexp(value, w_scales.data()[j * blocks + i / kMxGroup] - 127) : value;
  }
};

const KernelTable& Scalar() {
  static const KernelTable* const kTable = [] {
    KernelChoice choice;
    EXPECT_TRUE(ChooseKernels("scalar", &choice).ok());
    return new KernelTable(choice.table);
  }();
  return *kTable;
}

// Equal bits; NaNs only have to be NaNs.
bool Same(float x, float y) {
  return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y) || (std::isnan(x) && std::isnan(y));
}

class GemmF8Test : public testing::TestWithParam<KernelChoice> {
 protected:
  const Kernel<GemmF8Fn>& gemm() const { return GetParam().table.gemm_f8; }
};

TEST_P(GemmF8Test, MatchesExactSums) {
  RandomValues random(31);
  for (const Format& format : kFormats) {
    for (const GemmCase& c : GemmCases()) {
      const Problem problem(format, c, &random);
      const int64_t columns = c.column_end - c.column_begin;
      GuardedBuffer out(static_cast<size_t>(c.rows * columns) * sizeof(float));
      gemm().run(problem.Args(0, c.rows, c.column_begin, c.column_end, out.as<float>(), columns));
      std::vector<double> a(static_cast<size_t>(c.rows * c.k)), column(static_cast<size_t>(c.k));
      for (int64_t m = 0; m < c.rows; ++m) {
        for (int64_t i = 0; i < c.k; ++i) a[static_cast<size_t>(m * c.k + i)] = problem.A(m, i);
      }
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t i = 0; i < c.k; ++i) column[static_cast<size_t>(i)] = problem.W(i, c.column_begin + j);
        for (int64_t m = 0; m < c.rows; ++m) {
          double sum = 0.0, magnitude = 0.0;
          for (int64_t i = 0; i < c.k; ++i) {
            const double product = a[static_cast<size_t>(m * c.k + i)] * column[static_cast<size_t>(i)];
            sum += product;
            magnitude += std::fabs(product);
          }
          // Products are exact; k roundings of partial sums no larger than the sum of magnitudes.
          ASSERT_NEAR(out.as<float>()[m * columns + j], sum, static_cast<double>(c.k) * magnitude / (1 << 24))
              << "type " << static_cast<int>(format.type) << " scales " << format.has_scales << " rows " << c.rows
              << " k " << c.k << " n " << c.n << " [" << c.column_begin << ", " << c.column_end << ") nz " << c.is_nz
              << " at " << m << ", " << j;
        }
      }
    }
  }
}

// A product with one is the other factor: all 256 codes of the weight, and of A.
TEST_P(GemmF8Test, EveryCodeIsConvertedExactly) {
  for (const Format& format : kFormats) {
    for (const bool is_nz : {true, false}) {
      std::vector<uint8_t> codes(256), ones(256 * 16, 0);
      for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
      std::vector<uint8_t> w(256 * 16, 0);  // k = 1 is one row of each block
      const WeightView view =
          is_nz ? NzWeight(w.data(), format.type, 1, 256) : RowMajorWeight(w.data(), format.type, 1, 256);
      const std::vector<uint8_t> unit_scales(256, 127);
      std::vector<float> out(256);
      GemmF8Args args = {&format.one, 1, 1, view, 0, 256, out.data(), 256, Scratch()};
      if (format.has_scales) {
        args.a_scales = args.w_scales = unit_scales.data();
        args.a_scale_stride = args.w_scale_stride = 1;
      }
      for (int64_t j = 0; j < 256; ++j) w[static_cast<size_t>(view.Offset(0, j))] = codes[static_cast<size_t>(j)];
      gemm().run(args);
      for (size_t j = 0; j < 256; ++j) {
        // 0 + -0 is 0.
        EXPECT_TRUE(Same(out[j], 0.0f + Decode(format.type, codes[j]))) << j << ": " << out[j];
      }

      for (uint8_t& code : w) code = format.one;
      args.a = codes.data();
      args.rows = 256;
      args.column_end = 1;
      args.c_row_stride = 1;
      gemm().run(args);
      for (size_t m = 0; m < 256; ++m) {
        EXPECT_TRUE(Same(out[m], 0.0f + Decode(format.type, codes[m]))) << m << ": " << out[m];
      }
    }
  }
}

TEST_P(GemmF8Test, IsTheScalarResult) {
  RandomValues random(32);
  for (const Format& format : kFormats) {
    // The last two sets of scales overflow, and meet denormals.
    for (const int lowest_scale : {119, 120, 239, 0}) {
      for (const GemmCase& c : {GemmCase{11, 203, 75, 0, 75, true}, GemmCase{9, 1536, 100, 3, 99, false}}) {
        Problem problem(format, c, &random, lowest_scale);
        const int64_t columns = c.column_end - c.column_begin;
        std::vector<float> expected(static_cast<size_t>(c.rows * columns)), actual = expected;
        Scalar().gemm_f8.run(problem.Args(0, c.rows, c.column_begin, c.column_end, expected.data(), columns));
        gemm().run(problem.Args(0, c.rows, c.column_begin, c.column_end, actual.data(), columns));
        for (size_t i = 0; i < expected.size(); ++i) {
          ASSERT_TRUE(Same(actual[i], expected[i])) << i << ": " << actual[i] << ", scalar " << expected[i];
        }
      }
    }
  }
}

TEST_P(GemmF8Test, RowsAndColumnsAreIndependent) {
  constexpr int64_t kRows = 23, kN = 130;
  RandomValues random(33);
  for (const Format& format : kFormats) {
    const Problem problem(format, {kRows, 177, kN, 0, kN, true}, &random);
    std::vector<float> whole(kRows * kN);
    gemm().run(problem.Args(0, kRows, 0, kN, whole.data(), kN));
    for (int64_t rows = 1; rows <= 12; ++rows) {
      for (int64_t first = 0; first + rows <= kRows; first += 5) {
        const int64_t begin = first % 19, end = kN - first;
        std::vector<float> part(static_cast<size_t>(rows * 200), -77.0f);
        gemm().run(problem.Args(first, rows, begin, end, part.data(), 200));
        for (int64_t m = 0; m < rows; ++m) {
          for (int64_t j = 0; j < 200; ++j) {
            const float expected = j < end - begin ? whole[static_cast<size_t>((first + m) * kN + begin + j)] : -77.0f;
            ASSERT_TRUE(Same(part[static_cast<size_t>(m * 200 + j)], expected));
          }
        }
      }
    }
  }
}

// A NaN code, or a NaN scale, makes its row or column NaN and touches nothing else.
TEST_P(GemmF8Test, NansStayInTheirRowAndColumn) {
  const GemmCase c = {7, 70, 40, 0, 40, true};
  RandomValues random(34);
  for (const Format& format : kFormats) {
    Problem problem(format, c, &random);
    std::vector<float> clean(static_cast<size_t>(c.rows * c.n)), out = clean;
    gemm().run(problem.Args(0, c.rows, 0, c.n, clean.data(), c.n));
    for (const bool in_scale : {false, true}) {
      if (in_scale && !format.has_scales) continue;
      uint8_t* a = in_scale ? &problem.a_scales.data()[4 * problem.blocks + 2] : &problem.a.data()[4 * c.k + 69];
      uint8_t* w = in_scale ? &problem.w_scales.data()[33 * problem.blocks + 2]
                            : &problem.w.data()[problem.weight.Offset(69, 33)];
      const std::pair<uint8_t, uint8_t> saved(*a, *w);
      *a = *w = in_scale ? 255 : format.nan;
      gemm().run(problem.Args(0, c.rows, 0, c.n, out.data(), c.n));
      *a = saved.first;
      *w = saved.second;
      for (int64_t m = 0; m < c.rows; ++m) {
        for (int64_t j = 0; j < c.n; ++j) {
          const auto i = static_cast<size_t>(m * c.n + j);
          if (m == 4 || j == 33) {
            EXPECT_TRUE(std::isnan(out[i])) << m << ", " << j;
          } else {
            EXPECT_TRUE(Same(out[i], clean[i])) << m << ", " << j;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, GemmF8Test, testing::ValuesIn(test::UsableIsas()),
                         [](const auto& instance) { return test::IsaName(instance.param); });

}  // namespace
}  // namespace mlap
