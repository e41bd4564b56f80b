"""The four operators' functions, with torch_npu's arguments: on CPU tensors and, `*_meta`, on meta tensors."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch

from ._kernels import (
    UNDECLARED,
    as_v3,
    check_modes,
    check_mx_scales,
    check_ranks,
    modes_of_types,
    Modes,
    new_outputs,
    run,
)
from ._tensors import Tensor


def _new_v2_outputs(
    name: str, token_x: Tensor, weight_uq_qr: Tensor, weight_uk: Tensor, gamma_cq: Tensor, rope_sin: Tensor,
    rope_cos: Tensor, kv_cache: Tensor,
) -> Tuple[Modes, Any]:  # fmt: skip
    check_ranks(token_x, weight_uk, rope_sin, rope_cos)
    modes = modes_of_types(token_x, weight_uq_qr, kv_cache)
    if name == "npu_mla_prolog" and modes.weight_quant == 2:
        raise ValueError("token_x: expected bfloat16 in npu_mla_prolog, found int8; npu_mla_prolog_v2 and _v3 take it")
    return modes, new_outputs(modes, token_x, weight_uq_qr, weight_uk, gamma_cq, rope_sin, False)


def _v2(
    name: str, token_x: Tensor, weight_dq: Tensor, weight_uq_qr: Tensor, weight_uk: Tensor, weight_dkv_kr: Tensor,
    rmsnorm_gamma_cq: Tensor, rmsnorm_gamma_ckv: Tensor, rope_sin: Tensor, rope_cos: Tensor, cache_index: Tensor,
    kv_cache: Tensor, kr_cache: Tensor, *, dequant_scale_x: Optional[Tensor] = None,
    dequant_scale_w_dq: Optional[Tensor] = None, dequant_scale_w_uq_qr: Optional[Tensor] = None,
    dequant_scale_w_dkv_kr: Optional[Tensor] = None, quant_scale_ckv: Optional[Tensor] = None,
    quant_scale_ckr: Optional[Tensor] = None, smooth_scales_cq: Optional[Tensor] = None,
    rmsnorm_epsilon_cq: float = 1e-05, rmsnorm_epsilon_ckv: float = 1e-05, cache_mode: str = "PA_BSND",
) -> Any:  # fmt: skip
    modes, outputs = _new_v2_outputs(
        name, token_x, weight_uq_qr, weight_uk, rmsnorm_gamma_cq, rope_sin, rope_cos, kv_cache
    )
    if cache_mode not in ("PA_BSND", "PA_NZ"):
        raise ValueError(f"cache_mode: expected PA_BSND or PA_NZ in {name}, found {cache_mode!r}")
    if modes.kv_quant == 1 and quant_scale_ckv is not None and quant_scale_ckv.numel() > 0:
        quant_scale_ckv = quant_scale_ckv.reshape(-1)[:1]  # [1, Hckv], of which the first is used
    weights = (
        weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq, rmsnorm_gamma_ckv, dequant_scale_w_dq,
        dequant_scale_w_uq_qr, dequant_scale_w_dkv_kr, smooth_scales_cq,
    )  # fmt: skip
    run(
        modes, outputs, token_x, weights, rope_sin, rope_cos, kv_cache, kr_cache, cache_index, dequant_scale_x, None,
        quant_scale_ckv, quant_scale_ckr, None, cache_mode, (rmsnorm_epsilon_cq, rmsnorm_epsilon_ckv, 1.0, 1.0),
    )  # fmt: skip
    return outputs


def v1(*arguments: Any, **keywords: Any) -> Tuple[Tensor, ...]:
    outputs = _v2("npu_mla_prolog", *arguments, **keywords)
    return outputs.query, outputs.query_rope, arguments[10], arguments[11]


def v2(*arguments: Any, **keywords: Any) -> Tuple[Tensor, ...]:
    outputs = _v2("npu_mla_prolog_v2", *arguments, **keywords)
    scale = outputs.dequant_scale_q_nope
    if scale is None:
        scale = torch.zeros((1,), dtype=torch.float32)
    return outputs.query, outputs.query_rope, arguments[10], arguments[11], scale


def _v2_meta(name: str, arguments: Tuple[Any, ...]) -> Any:
    token_x, _, weight_uq_qr, weight_uk, _, gamma_cq, _, rope_sin, rope_cos, _, kv_cache, _ = arguments
    _, outputs = _new_v2_outputs(name, token_x, weight_uq_qr, weight_uk, gamma_cq, rope_sin, rope_cos, kv_cache)
    return outputs


def v1_meta(*arguments: Any, **_: Any) -> Tuple[Tensor, ...]:
    outputs = _v2_meta("npu_mla_prolog", arguments)
    return outputs.query, outputs.query_rope, arguments[10], arguments[11]


def v2_meta(*arguments: Any, **_: Any) -> Tuple[Tensor, ...]:
    outputs = _v2_meta("npu_mla_prolog_v2", arguments)
    scale = outputs.dequant_scale_q_nope
    if scale is None:
        scale = torch.empty((1,), dtype=torch.float32, device=arguments[0].device)
    return outputs.query, outputs.query_rope, arguments[10], arguments[11], scale


def v3(
    token_x: Tensor, weight_dq: Tensor, weight_uq_qr: Tensor, weight_uk: Tensor, weight_dkv_kr: Tensor,
    rmsnorm_gamma_cq: Tensor, rmsnorm_gamma_ckv: Tensor, rope_sin: Tensor, rope_cos: Tensor, kv_cache: Tensor,
    kr_cache: Tensor, *, cache_index: Optional[Tensor] = None, dequant_scale_x: Optional[Tensor] = None,
    dequant_scale_w_dq: Optional[Tensor] = None, dequant_scale_w_uq_qr: Optional[Tensor] = None,
    dequant_scale_w_dkv_kr: Optional[Tensor] = None, quant_scale_ckv: Optional[Tensor] = None,
    quant_scale_ckr: Optional[Tensor] = None, smooth_scales_cq: Optional[Tensor] = None,
    actual_seq_len: Optional[Tensor] = None, k_nope_clip_alpha: Optional[Tensor] = None,
    rmsnorm_epsilon_cq: float = 1e-05, rmsnorm_epsilon_ckv: float = 1e-05, cache_mode: str = "PA_BSND",
    query_norm_flag: bool = False, weight_quant_mode: int = 0, kv_cache_quant_mode: int = 0,
    query_quant_mode: int = 0, ckvkr_repo_mode: int = 0, quant_scale_repo_mode: int = 0, tile_size: int = 128,
    qc_qr_scale: float = 1.0, kc_scale: float = 1.0, token_x_dtype: Optional[int] = None,
    weight_dq_dtype: Optional[int] = None, weight_uq_qr_dtype: Optional[int] = None,
    weight_dkv_kr_dtype: Optional[int] = None, kv_cache_dtype: Optional[int] = None,
) -> Tuple[Tensor, ...]:  # fmt: skip
    modes = check_modes(
        weight_quant_mode, kv_cache_quant_mode, query_quant_mode, ckvkr_repo_mode, quant_scale_repo_mode, tile_size
    )
    check_ranks(token_x, weight_uk, rope_sin, rope_cos)
    check_mx_scales(modes, dequant_scale_x, dequant_scale_w_dq, dequant_scale_w_uq_qr, dequant_scale_w_dkv_kr)
    outputs = new_outputs(modes, token_x, weight_uq_qr, weight_uk, rmsnorm_gamma_cq, rope_sin, query_norm_flag)
    weights = (
        weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq, rmsnorm_gamma_ckv, dequant_scale_w_dq,
        dequant_scale_w_uq_qr, dequant_scale_w_dkv_kr, smooth_scales_cq,
    )  # fmt: skip
    declared_weights, declared = UNDECLARED, None  # type: Tuple[Optional[int], ...], Optional[Dict[str, Optional[int]]]
    if not token_x_dtype is weight_dq_dtype is weight_uq_qr_dtype is weight_dkv_kr_dtype is kv_cache_dtype is None:
        declared_weights = (weight_dq_dtype, weight_uq_qr_dtype, None, weight_dkv_kr_dtype) + UNDECLARED[4:]
        declared = {"token_x": token_x_dtype, "kv_cache": kv_cache_dtype}
    run(
        modes, outputs, token_x, weights, rope_sin, rope_cos, kv_cache, kr_cache, cache_index, dequant_scale_x,
        actual_seq_len, quant_scale_ckv, quant_scale_ckr, k_nope_clip_alpha, cache_mode,
        (rmsnorm_epsilon_cq, rmsnorm_epsilon_ckv, qc_qr_scale, kc_scale),
        declared_weights, declared,
    )  # fmt: skip
    return as_v3(outputs, weight_uq_qr)


def v3_meta(
    *arguments: Any, query_norm_flag: bool = False, weight_quant_mode: int = 0, kv_cache_quant_mode: int = 0,
    query_quant_mode: int = 0, ckvkr_repo_mode: int = 0, quant_scale_repo_mode: int = 0, tile_size: int = 128,
    dequant_scale_x: Optional[Tensor] = None, dequant_scale_w_dq: Optional[Tensor] = None,
    dequant_scale_w_uq_qr: Optional[Tensor] = None, dequant_scale_w_dkv_kr: Optional[Tensor] = None, **_: Any,
) -> Tuple[Tensor, ...]:  # fmt: skip
    token_x, _, weight_uq_qr, weight_uk, _, gamma_cq, _, rope_sin, rope_cos, _, _ = arguments
    modes = check_modes(
        weight_quant_mode, kv_cache_quant_mode, query_quant_mode, ckvkr_repo_mode, quant_scale_repo_mode, tile_size
    )
    check_ranks(token_x, weight_uk, rope_sin, rope_cos)
    check_mx_scales(modes, dequant_scale_x, dequant_scale_w_dq, dequant_scale_w_uq_qr, dequant_scale_w_dkv_kr)
    outputs = new_outputs(modes, token_x, weight_uq_qr, weight_uk, gamma_cq, rope_sin, query_norm_flag)
    return as_v3(outputs, weight_uq_qr)


def _dense_clone(cache: Tensor) -> Tensor:
    return cache.clone(memory_format=torch.contiguous_format)


def v3_functional(*arguments: Any, **keywords: Any) -> Tuple[Tensor, ...]:
    kv_cache, kr_cache = _dense_clone(arguments[9]), _dense_clone(arguments[10])
    return (*v3(*arguments[:9], kv_cache, kr_cache, **keywords), kv_cache, kr_cache)


def v3_functional_meta(*arguments: Any, **keywords: Any) -> Tuple[Tensor, ...]:
    outputs = v3_meta(*arguments, **keywords)
    # Not clones of meta tensors: those would keep the gaps of a strided cache.
    caches = tuple(torch.empty(cache.shape, dtype=cache.dtype, device=cache.device) for cache in arguments[9:11])
    return (*outputs, *caches)


# name: (on CPU tensors, on meta tensors)
IMPLEMENTATIONS = {
    "npu_mla_prolog": (v1, v1_meta),
    "npu_mla_prolog_v2": (v2, v2_meta),
    "npu_mla_prolog_v3": (v3, v3_meta),
    "npu_mla_prolog_v3_functional": (v3_functional, v3_functional_meta),
}
