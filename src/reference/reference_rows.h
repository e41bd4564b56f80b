// The reference's steps on one row: what follows a product, and how rows are stored.
#ifndef MLAP_REFERENCE_REFERENCE_ROWS_H_
#define MLAP_REFERENCE_REFERENCE_ROWS_H_

#include <cstdint>
#include <vector>

#include "base/bf16.h"
#include "base/cache_view.h"
#include "base/element_type.h"
#include "base/numeric_rules.h"
#include "base/prolog_args.h"

namespace mlap {

using Row = std::vector<float>;

float Bf(float x);
void RoundEachToBf16(Row* row);

// Element i of an array.
double ValueAt(const void* data, ElementType type, int64_t i);
// The same, stored: to bf16 by bf(), to an 8-bit type by its saturating cast.
void Store(float value, ElementType type, void* data, int64_t i);

// The sums times the token's and the channels' scales, two roundings.
void Dequantize(Row* sums, float token_scale, const float* channel_scale, NumericRules rules);

// y_j = (x_j / sqrt(sum(x^2) * (1 / n) + epsilon)) * gamma_j, times `factor` if that is applied.
void RmsNorm(Row* x, const Bf16* gamma, float epsilon, float factor);

// `cos` and `sin` [Dr] hold one angle per output.
Row Rope(const Row& x, const Bf16* cos, const Bf16* sin, RopeStyle style);

// Dynamic quantisation of a row with one scale, which is returned: what multiplies the stored values.
float QuantizeRow(const Row& z, ElementType type, NumericRules rules, uint8_t* out);
// The same for a head's query: under kA2 it is rounded through binary16.
float QuantizeQuery(const Row& q, ElementType type, NumericRules rules, uint8_t* out);

// Microscaling: E4M3 in blocks of kMxGroup values, with an E8M0 scale each that follows the largest exponent.
void QuantizeMx(const Row& z, uint8_t* out, uint8_t* scales);

// Writes one key: c_kv [Hckv] after RMSNorm and k_r [Dr] after RoPE.
void WriteKey(const PrologArgs& args, int64_t slot, const Row& c_kv, const Row& k_r);

}  // namespace mlap

#endif  // MLAP_REFERENCE_REFERENCE_ROWS_H_
