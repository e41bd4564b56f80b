#include "api/refusal_advice.h"

namespace mlap {
namespace {

// The tensors of weights, calls and results in the operator's symbols.
struct TensorForm {
  std::string_view name;
  const char* form;
};
constexpr TensorForm kForms[] = {
    {"weight_dq", "(He, Hcq), BF16 or the type of quantised weights"},
    {"weight_uq_qr",
     "(Hcq, N * (D + Dr)), or (He, N * (D + Dr)) without weight_dq, BF16 or the type of quantised weights"},
    {"weight_uk", "(N, D, Hckv), BF16"},
    {"weight_dkv_kr", "(He, Hckv + Dr), BF16 or the type of quantised weights"},
    {"rmsnorm_gamma_cq", "(Hcq), BF16, and with it weight_dq"},
    {"rmsnorm_gamma_ckv", "(Hckv), BF16"},
    {"dequant_scale_w_dq", "(Hcq) or (1, Hcq), FLOAT32; for MXFP8 (Hcq, He / 32), FLOAT8_E8M0"},
    {"dequant_scale_w_uq_qr",
     "(N * (D + Dr)) or (1, N * (D + Dr)), FLOAT32; for MXFP8 (N * (D + Dr), Hcq / 32), FLOAT8_E8M0"},
    {"dequant_scale_w_dkv_kr", "(Hckv + Dr) or (1, Hckv + Dr), FLOAT32; for MXFP8 (Hckv + Dr, He / 32), FLOAT8_E8M0"},
    {"smooth_scales_cq", "(Hcq) or (1, Hcq), FLOAT32, or none"},
    {"token_x", "(T, He) or (B, S, He), BF16 or the type of fully quantised weights"},
    {"dequant_scale_x", "(T) or (T, 1), FLOAT32, with T = B * S; for MXFP8 (T, He / 32), FLOAT8_E8M0"},
    {"rope_sin", "(T, Dr) or (B, S, Dr) as the tokens, BF16"},
    {"rope_cos", "(T, Dr) or (B, S, Dr) as the tokens, BF16"},
    {"kv_cache",
     "(BlockNum, BlockSize, 1, Hckv), (B, S, 1, Hckv) with MLAP_BSND, (T, 1, Hckv) with MLAP_TND, BF16 or the "
     "quantised "
     "type; with MLAP_KV_PER_GROUP rows of the bytes of values, rope and scales in place of Hckv"},
    {"kr_cache", "the shape of kv_cache with Dr in place of Hckv, BF16, or INT8 with MLAP_KV_PER_CHANNEL"},
    {"cache_index",
     "(T) or (B, S) as the tokens, INT64; with MLAP_PA_BLK_BSND and MLAP_PA_BLK_NZ (B, ceil(S / BlockSize)), or the "
     "pages of all sequences in a row"},
    {"actual_seq_len", "(B), INT32: where each sequence of token_x (T, He) ends"},
    {"quant_scale_ckv", "(Hckv) or (1, Hckv) with MLAP_KV_PER_CHANNEL, (1) with MLAP_KV_PER_TENSOR, FLOAT32"},
    {"quant_scale_ckr", "(Dr) or (1, Dr), FLOAT32"},
    {"k_nope_clip_alpha", "(1), FLOAT32"},
    {"query", "(T, N, Hckv) or (B, S, N, Hckv) as the tokens, BF16, or the type of token_x where it is quantised"},
    {"query_rope", "(T, N, Dr) or (B, S, N, Dr) as the tokens, BF16"},
    {"dequant_scale_q_nope", "(T, N) or (T, N, 1), FLOAT32, with T = B * S"},
    {"query_norm", "(T, Hcq) or (B, S, Hcq) as the tokens, the type of weight_uq_qr, or none"},
    {"dequant_scale_q_norm", "(T) or (T, 1), FLOAT32; for MXFP8 (T, Hcq / 32), FLOAT8_E8M0"},
    {"intermediates.c_q", "(T, Hcq), FLOAT32, or none"},
    {"intermediates.c_q_quantized", "(T, Hcq), the type of weight_uq_qr, or none"},
    {"intermediates.c_q_scale", "(T), FLOAT32, or none"},
    {"intermediates.q_c", "(T, N, D), FLOAT32, or none"},
    {"intermediates.q_r", "(T, N, Dr), FLOAT32, or none"},
    {"intermediates.c_kv", "(T, Hckv), FLOAT32, or none"},
    {"intermediates.k_r", "(T, Dr), FLOAT32, or none"},
    {"results.query", "(T, N, Hckv), FLOAT64, or none"},
    {"results.query_rope", "(T, N, Dr), FLOAT64, or none"},
    {"results.c_kv", "(T, Hckv), FLOAT64, or none"},
    {"results.k_r", "(T, Dr), FLOAT64, or none"},
    {"kv_b_proj", "(N * (D + Dv), Hckv) as in the checkpoint, a type of 1 or 2 bytes"},
    {"weight_uv", "(N, Hckv, Dv), the type of kv_b_proj"},
    {"positions", "the tokens' positions, INT32 or INT64"},
    {"matrix", "(k, n) with MLAP_ROW_MAJOR, or (n, k) with MLAP_OUT_IN"},
    {"nz", "MLAP_FRACTAL_NZ with the dimensions of mlap_nz_dims, the type of matrix"},
    {"values", "(..., Hckv) of the rows, their type"},
    {"rope", "(..., Dr) of the rows, BF16"},
    {"scales", "(..., ceil(Hckv / 128)) of the rows, FLOAT32"},
};

}  // namespace

std::string AdviceFor(std::string_view name) {
  for (const TensorForm& row : kForms) {
    if (row.name == name) return std::string("pass ") + row.form;
  }
  return "mlaprolog.h describes " + std::string(name);
}

}  // namespace mlap
