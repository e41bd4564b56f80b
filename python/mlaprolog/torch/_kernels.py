"""The operators on CPU tensors and on meta tensors."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch

from .. import _names
from .._context import run_in_default
from .._native import RUN_TENSORS
from . import _weights_cache
from ._tensors import CODES, Tensor, code_of, describe

# Tells torch that a tensor has been written; since torch 2.0.
_increment_version = getattr(torch.autograd.graph, "increment_version", None)
UNDECLARED: Tuple[Optional[int], ...] = (None,) * len(_weights_cache.NAMES)

_E8M0 = getattr(torch, "float8_e8m0fnu", None)
_RULES_A2, _RULES_950 = _names.RULES["a2"], _names.RULES["950"]
# As for the C operators; what only the 950 has follows the 950.
_RULES = _RULES_950 if os.environ.get("MLAP_SOC") == "ascend950" else _RULES_A2

# weight_quant_mode -> legal kv_cache_quant_mode
_KV_MODES = {0: (0,), 1: (0, 2, 3), 2: (0, 1, 3), 3: (0, 1, 3), 4: (0, 1, 3), 5: (0, 1, 3)}


class Modes(NamedTuple):
    weight_quant: int
    kv_quant: int


_NOT_QUANTISED = Modes(0, 0)


def check_ranks(token_x: Tensor, weight_uk: Tensor, rope_sin: Tensor, rope_cos: Tensor) -> None:
    rank = token_x.dim()
    if rank not in (2, 3):
        raise ValueError(f"token_x: expected [T, He] or [B, S, He], found {list(token_x.shape)}")
    if weight_uk.dim() != 3:
        raise ValueError(f"weight_uk: expected [N, D, Hckv], found {list(weight_uk.shape)}")
    for name, table in (("rope_sin", rope_sin), ("rope_cos", rope_cos)):
        if table.dim() != rank:
            raise ValueError(f"{name}: expected {rank} dimensions as token_x, found {list(table.shape)}")


def check_modes(
    weight_quant_mode: int,
    kv_cache_quant_mode: int,
    query_quant_mode: int,
    ckvkr_repo_mode: int,
    quant_scale_repo_mode: int,
    tile_size: int,
) -> Modes:
    if (
        weight_quant_mode
        == kv_cache_quant_mode
        == query_quant_mode
        == ckvkr_repo_mode
        == quant_scale_repo_mode
        == 0
        == tile_size - 128
    ):
        return _NOT_QUANTISED
    kv_modes = _KV_MODES.get(weight_quant_mode)
    if kv_modes is None:
        raise ValueError(f"weight_quant_mode: expected 0 to 5, found {weight_quant_mode}")
    if kv_cache_quant_mode not in kv_modes:
        raise ValueError(f"kv_cache_quant_mode: expected one of {kv_modes} with weight_quant_mode {weight_quant_mode}, "
                         f"found {kv_cache_quant_mode}")  # fmt: skip
    per_tensor, per_group = int(kv_cache_quant_mode == 1), int(kv_cache_quant_mode == 3)
    for name, value, expected in (
        ("query_quant_mode", query_quant_mode, per_tensor),
        ("ckvkr_repo_mode", ckvkr_repo_mode, per_group),
        ("quant_scale_repo_mode", quant_scale_repo_mode, per_group),
    ):
        if value != expected:
            raise ValueError(f"{name}: expected {expected} with kv_cache_quant_mode {kv_cache_quant_mode}, found {value}")
    if tile_size != 128:
        raise ValueError(f"tile_size: expected 128, found {tile_size}")
    return Modes(weight_quant_mode, kv_cache_quant_mode)


def modes_of_types(token_x: Tensor, weight_uq_qr: Tensor, kv_cache: Tensor) -> Modes:
    """v1 and v2 have no mode arguments: the tensors' types tell."""
    has_int8_cache = kv_cache.dtype == torch.int8
    if token_x.dtype == torch.int8:
        return Modes(2, 1 if has_int8_cache else 0)
    if weight_uq_qr.dtype == torch.int8:
        return Modes(1, 2 if has_int8_cache else 0)
    return Modes(0, 0)


class Outputs(NamedTuple):
    query: Tensor
    query_rope: Tensor
    dequant_scale_q_nope: Optional[Tensor]
    query_norm: Optional[Tensor]
    dequant_scale_q_norm: Optional[Tensor]


def new_outputs(
    modes: Modes, token_x: Tensor, weight_uq_qr: Tensor, weight_uk: Tensor, gamma_cq: Tensor, rope_sin: Tensor,
    query_norm_flag: bool,
) -> Outputs:  # fmt: skip
    """The outputs that the call has; on the meta device as well."""
    lead = token_x.shape[:-1]
    heads, _, kv_rank = weight_uk.shape
    device = token_x.device
    is_per_tensor = modes.kv_quant == 1
    query_type = token_x.dtype if is_per_tensor else torch.bfloat16
    query = torch.empty((*lead, heads, kv_rank), dtype=query_type, device=device)
    query_rope = torch.empty((*lead, heads, rope_sin.shape[-1]), dtype=torch.bfloat16, device=device)
    scale_q_nope = query_norm = scale_q_norm = None
    if is_per_tensor or query_norm_flag:
        tokens = lead[0] if len(lead) == 1 else lead[0] * lead[1]
        if is_per_tensor:
            scale_q_nope = torch.empty((tokens, heads, 1), dtype=torch.float32, device=device)
        if query_norm_flag:
            q_rank = gamma_cq.shape[0]
            query_norm = torch.empty((*lead, q_rank), dtype=weight_uq_qr.dtype, device=device)
            if modes.weight_quant == 3:
                scale_q_norm = torch.empty((tokens, q_rank // 32), dtype=_E8M0, device=device)
            elif modes.weight_quant != 0:
                scale_q_norm = torch.empty((tokens, 1), dtype=torch.float32, device=device)
    return Outputs(query, query_rope, scale_q_nope, query_norm, scale_q_norm)


# Copying an empty tensor is cheaper than making one.
_EMPTY: Dict[torch.dtype, Tensor] = {}


def _empty(dtype: torch.dtype, device: torch.device) -> Tensor:
    if device.type != "cpu":
        return torch.empty((0,), dtype=dtype, device=device)
    like = _EMPTY.get(dtype)
    if like is None:
        like = _EMPTY[dtype] = torch.empty((0,), dtype=dtype)
    return torch.empty_like(like)


def as_v3(outputs: Outputs, weight_uq_qr: Tensor) -> Tuple[Tensor, ...]:
    """Absent outputs are empty tensors."""
    query, query_rope, scale_q_nope, query_norm, scale_q_norm = outputs
    device = query.device
    if scale_q_nope is None:
        scale_q_nope = _empty(torch.float32, device)
    if query_norm is None:
        query_norm = _empty(weight_uq_qr.dtype, device)
    if scale_q_norm is None:
        scale_q_norm = _empty(torch.float32, device)
    return query, query_rope, scale_q_nope, query_norm, scale_q_norm


def check_mx_scales(modes: Modes, *scales: Optional[Tensor]) -> None:
    if modes.weight_quant != 3:
        return
    if _E8M0 is None:
        raise NotImplementedError(f"weight_quant_mode 3: expected torch 2.7 or newer, which has torch.float8_e8m0fnu, "
                                  f"found {torch.__version__}")  # fmt: skip
    for scale in scales:
        if scale is None or scale.dtype != _E8M0:
            found = "None" if scale is None else str(scale.dtype)
            raise ValueError(f"dequant_scale_x, dequant_scale_w_*: expected torch.float8_e8m0fnu with "
                             f"weight_quant_mode 3, found {found}")  # fmt: skip


def run(
    modes: Modes, outputs: Outputs, token_x: Tensor, weights: Tuple[Optional[Tensor], ...], rope_sin: Tensor,
    rope_cos: Tensor, kv_cache: Tensor, kr_cache: Optional[Tensor], cache_index: Optional[Tensor],
    dequant_scale_x: Optional[Tensor], actual_seq_len: Optional[Tensor], quant_scale_ckv: Optional[Tensor],
    quant_scale_ckr: Optional[Tensor], k_nope_clip_alpha: Optional[Tensor], cache_mode: str,
    numbers: Tuple[float, float, float, float], declared_weights: Tuple[Optional[int], ...] = UNDECLARED,
    declared: Optional[Dict[str, Optional[int]]] = None,
) -> None:  # fmt: skip
    mode = _names.CACHE_MODES.get(cache_mode)
    if mode is None:
        raise ValueError(f"cache_mode: expected one of {', '.join(_names.CACHE_MODES)}, found {cache_mode!r}")
    entry = _weights_cache.find(weights, declared_weights, token_x.shape[-1], rope_sin.shape[-1])
    weight_quant = entry.facts[1]
    if weight_quant != modes.weight_quant:
        raise ValueError(f"weight_quant_mode: expected {weight_quant} with weights of these types, "
                         f"found {modes.weight_quant}")  # fmt: skip
    if modes.kv_quant == 3 and kr_cache is not None and kr_cache.numel() == 0:
        kr_cache = None

    kept: List[Tensor] = []
    described: List[Any] = []
    inputs = (
        token_x, dequant_scale_x, rope_sin, rope_cos, kv_cache, kr_cache, cache_index, actual_seq_len, quant_scale_ckv,
        quant_scale_ckr, k_nope_clip_alpha,
    )  # fmt: skip
    for tensor in inputs:
        if tensor is None:
            described.append(None)
            continue
        code = CODES.get(tensor.dtype)
        if code is None or declared is not None:
            name = RUN_TENSORS[len(described)]
            code = code_of(name, tensor, None if declared is None else declared.get(name))
        if tensor.is_contiguous():
            described.append((tensor.data_ptr(), code, 0, tensor.shape))
        else:
            described.append(describe(tensor, code, 0, kept))
    for tensor in outputs:
        if tensor is None:
            described.append(None)
        else:  # the only uint8 ones are HiFloat8
            described.append((tensor.data_ptr(), CODES.get(tensor.dtype, _names.HIFLOAT8), 0, tensor.shape))
    rules = _RULES_950 if weight_quant >= 3 else _RULES
    run_in_default(entry.native, tuple(described), (mode, modes.kv_quant, 0, rules), numbers)
    if _increment_version is not None:
        _increment_version(kv_cache)
        if kr_cache is not None:
            _increment_version(kr_cache)
