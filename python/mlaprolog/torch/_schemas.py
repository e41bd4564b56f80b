"""The operators' schemas, word for word those of torch_npu."""

_WEIGHTS = (
    "Tensor token_x, Tensor weight_dq, Tensor weight_uq_qr, Tensor weight_uk, Tensor weight_dkv_kr, "
    "Tensor rmsnorm_gamma_cq, Tensor rmsnorm_gamma_ckv, Tensor rope_sin, Tensor rope_cos"
)
_SCALES = (
    "Tensor? dequant_scale_x=None, Tensor? dequant_scale_w_dq=None, Tensor? dequant_scale_w_uq_qr=None, "
    "Tensor? dequant_scale_w_dkv_kr=None, Tensor? quant_scale_ckv=None, Tensor? quant_scale_ckr=None, "
    "Tensor? smooth_scales_cq=None"
)
_NUMBERS = 'float rmsnorm_epsilon_cq=1e-05, float rmsnorm_epsilon_ckv=1e-05, str cache_mode="PA_BSND"'

# v1 and v2 write the caches without saying so in the schema.
_V2 = f"({_WEIGHTS}, Tensor cache_index, Tensor kv_cache, Tensor kr_cache, *, {_SCALES}, {_NUMBERS})"

_V3_KEYWORDS = (
    f"Tensor? cache_index=None, {_SCALES}, Tensor? actual_seq_len=None, Tensor? k_nope_clip_alpha=None, {_NUMBERS}, "
    "bool query_norm_flag=False, int weight_quant_mode=0, int kv_cache_quant_mode=0, int query_quant_mode=0, "
    "int ckvkr_repo_mode=0, int quant_scale_repo_mode=0, int tile_size=128, float qc_qr_scale=1.0, "
    "float kc_scale=1.0, int? token_x_dtype=None, int? weight_dq_dtype=None, int? weight_uq_qr_dtype=None, "
    "int? weight_dkv_kr_dtype=None, int? kv_cache_dtype=None"
)


def _returns(count: int) -> str:
    return "(" + ", ".join(["Tensor"] * count) + ")"


SCHEMAS = {
    "npu_mla_prolog": f"npu_mla_prolog{_V2} -> {_returns(4)}",
    "npu_mla_prolog_v2": f"npu_mla_prolog_v2{_V2} -> {_returns(5)}",
    "npu_mla_prolog_v3": f"npu_mla_prolog_v3({_WEIGHTS}, Tensor(a!) kv_cache, Tensor(b!) kr_cache, *, {_V3_KEYWORDS})"
    f" -> {_returns(5)}",
    "npu_mla_prolog_v3_functional": f"npu_mla_prolog_v3_functional({_WEIGHTS}, Tensor kv_cache, Tensor kr_cache, *, "
    f"{_V3_KEYWORDS}) -> {_returns(7)}",
}

# Those whose schema tells all they do, as torch.compile wants it.
FAITHFUL = ("npu_mla_prolog_v3", "npu_mla_prolog_v3_functional")
