#include "peak_loops.h"

#include <vector>

#include "cpu_support.h"
#include "tile_config.h"

namespace mlap::bench {
namespace {

// 12 independent sums: latency 6 at 2 instructions a cycle is hidden.
#define MLAP_TWELVE(step)                                                                                        \
  step("0") step("1") step("2") step("3") step("4") step("5") step("6") step("7") step("8") step("9") step("10") \
      step("11")

#if defined(__x86_64__)

#define MLAP_CLOBBERS                                                                                                 \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15", "cc", "memory"

// A function that loads registers 14 and 15, clears the sums and repeats `step` for each of them. The upper halves of
// the registers belong to nobody else: the rest of the program is compiled without AVX.
#define MLAP_AVX_LOOP(name, width, step)                                                                        \
  void name(int64_t iterations, const void* data) {                                                             \
    __asm__ volatile("vmovups (%[data]), %%" width "14\n vmovups 64(%[data]), %%" width                         \
                     "15\n" MLAP_TWELVE(MLAP_CLEAR) "1:\n" MLAP_TWELVE(step) "dec %[n]\n jnz 1b\n vzeroupper\n" \
                     : [n] "+r"(iterations)                                                                     \
                     : [data] "r"(data)                                                                         \
                     : MLAP_CLOBBERS);                                                                          \
  }

#define MLAP_CLEAR(i) "vpxor %%xmm" i ", %%xmm" i ", %%xmm" i "\n"
#define MLAP_FMA_YMM(i) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" i "\n"
#define MLAP_FMA_ZMM(i) "vfmadd231ps %%zmm14, %%zmm15, %%zmm" i "\n"
#define MLAP_BF16_ZMM(i) "vdpbf16ps %%zmm14, %%zmm15, %%zmm" i "\n"
#define MLAP_VNNI_YMM(i) "%{vex%} vpdpbusd %%ymm14, %%ymm15, %%ymm" i "\n"
#define MLAP_VNNI_ZMM(i) "vpdpbusd %%zmm14, %%zmm15, %%zmm" i "\n"
#define MLAP_MADD_YMM(i) "vpmaddwd %%ymm14, %%ymm15, %%ymm12\n vpaddd %%ymm12, %%ymm" i ", %%ymm" i "\n"
#define MLAP_MADD_ZMM(i) "vpmaddwd %%zmm14, %%zmm15, %%zmm12\n vpaddd %%zmm12, %%zmm" i ", %%zmm" i "\n"

MLAP_AVX_LOOP(FmaYmm, "ymm", MLAP_FMA_YMM)
MLAP_AVX_LOOP(FmaZmm, "zmm", MLAP_FMA_ZMM)
MLAP_AVX_LOOP(Bf16Zmm, "zmm", MLAP_BF16_ZMM)
MLAP_AVX_LOOP(VnniYmm, "ymm", MLAP_VNNI_YMM)
MLAP_AVX_LOOP(VnniZmm, "zmm", MLAP_VNNI_ZMM)
MLAP_AVX_LOOP(MaddYmm, "ymm", MLAP_MADD_YMM)
MLAP_AVX_LOOP(MaddZmm, "zmm", MLAP_MADD_ZMM)

#define MLAP_SSE_LOOP(name, step)                                                             \
  void name(int64_t iterations, const void* data) {                                           \
    __asm__ volatile("movups (%[data]), %%xmm14\n movups 64(%[data]), %%xmm15\n" MLAP_TWELVE( \
                         MLAP_SSE_CLEAR) "1:\n" MLAP_TWELVE(step) "dec %[n]\n jnz 1b\n"       \
                     : [n] "+r"(iterations)                                                   \
                     : [data] "r"(data)                                                       \
                     : MLAP_CLOBBERS);                                                        \
  }

#define MLAP_SSE_CLEAR(i) "pxor %%xmm" i ", %%xmm" i "\n"
#define MLAP_MULADD_XMM(i) "movaps %%xmm14, %%xmm12\n mulps %%xmm15, %%xmm12\n addps %%xmm12, %%xmm" i "\n"
#define MLAP_MADD_XMM(i) "movdqa %%xmm14, %%xmm12\n pmaddwd %%xmm15, %%xmm12\n paddd %%xmm12, %%xmm" i "\n"

MLAP_SSE_LOOP(MulAddXmm, MLAP_MULADD_XMM)
MLAP_SSE_LOOP(MaddXmm, MLAP_MADD_XMM)

#define MLAP_TILE_LOOP(name, product)                                                                      \
  void name(int64_t iterations, const void* data) {                                                        \
    const TileConfig config;                                                                               \
    __asm__ volatile(                                                                                      \
        "ldtilecfg (%[config])\n"                                                                          \
        "tilezero %%tmm0\n tilezero %%tmm1\n tilezero %%tmm2\n tilezero %%tmm3\n"                          \
        "tileloadd (%[data],%[stride]), %%tmm4\n tileloadd 1024(%[data],%[stride]), %%tmm5\n"              \
        "tileloadd 2048(%[data],%[stride]), %%tmm6\n tileloadd 3072(%[data],%[stride]), %%tmm7\n"          \
        "1:\n" product " %%tmm6, %%tmm4, %%tmm0\n " product " %%tmm7, %%tmm4, %%tmm1\n " product           \
        " %%tmm6, %%tmm5, %%tmm2\n " product " %%tmm7, %%tmm5, %%tmm3\n dec %[n]\n jnz 1b\n tilerelease\n" \
        : [n] "+r"(iterations)                                                                             \
        : [config] "r"(&config), [data] "r"(data), [stride] "r"(int64_t{64})                               \
        : "cc", "memory");                                                                                 \
  }

// The same with every operand loaded, as in a product of matrices: 2 KB of rows and 2 KB of columns for four products,
// walking through so many bytes of each.
#define MLAP_TILE_WALK(name, row_bytes, column_bytes)                                                          \
  void name(int64_t iterations, const void* data) {                                                            \
    const TileConfig config;                                                                                   \
    int64_t row = 0, column = 0;                                                                               \
    const char* rows = static_cast<const char*>(data);                                                         \
    const char* columns = rows + (row_bytes);                                                                  \
    const char *a, *b;                                                                                         \
    __asm__ volatile(                                                                                          \
        "ldtilecfg (%[config])\n"                                                                              \
        "tilezero %%tmm0\n tilezero %%tmm1\n tilezero %%tmm2\n tilezero %%tmm3\n"                              \
        "1:\n lea (%[rows],%[row]), %[a]\n lea (%[columns],%[column]), %[b]\n"                                 \
        "tileloadd (%[a],%[stride]), %%tmm4\n tileloadd (%[b],%[stride]), %%tmm6\n"                            \
        "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n tileloadd 1024(%[b],%[stride]), %%tmm7\n"                          \
        "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n tileloadd 1024(%[a],%[stride]), %%tmm5\n"                          \
        "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n tdpbf16ps %%tmm7, %%tmm5, %%tmm3\n"                                \
        "add $2048, %[row]\n and %[row_mask], %[row]\n add $2048, %[column]\n and %[column_mask], %[column]\n" \
        "dec %[n]\n jnz 1b\n tilerelease\n"                                                                    \
        : [n] "+r"(iterations), [row] "+&r"(row), [column] "+&r"(column), [a] "=&r"(a), [b] "=&r"(b)           \
        : [config] "r"(&config), [rows] "r"(rows), [columns] "r"(columns), [stride] "r"(int64_t{64}),          \
          [row_mask] "r"(int64_t{(row_bytes)-1}), [column_mask] "r"(int64_t{(column_bytes)-1})                 \
        : "cc", "memory");                                                                                     \
  }

constexpr int64_t kKibibyte = 1024;
MLAP_TILE_WALK(Bf16TilesFromFirstLevel, 16 * kKibibyte, 16 * kKibibyte)
MLAP_TILE_WALK(Bf16TilesFromSecondLevel, 512 * kKibibyte, 128 * kKibibyte)

MLAP_TILE_LOOP(Bf16Tiles, "tdpbf16ps")
MLAP_TILE_LOOP(Int8Tiles, "tdpbssd")

std::vector<PeakLoop> MakeLoops() {
  const CpuSupport& cpu = Support();
  return {
      {"fp32_128", "mulps + addps xmm", 12 * 8, true, MulAddXmm},
      {"fp32_256", "vfmadd231ps ymm", 12 * 16, cpu.fma_256, FmaYmm},
      {"fp32_512", "vfmadd231ps zmm", 12 * 32, cpu.fma_512, FmaZmm},
      {"bf16_512", "vdpbf16ps zmm", 12 * 64, cpu.bf16_512, Bf16Zmm},
      {"bf16_amx", "tdpbf16ps tmm", 4 * 2 * 16 * 16 * 32, cpu.amx, Bf16Tiles, 4 * kKibibyte},
      {"bf16_amx_l1", "the same, operands from L1", 4 * 2 * 16 * 16 * 32, cpu.amx, Bf16TilesFromFirstLevel,
       32 * kKibibyte},
      {"bf16_amx_l2", "the same, operands from L2", 4 * 2 * 16 * 16 * 32, cpu.amx, Bf16TilesFromSecondLevel,
       640 * kKibibyte},
      {"int8_madd_128", "pmaddwd + paddd xmm", 12 * 16, true, MaddXmm},
      {"int8_madd_256", "vpmaddwd + vpaddd ymm", 12 * 32, cpu.fma_256, MaddYmm},
      {"int8_madd_512", "vpmaddwd + vpaddd zmm", 12 * 64, cpu.fma_512, MaddZmm},
      {"int8_vnni_256", "vpdpbusd ymm", 12 * 64, cpu.vnni_256, VnniYmm},
      {"int8_vnni_512", "vpdpbusd zmm", 12 * 128, cpu.vnni_512, VnniZmm},
      {"int8_amx", "tdpbssd tmm", 4 * 2 * 16 * 16 * 64, cpu.amx, Int8Tiles, 4 * kKibibyte},
  };
}

#elif defined(__aarch64__)

#define MLAP_NEON_LOOP(name, product)                                                                                  \
  void name(int64_t iterations, const void* data) {                                                                    \
    __asm__ volatile("ldr q14, [%[data]]\n ldr q15, [%[data], #64]\n" MLAP_TWELVE(MLAP_NEON_CLEAR) "1:\n" MLAP_TWELVE( \
                         product) "subs %[n], %[n], #1\n b.ne 1b\n"                                                    \
                     : [n] "+r"(iterations)                                                                            \
                     : [data] "r"(data)                                                                                \
                     : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v14", "v15", "cc",   \
                       "memory");                                                                                      \
  }

#define MLAP_NEON_CLEAR(i) "movi v" i ".4s, #0\n"
#define MLAP_FMLA(i) "fmla v" i ".4s, v14.4s, v15.4s\n"
#define MLAP_MLA(i) "mla v" i ".4s, v14.4s, v15.4s\n"

MLAP_NEON_LOOP(FmlaQ, MLAP_FMLA)
MLAP_NEON_LOOP(MlaQ, MLAP_MLA)

std::vector<PeakLoop> MakeLoops() {
  return {{"fp32_128", "fmla v.4s", 12 * 8, true, FmlaQ}, {"int8_madd_128", "mla v.4s", 12 * 8, true, MlaQ}};
}

#else
#error "the benchmark knows x86-64 and 64-bit Arm"
#endif

constexpr IsaPeaks kIsaPeaks[] = {
    {"scalar", "fp32_128", "int8_madd_128"},
    {"avx2", "fp32_256", "int8_madd_256"},
    {"avxvnni", "fp32_256", "int8_vnni_256"},
    {"avx512", "fp32_512", "int8_madd_512"},
    {"avx512vnni", "fp32_512", "int8_vnni_512"},
    {"avx512bf16", "bf16_512", "int8_vnni_512"},
    {"amx", "bf16_amx", "int8_amx"},
};

}  // namespace

std::span<const PeakLoop> PeakLoops() {
  static const std::vector<PeakLoop> loops = MakeLoops();
  return loops;
}

const IsaPeaks* FindIsaPeaks(std::string_view isa) {
  for (const IsaPeaks& peaks : kIsaPeaks) {
    if (isa == peaks.isa) return &peaks;
  }
  return nullptr;
}

}  // namespace mlap::bench
