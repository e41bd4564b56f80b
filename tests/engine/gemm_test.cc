// The matrix products of every usable ISA: against exact sums, at every tail, on both weight layouts, between guard
// pages.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

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

class GemmTest : public testing::TestWithParam<KernelChoice> {};

TEST_P(GemmTest, Bf16MatchesExactSums) {
  RandomValues random(1);
  for (const GemmCase& c : GemmCases()) {
    GuardedBuffer a(static_cast<size_t>(c.rows * c.k) * sizeof(Bf16));
    GuardedBuffer w(WeightElements(c, ElementType::kBf16) * sizeof(Bf16));
    // A NaN in the padding would show if a kernel let the padding in.
    for (size_t i = 0; i < w.size() / sizeof(Bf16); ++i) w.as<Bf16>()[i] = Bf16{0x7fc0};
    const WeightView view = MakeWeight(c, w, ElementType::kBf16);
    for (int64_t i = 0; i < c.rows * c.k; ++i) a.as<Bf16>()[i] = random.NormalBf16();
    for (int64_t i = 0; i < c.k; ++i) {
      for (int64_t j = 0; j < c.n; ++j) w.as<Bf16>()[view.Offset(i, j)] = random.NormalBf16();
    }
    const int64_t columns = c.column_end - c.column_begin;
    GuardedBuffer out(static_cast<size_t>(c.rows * columns) * sizeof(Bf16));
    GetParam().table.gemm_bf16.run(
        {a.as<Bf16>(), c.k, c.rows, view, c.column_begin, c.column_end, out.as<Bf16>(), columns, Scratch()});
    for (int64_t m = 0; m < c.rows; ++m) {
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 0.0, magnitude = 0.0;
        for (int64_t i = 0; i < c.k; ++i) {
          const double product = static_cast<double>(ToFloat(a.as<Bf16>()[m * c.k + i])) *
                                 ToFloat(w.as<Bf16>()[view.Offset(i, c.column_begin + j)]);
          sum += product;
          magnitude += std::fabs(product);
        }
        // One bf16 rounding, plus k binary32 roundings of partial sums no larger than the sum of magnitudes.
        const double bound = std::fabs(sum) / 256 + static_cast<double>(c.k) * magnitude / (1 << 24);
        ASSERT_NEAR(ToFloat(out.as<Bf16>()[m * columns + j]), sum, bound)
            << "rows " << c.rows << " k " << c.k << " n " << c.n << " [" << c.column_begin << ", " << c.column_end
            << ") nz " << c.is_nz << " at " << m << ", " << j;
      }
    }
  }
}

TEST_P(GemmTest, Int8IsExact) {
  RandomValues random(2);
  for (const GemmCase& c : GemmCases()) {
    GuardedBuffer a(static_cast<size_t>(c.rows * c.k));
    GuardedBuffer w(WeightElements(c, ElementType::kInt8));
    for (size_t i = 0; i < w.size(); ++i) w.as<int8_t>()[i] = 77;
    const WeightView view = MakeWeight(c, w, ElementType::kInt8);
    for (int64_t i = 0; i < c.rows * c.k; ++i) a.as<int8_t>()[i] = random.Int8();
    for (int64_t i = 0; i < c.k; ++i) {
      for (int64_t j = 0; j < c.n; ++j) w.as<int8_t>()[view.Offset(i, j)] = random.Int8();
    }
    const int64_t columns = c.column_end - c.column_begin;
    GuardedBuffer out(static_cast<size_t>(c.rows * columns) * sizeof(int32_t));
    GetParam().table.gemm_s8.run(
        {a.as<int8_t>(), c.k, c.rows, view, c.column_begin, c.column_end, out.as<int32_t>(), columns, Scratch()});
    for (int64_t m = 0; m < c.rows; ++m) {
      for (int64_t j = 0; j < columns; ++j) {
        int32_t sum = 0;
        for (int64_t i = 0; i < c.k; ++i) {
          sum += a.as<int8_t>()[m * c.k + i] * w.as<int8_t>()[view.Offset(i, c.column_begin + j)];
        }
        ASSERT_EQ(out.as<int32_t>()[m * columns + j], sum)
            << "rows " << c.rows << " k " << c.k << " n " << c.n << " [" << c.column_begin << ", " << c.column_end
            << ") nz " << c.is_nz << " at " << m << ", " << j;
      }
    }
  }
}

// The largest sums the operator can make: 8192 products of -128 and -128, and of -128 and 127.
TEST_P(GemmTest, Int8ExtremesDoNotSaturate) {
  constexpr int64_t kK = 8192;
  for (const int8_t x : {-128, 127}) {
    for (const int8_t y : {-128, 127}) {
      const std::vector<int8_t> a(kK, x), w(static_cast<size_t>(kK) * 32, y);
      std::vector<int32_t> out(32);
      GetParam().table.gemm_s8.run(
          {a.data(), kK, 1, NzWeight(w.data(), ElementType::kInt8, kK, 32), 0, 32, out.data(), 32, Scratch()});
      for (const int32_t sum : out) EXPECT_EQ(sum, kK * x * y);
    }
  }
}

// A row's result is the same bits alone, in any tile, at any position, in any column range, and from a strided output.
TEST_P(GemmTest, RowsAndColumnsAreIndependent) {
  constexpr int64_t kRows = 23, kK = 77, kN = 130;
  RandomValues random(3);
  std::vector<Bf16> a(kRows * kK), w(static_cast<size_t>(CeilDiv(kN, 16) * 16 * 80));
  for (Bf16& x : a) x = random.NormalBf16();
  for (Bf16& x : w) x = random.NormalBf16();
  const WeightView view = NzWeight(w.data(), ElementType::kBf16, kK, kN);
  std::vector<Bf16> whole(kRows * kN);
  GetParam().table.gemm_bf16.run({a.data(), kK, kRows, view, 0, kN, whole.data(), kN, Scratch()});
  for (int64_t rows = 1; rows <= 12; ++rows) {
    for (int64_t first = 0; first + rows <= kRows; first += 5) {
      const int64_t begin = first % 19, end = kN - first;
      std::vector<Bf16> part(static_cast<size_t>(rows * 200), Bf16{0xabcd});
      GetParam().table.gemm_bf16.run({a.data() + first * kK, kK, rows, view, begin, end, part.data(), 200, Scratch()});
      for (int64_t m = 0; m < rows; ++m) {
        for (int64_t j = 0; j < 200; ++j) {
          const uint16_t expected =
              j < end - begin ? whole[static_cast<size_t>((first + m) * kN + begin + j)].bits : 0xabcd;
          ASSERT_EQ(part[static_cast<size_t>(m * 200 + j)].bits, expected);
        }
      }
    }
  }
}

// Any bits: numbers of every size, denormals, infinities and NaNs.
Bf16 AnyBf16(RandomValues* random, int percent) {
  if (random->Below(100) >= percent) return random->NormalBf16();
  return Bf16{static_cast<uint16_t>(random->Below(0x10000))};
}

// Few rows may take another way through the processor than many: they have to be the same bits whatever the values and
// wherever k ends.
TEST_P(GemmTest, FewRowsAreTheBitsOfMany) {
  constexpr int64_t kRows = 70, kN = 131;
  RandomValues random(6);
  for (const bool is_nz : {true, false}) {
    for (const int percent : {0, 2, 100}) {
      for (const int64_t k : {1, 2, 15, 17, 31, 32, 33, 65, 200, 320}) {
        const GemmCase c = {kRows, k, kN, 0, kN, is_nz};
        GuardedBuffer w(WeightElements(c, ElementType::kBf16) * sizeof(Bf16));
        for (size_t i = 0; i < w.size() / sizeof(Bf16); ++i) w.as<Bf16>()[i] = AnyBf16(&random, percent);
        const WeightView view = MakeWeight(c, w, ElementType::kBf16);
        std::vector<Bf16> a(static_cast<size_t>(kRows * k)), many(kRows * kN);
        for (Bf16& x : a) x = AnyBf16(&random, percent);
        GetParam().table.gemm_bf16.run({a.data(), k, kRows, view, 0, kN, many.data(), kN, Scratch()});
        for (const int64_t rows : {1, 2, 3, 4, 5, 8, 16, 17, 32, 33, 48, 49, 64, 65}) {
          // Part of a block, and whole ones, of which several fill a row of lines.
          const int64_t ranges[][2] = {{rows % 5 * 7, kN - rows % 7}, {0, 128}, {16, 80}};
          for (const auto& [begin, end] : ranges) {
            const int64_t columns = end - begin;
            std::vector<Bf16> few(static_cast<size_t>(rows * columns));
            for (int64_t first = 0; first + rows <= kRows; first += 19) {
              GetParam().table.gemm_bf16.run(
                  {a.data() + first * k, k, rows, view, begin, end, few.data(), columns, Scratch()});
              for (int64_t m = 0; m < rows; ++m) {
                ASSERT_EQ(std::memcmp(&few[static_cast<size_t>(m * columns)],
                                      &many[static_cast<size_t>((first + m) * kN + begin)],
                                      static_cast<size_t>(columns) * sizeof(Bf16)),
                          0)
                    << "row " << first << " + " << m << " of " << rows << ", k " << k << ", columns [" << begin << ", "
                    << end << "), nz " << is_nz << ", " << percent << " % of any bits";
              }
            }
          }
        }
      }
    }
  }
}

// Rows that do not fit in one block of any kernel, columns of more than one group and k of more than one piece: all
// together or 48 at a time, the same bits.
TEST_P(GemmTest, ManyRowsAreTheBitsOfSome) {
  constexpr int64_t kRows = 600, kSome = 48, kN = 300;
  RandomValues random(8);
  for (const bool is_nz : {true, false}) {
    for (const int64_t k : {40, 256, 290, 600}) {
      const GemmCase c = {kRows, k, kN, 0, kN, is_nz};
      GuardedBuffer w(WeightElements(c, ElementType::kBf16) * sizeof(Bf16));
      for (size_t i = 0; i < w.size() / sizeof(Bf16); ++i) w.as<Bf16>()[i] = random.NormalBf16();
      const WeightView view = MakeWeight(c, w, ElementType::kBf16);
      std::vector<Bf16> a(static_cast<size_t>(kRows * k)), all(kRows * kN), some(kSome * kN);
      for (Bf16& x : a) x = random.NormalBf16();
      for (const int64_t rows : {65, 80, 97, 256, 257, 300, 600}) {
        GetParam().table.gemm_bf16.run({a.data(), k, rows, view, 0, kN, all.data(), kN, Scratch()});
        for (int64_t first = 0; first < rows; first += kSome) {
          const int64_t count = std::min(kSome, rows - first);
          GetParam().table.gemm_bf16.run({a.data() + first * k, k, count, view, 0, kN, some.data(), kN, Scratch()});
          ASSERT_EQ(std::memcmp(some.data(), &all[static_cast<size_t>(first * kN)],
                                static_cast<size_t>(count * kN) * sizeof(Bf16)),
                    0)
              << "rows [" << first << ", " << first + count << ") of " << rows << ", k " << k << ", nz " << is_nz;
        }
      }
    }
  }
}

// Past the caches or not, to any address: the same bits, and not a byte beside them.
TEST_P(GemmTest, StreamedStoresChangeNothing) {
  constexpr int64_t kN = 224, kStride = 256, kMostRows = 300;
  RandomValues random(7);
  GuardedBuffer plain(kMostRows * kStride * sizeof(Bf16)), streamed(kMostRows * kStride * sizeof(Bf16));
  int turn = 0;
  for (const bool is_nz : {true, false}) {
    for (const int64_t k : {128, 200}) {
      const GemmCase c = {kMostRows, k, kN, 0, kN, is_nz};
      GuardedBuffer w(WeightElements(c, ElementType::kBf16) * sizeof(Bf16));
      for (size_t i = 0; i < w.size() / sizeof(Bf16); ++i) w.as<Bf16>()[i] = random.NormalBf16();
      const WeightView view = MakeWeight(c, w, ElementType::kBf16);
      std::vector<Bf16> a(static_cast<size_t>(kMostRows * k));
      for (Bf16& x : a) x = random.NormalBf16();
      for (const int64_t rows : {1, 5, 16, 17, 32, 33, 48, 64, 65, 100, 300}) {
        for (const int64_t offset : {0, 3, 8, 32}) {
          for (const int64_t stride : {kStride, kStride - 32, kStride - 31}) {
            for (const int64_t begin : {0, 16, 32, 37}) {
              // A fifth of the combinations, other ones for each number of rows.
              if (++turn % 5 != 0) continue;
              const int64_t end = kN - offset - begin / 2;
              plain.Fill(0x5a);
              streamed.Fill(0x5a);
              GemmBf16Args args = {a.data(), k,         rows,      view, begin, end, plain.as<Bf16>() + offset,
                                   stride,   Scratch(), NextRead{}};
              GetParam().table.gemm_bf16.run(args);
              args.c = streamed.as<Bf16>() + offset;
              args.streams_c = true;
              GetParam().table.gemm_bf16.run(args);
              ASSERT_EQ(std::memcmp(plain.data(), streamed.data(), plain.size()), 0)
                  << rows << " rows, k " << k << ", offset " << offset << ", stride " << stride << ", columns ["
                  << begin << ", " << end << "), nz " << is_nz;
            }
          }
        }
      }
    }
  }
}

// What is asked for ahead is nothing that a product depends on: not even whether it is there.
TEST_P(GemmTest, WhatIsReadNextChangesNothing) {
  constexpr int64_t kN = 192;
  RandomValues random(8);
  const std::vector<char> other(size_t{1} << 16);
  const NextRead nexts[] = {{other.data(), 0},
                            {other.data(), 1},
                            {other.data(), 65536},
                            {other.data() + 7, 64 * 13},
                            {other.data(), 4096, 4, 16384},
                            {other.data() + 60000, 5536, 3, 64},
                            {nullptr, 131072}};
  for (const bool is_nz : {true, false}) {
    for (const int64_t k : {32, 128, 200}) {
      const GemmCase c = {1, k, kN, 0, kN, is_nz};
      GuardedBuffer w(WeightElements(c, ElementType::kBf16) * sizeof(Bf16));
      for (size_t i = 0; i < w.size() / sizeof(Bf16); ++i) w.as<Bf16>()[i] = random.NormalBf16();
      const WeightView view = MakeWeight(c, w, ElementType::kBf16);
      for (const int64_t rows : {1, 2, 3, 16, 17, 33, 70}) {
        GuardedBuffer a(static_cast<size_t>(rows * k) * sizeof(Bf16));
        for (int64_t i = 0; i < rows * k; ++i) a.as<Bf16>()[i] = random.NormalBf16();
        const size_t bytes = static_cast<size_t>(rows * kN) * sizeof(Bf16);
        GuardedBuffer plain(bytes), asking(bytes);
        GemmBf16Args args = {a.as<Bf16>(), k, rows, view, 0, kN, plain.as<Bf16>(), kN, Scratch()};
        GetParam().table.gemm_bf16.run(args);
        args.c = asking.as<Bf16>();
        for (const NextRead& next : nexts) {
          for (const bool was_next : {false, true}) {
            asking.Fill(0x5a);
            args.next = next;
            args.was_next = was_next;
            GetParam().table.gemm_bf16.run(args);
            ASSERT_EQ(std::memcmp(plain.data(), asking.data(), bytes), 0)
                << rows << " rows, k " << k << ", nz " << is_nz << ", next " << next.num_bytes << " bytes in "
                << next.num_pieces << " pieces, was next " << was_next;
          }
        }
      }
    }
  }
}

// What is not finite, or denormal, in one row does not touch another.
TEST_P(GemmTest, SpecialValuesStayInTheirRow) {
  constexpr int64_t kRows = 9, kK = 33, kN = 40;
  RandomValues random(4);
  std::vector<Bf16> clean(kRows * kK), w(static_cast<size_t>(3 * 16 * 48));
  for (Bf16& x : clean) x = random.NormalBf16();
  for (Bf16& x : w) x = random.NormalBf16();
  const WeightView view = NzWeight(w.data(), ElementType::kBf16, kK, kN);
  std::vector<Bf16> expected(kRows * kN);
  GetParam().table.gemm_bf16.run({clean.data(), kK, kRows, view, 0, kN, expected.data(), kN, Scratch()});
  for (const uint16_t special : {0x7fc0, 0x7f80, 0xff80, 0x0001, 0x7f7f}) {
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<Bf16> a = clean;
      a[static_cast<size_t>(row * kK + 32)].bits = special;
      a[static_cast<size_t>(row * kK)].bits = special;
      std::vector<Bf16> out(kRows * kN);
      GetParam().table.gemm_bf16.run({a.data(), kK, kRows, view, 0, kN, out.data(), kN, Scratch()});
      for (int64_t m = 0; m < kRows; ++m) {
        if (m == row) continue;
        ASSERT_EQ(
            std::memcmp(&out[static_cast<size_t>(m * kN)], &expected[static_cast<size_t>(m * kN)], kN * sizeof(Bf16)),
            0);
      }
    }
  }
}

// A product of two bf16 is exact in binary32, so a fused multiply-add rounds like a multiplication and an addition:
// without dot-product instructions the bits are the scalar kernels'.
TEST_P(GemmTest, Bf16WithoutDotProductsIsTheScalarResult) {
  const std::string isa = GetParam().isa;
  if (isa == "avx512bf16" || isa == "amx") return;
  KernelChoice scalar;
  ASSERT_TRUE(ChooseKernels("scalar", &scalar).ok());
  constexpr int64_t kRows = 11, kK = 203, kN = 75;
  RandomValues random(5);
  std::vector<Bf16> a(kRows * kK), w(static_cast<size_t>(5 * 16 * 208));
  for (Bf16& x : a) x = random.NormalBf16();
  for (Bf16& x : w) x = random.NormalBf16();
  const WeightView view = NzWeight(w.data(), ElementType::kBf16, kK, kN);
  std::vector<Bf16> expected(kRows * kN), actual(kRows * kN);
  scalar.table.gemm_bf16.run({a.data(), kK, kRows, view, 0, kN, expected.data(), kN, Scratch()});
  GetParam().table.gemm_bf16.run({a.data(), kK, kRows, view, 0, kN, actual.data(), kN, Scratch()});
  EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(Bf16)), 0);
}

INSTANTIATE_TEST_SUITE_P(Isa, GemmTest, testing::ValuesIn(test::UsableIsas()),
                         [](const auto& instance) { return test::IsaName(instance.param); });

}  // namespace
}  // namespace mlap
