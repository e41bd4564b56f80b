"""The calls of plain_layer as calls of torch_npu's operators."""

import numpy as np
import torch
from plain_layer import BF16, E4M3, E8M0, EPSILON_CKV, EPSILON_CQ, Call

import mlaprolog
import mlaprolog.torch

HAS_E4M3 = hasattr(torch, "float8_e4m3fn")  # since torch 2.1
HAS_E8M0 = hasattr(torch, "float8_e8m0fnu")  # since torch 2.7
WEIGHT_MODES = {"bf16": 0, "uq_qr_int8": 1, "int8": 2, "mxfp8": 3, "fp8": 4, "hifloat8": 5}
KV_MODES = {"bf16": 0, "per_tensor": 1, "per_channel": 2, "per_group": 3}

_BIT_VIEWS = {np.dtype(BF16): (np.int16, torch.bfloat16)}
if HAS_E4M3:
    _BIT_VIEWS[np.dtype(E4M3)] = (np.uint8, torch.float8_e4m3fn)
if HAS_E8M0:
    _BIT_VIEWS[np.dtype(E8M0)] = (np.uint8, torch.float8_e8m0fnu)


def is_known(weights):
    """Whether this torch has the types of the scenario."""
    return {"fp8": HAS_E4M3, "mxfp8": HAS_E4M3 and HAS_E8M0}.get(weights, True)


def to_torch(array):
    if array is None:
        return None
    if isinstance(array, mlaprolog.TypedArray):
        array = array.array
    if array.dtype in _BIT_VIEWS:
        bits, dtype = _BIT_VIEWS[array.dtype]
        return torch.from_numpy(np.ascontiguousarray(array).view(bits).copy()).view(dtype)
    return torch.from_numpy(array.copy())


def bytes_of(tensor):
    return tensor.detach().contiguous().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


class TorchCall:
    """Positional arguments before the caches, the caches, and keywords of npu_mla_prolog_v3."""

    def __init__(self, *case, **options):
        self.call = call = Call(*case, **options)
        self.case = case
        layer = call.layer
        self.arguments = tuple(to_torch(array) for array in (
            call.token_x, layer["weight_dq"].array, layer["weight_uq_qr"].array, call.weight_uk,
            layer["weight_dkv_kr"].array, call.gamma_cq, call.gamma_ckv, call.sin, call.cos,
        ))  # fmt: skip
        is_per_group = call.key == "per_group"
        self.kv_cache = to_torch(call.kv_cache)
        self.kr_cache = torch.empty(0, dtype=torch.bfloat16) if is_per_group else to_torch(call.kr_cache)
        self.keywords = {
            "cache_index": to_torch(call.cache_index), "dequant_scale_x": to_torch(call.scale_x),
            "dequant_scale_w_dq": to_torch(layer["weight_dq"].scale),
            "dequant_scale_w_uq_qr": to_torch(layer["weight_uq_qr"].scale),
            "dequant_scale_w_dkv_kr": to_torch(layer["weight_dkv_kr"].scale),
            "quant_scale_ckv": to_torch(call.quant_scale_ckv), "quant_scale_ckr": to_torch(call.quant_scale_ckr),
            "actual_seq_len": to_torch(call.actual_seq_len), "k_nope_clip_alpha": to_torch(call.alpha),
            "rmsnorm_epsilon_cq": EPSILON_CQ, "rmsnorm_epsilon_ckv": EPSILON_CKV, "cache_mode": call.mode,
            "weight_quant_mode": WEIGHT_MODES[call.weights_kind], "kv_cache_quant_mode": KV_MODES[call.key],
            "query_quant_mode": int(call.key == "per_tensor"), "ckvkr_repo_mode": int(is_per_group),
            "quant_scale_repo_mode": int(is_per_group), "qc_qr_scale": 1.5, "kc_scale": 0.75,
        }  # fmt: skip
        if call.weights_kind == "hifloat8":
            hifloat8 = mlaprolog.torch.hifloat8
            names = ("token_x_dtype", "weight_dq_dtype", "weight_uq_qr_dtype", "weight_dkv_kr_dtype")
            self.keywords.update(dict.fromkeys(names, hifloat8))
            if call.key != "bf16":
                self.keywords["kv_cache_dtype"] = hifloat8

    def caches(self):
        return self.kv_cache, self.kr_cache

    def v3(self, **changes):
        return torch.ops.npu.npu_mla_prolog_v3(*self.arguments, *self.caches(), **{**self.keywords, **changes})

    def v3_functional(self, **changes):
        function = torch.ops.npu.npu_mla_prolog_v3_functional
        return function(*self.arguments, *self.caches(), **{**self.keywords, **changes})

    def v2_keywords(self):
        names = (
            "dequant_scale_x", "dequant_scale_w_dq", "dequant_scale_w_uq_qr", "dequant_scale_w_dkv_kr",
            "quant_scale_ckv", "quant_scale_ckr", "rmsnorm_epsilon_cq", "rmsnorm_epsilon_ckv", "cache_mode",
        )  # fmt: skip
        return {name: self.keywords[name] for name in names}

    def v2(self, function, **changes):
        return function(
            *self.arguments, self.keywords["cache_index"], *self.caches(), **{**self.v2_keywords(), **changes}
        )


def numpy_results(case, **options):
    """The same call through NumPy: results by name, and the caches."""
    call = Call(*case)
    arguments, keywords = call.arguments()
    result = mlaprolog.prolog(call.weights(), *arguments, **{**keywords, **options})
    return result, call.kv_cache, call.kr_cache
