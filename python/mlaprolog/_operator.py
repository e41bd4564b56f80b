"""The operator: fast, by its definition, and without rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple, TypedDict, Union

import numpy as np

from . import _names, _native
from ._arrays import Array, Descriptor, TypedArray, describe, dtype_code, is_raw_bf16, numpy_dtype
from ._context import Context, run_in_default
from ._weights import Weights

if TYPE_CHECKING:
    from typing_extensions import Unpack


class PrologResult(NamedTuple):
    """What a call gives beside the rows it writes into the caches. lead = (T,) or (B, S)."""

    query: np.ndarray  # [lead, N, Hckv]
    query_rope: np.ndarray  # [lead, N, Dr]
    dequant_scale_q_nope: Optional[np.ndarray] = None  # float32 [T, N, 1], "per_tensor" only
    query_norm: Optional[np.ndarray] = None  # [lead, Hcq], if asked for
    dequant_scale_q_norm: Optional[np.ndarray] = None  # float32 [T, 1] or E8M0 [T, Hcq / 32], with 8-bit query_norm


class ExactResult(NamedTuple):
    """The operator's formula in binary64."""

    query: np.ndarray  # [T, N, Hckv]
    query_rope: np.ndarray  # [T, N, Dr]
    c_kv: np.ndarray  # [T, Hckv], what goes to kv_cache
    k_r: np.ndarray  # [T, Dr], what goes to kr_cache


class CallArguments(TypedDict, total=False):
    """The keywords of a call; `prolog` says what they mean."""

    dequant_scale_x: Optional[Array]
    actual_seq_len: Optional[Array]
    quant_scale_ckv: Optional[Array]
    quant_scale_ckr: Optional[Array]
    k_nope_clip_alpha: Optional[Array]
    cache_mode: Union[str, int]
    kv_quant: Union[str, int]
    rope_style: Union[str, int]
    rules: Union[str, int]
    rmsnorm_epsilon_cq: float
    rmsnorm_epsilon_ckv: float
    qc_qr_scale: float
    kc_scale: float


_INPUTS = (
    "token_x", "dequant_scale_x", "rope_sin", "rope_cos", "cache_index", "actual_seq_len", "quant_scale_ckv",
    "quant_scale_ckr", "k_nope_clip_alpha",
)  # fmt: skip
_CACHES = ("kv_cache", "kr_cache")
_OUTPUTS = PrologResult._fields
_INPUT_PLACES = tuple((name, _native.RUN_TENSORS.index(name)) for name in _INPUTS)
_CACHE_PLACES = tuple((name, _native.RUN_TENSORS.index(name)) for name in _CACHES)
_OUTPUT_PLACES = tuple((name, _native.RUN_TENSORS.index(name)) for name in _OUTPUTS)


class _Call:
    """One call's arguments in the C interface's order, and the arrays whose memory they name."""

    def __init__(
        self,
        weights: Weights,
        token_x: Array,
        inputs: Dict[str, Optional[Array]],
        caches: Dict[str, Optional[Array]],
        cache_mode: Union[str, int],
        kv_quant: Union[str, int],
        rope_style: Union[str, int],
        rules: Union[str, int],
        numbers: Tuple[float, float, float, float],
    ) -> None:
        if not isinstance(weights, Weights):
            raise TypeError(f"weights: expected mlaprolog.Weights, found {type(weights).__name__}")
        self.weights = weights
        self.inputs = inputs
        self.caches = caches
        self.kv_quant = _names.code_of("kv_quant", _names.KV_QUANTS, kv_quant)
        self.modes = (
            _names.code_of("cache_mode", _names.CACHE_MODES, cache_mode),
            self.kv_quant,
            _names.code_of("rope_style", _names.ROPE_STYLES, rope_style),
            _names.code_of("rules", _names.RULES, rules),
        )
        self.numbers = tuple(float(number) for number in numbers)
        tensors: List[Descriptor] = [None] * len(_native.RUN_TENSORS)
        for name, place in _INPUT_PLACES:
            tensors[place] = describe(name, inputs[name])
        for name, place in _CACHE_PLACES:
            tensors[place] = describe(name, caches[name], written=True)
        self.tensors = tensors
        x = self.token_x = token_x
        self.lead = (x.array if isinstance(x, TypedArray) else x).shape[:-1]
        self.tokens = int(np.prod(self.lead, dtype=np.int64))

    def new_outputs(self, with_query_norm: bool) -> PrologResult:
        dims = self.weights.dims
        eight_bit = _names.WEIGHT_DTYPES[self.weights.facts[1]]
        # bf16 comes back as it came in: raw, or as ml_dtypes has it.
        witness = self.inputs["rope_sin"]
        if witness is None and dtype_code("token_x", self.token_x) == _names.BF16:
            witness = self.token_x
        raw = is_raw_bf16(witness)
        per_tensor = self.kv_quant == _names.KV_PER_TENSOR

        def new(code: int, shape: Tuple[int, ...]) -> np.ndarray:
            return np.empty(shape, numpy_dtype(code, raw))

        query_norm = scale_q_norm = None
        if with_query_norm:
            query_norm = new(eight_bit, self.lead + (dims.q_rank,))
            if self.weights.weight_quant == "mxfp8":
                scale_q_norm = new(_names.FLOAT8_E8M0, (self.tokens, dims.q_rank // 32))
            elif eight_bit != _names.BF16:
                scale_q_norm = new(_names.FLOAT32, (self.tokens, 1))
        return PrologResult(
            new(eight_bit if per_tensor else _names.BF16, self.lead + (dims.heads, dims.kv_rank)),
            new(_names.BF16, self.lead + (dims.heads, dims.rope)),
            new(_names.FLOAT32, (self.tokens, dims.heads, 1)) if per_tensor else None,
            query_norm,
            scale_q_norm,
        )

    def bind_outputs(self, outputs: PrologResult) -> tuple:
        eight_bit = _names.WEIGHT_DTYPES[self.weights.facts[1]]
        tensors = list(self.tensors)
        for name, place in _OUTPUT_PLACES:
            output = getattr(outputs, name)
            if isinstance(output, np.ndarray) and output.dtype == np.uint8:
                # Results whose format NumPy lacks have the one format they can have.
                is_scale = name == "dequant_scale_q_norm"
                output = TypedArray(output, "float8_e8m0fnu" if is_scale else _RAW_NAMES.get(eight_bit, "hifloat8"))
            tensors[place] = describe(name, output, written=True)
        return tuple(tensors)


_RAW_NAMES = {_names.FLOAT8_E4M3: "float8_e4m3fn", _names.HIFLOAT8: "hifloat8"}


def _make_call(
    weights: Weights,
    token_x: Array,
    rope_sin: Optional[Array],
    rope_cos: Optional[Array],
    kv_cache: Optional[Array],
    kr_cache: Optional[Array],
    cache_index: Optional[Array],
    dequant_scale_x: Optional[Array] = None,
    actual_seq_len: Optional[Array] = None,
    quant_scale_ckv: Optional[Array] = None,
    quant_scale_ckr: Optional[Array] = None,
    k_nope_clip_alpha: Optional[Array] = None,
    cache_mode: Union[str, int] = "PA_BSND",
    kv_quant: Union[str, int] = "bf16",
    rope_style: Union[str, int] = "interleaved_to_half",
    rules: Union[str, int] = "a2",
    rmsnorm_epsilon_cq: float = 1e-5,
    rmsnorm_epsilon_ckv: float = 1e-5,
    qc_qr_scale: float = 1.0,
    kc_scale: float = 1.0,
) -> _Call:
    inputs = {
        "token_x": token_x,
        "dequant_scale_x": dequant_scale_x,
        "rope_sin": rope_sin,
        "rope_cos": rope_cos,
        "cache_index": cache_index,
        "actual_seq_len": actual_seq_len,
        "quant_scale_ckv": quant_scale_ckv,
        "quant_scale_ckr": quant_scale_ckr,
        "k_nope_clip_alpha": k_nope_clip_alpha,
    }
    caches = {"kv_cache": kv_cache, "kr_cache": kr_cache}
    numbers = (rmsnorm_epsilon_cq, rmsnorm_epsilon_ckv, qc_qr_scale, kc_scale)
    if token_x is None:
        raise TypeError("token_x: expected a numpy.ndarray, found None")
    return _Call(weights, token_x, inputs, caches, cache_mode, kv_quant, rope_style, rules, numbers)


def _outputs(call: _Call, out: Optional[PrologResult], query_norm: bool) -> PrologResult:
    if out is None:
        return call.new_outputs(query_norm)
    if not isinstance(out, PrologResult):
        raise TypeError(f"out: expected a mlaprolog.PrologResult, found {type(out).__name__}")
    return out


def prolog(
    weights: Weights,
    token_x: Array,
    rope_sin: Optional[Array],
    rope_cos: Optional[Array],
    kv_cache: Array,
    kr_cache: Optional[Array],
    cache_index: Optional[Array] = None,
    *,
    query_norm: bool = False,
    out: Optional[PrologResult] = None,
    context: Optional[Context] = None,
    **arguments: Unpack[CallArguments],
) -> PrologResult:
    """Runs the operator: returns the queries, and writes the addressed rows of the two caches in place.

    token_x: [T, He] or [B, S, He]; lead = (T,) or (B, S). bf16, or 8-bit with fully quantised weights.
    rope_sin, rope_cos: bf16 [lead, Dr]; `rope_table` makes them. None with rope_style "none".
    kv_cache, kr_cache: [BlockNum, BlockSize, 1, Hckv] and [BlockNum, BlockSize, 1, Dr]; see cache_mode.
    cache_index: int64 [lead], a slot for each token; a negative one writes no row, of equal ones the last wins.

    Keywords:
    dequant_scale_x: float32 [T] or [T, 1], or E8M0 [T, He / 32], with 8-bit token_x.
    cache_mode: "PA_BSND", "PA_NZ" (slots), "PA_BLK_BSND", "PA_BLK_NZ" (cache_index [B, pages] lists pages; with
        token_x [T, He] also actual_seq_len int32 [B]), "BSND", "TND" (no cache_index).
    kv_quant: "bf16"; "per_tensor" (quant_scale_ckv [1]); "per_channel" (quant_scale_ckv [Hckv], quant_scale_ckr [Dr]);
        "per_group" (rows of bytes, kr_cache None, with int8 k_nope_clip_alpha [1]). All scales float32.
    rope_style: "interleaved_to_half" (the operator's), "half", "interleaved", "none".
    rules: the device generation whose roundings are followed, "a2" or "950".
    rmsnorm_epsilon_cq, rmsnorm_epsilon_ckv: 1e-5. qc_qr_scale, kc_scale: factors after the norms, 1.
    query_norm: also return cQ as it enters W_UQ|QR.
    out: arrays to write instead of new ones. context: None takes turns in `default_context()`.

    Raises ValueError or TypeError for what does not fit, CacheIndexError for an index beyond the cache. Nothing has been
    written then. A token's results depend neither on the other tokens nor on the number of threads.
    """
    call = _make_call(weights, token_x, rope_sin, rope_cos, kv_cache, kr_cache, cache_index, **arguments)
    outputs = _outputs(call, out, query_norm)
    tensors = call.bind_outputs(outputs)
    if context is None:
        run_in_default(weights.native, tensors, call.modes, call.numbers)
    elif isinstance(context, Context):
        _native.run(context.native, weights.native, tensors, call.modes, call.numbers)
    else:
        raise TypeError(f"context: expected a mlaprolog.Context, found {type(context).__name__}")
    return outputs


def _new_intermediates(call: _Call) -> Dict[str, np.ndarray]:
    dims, tokens = call.weights.dims, call.tokens
    eight_bit = _names.WEIGHT_DTYPES[call.weights.facts[1]]
    shapes: Dict[str, Tuple[int, Tuple[int, ...]]] = {
        "q_c": (_names.FLOAT32, (tokens, dims.heads, dims.nope)),
        "q_r": (_names.FLOAT32, (tokens, dims.heads, dims.rope)),
        "c_kv": (_names.FLOAT32, (tokens, dims.kv_rank)),
        "k_r": (_names.FLOAT32, (tokens, dims.rope)),
    }
    if dims.q_rank:
        shapes["c_q"] = (_names.FLOAT32, (tokens, dims.q_rank))
        if eight_bit != _names.BF16:
            shapes["c_q_quantized"] = (eight_bit, (tokens, dims.q_rank))
            if call.weights.weight_quant != "mxfp8":
                shapes["c_q_scale"] = (_names.FLOAT32, (tokens,))
    return {name: np.empty(shape, numpy_dtype(code)) for name, (code, shape) in shapes.items()}


def reference(
    weights: Weights,
    token_x: Array,
    rope_sin: Optional[Array],
    rope_cos: Optional[Array],
    kv_cache: Array,
    kr_cache: Optional[Array],
    cache_index: Optional[Array] = None,
    *,
    query_norm: bool = False,
    out: Optional[PrologResult] = None,
    **arguments: Unpack[CallArguments],
) -> Tuple[PrologResult, Dict[str, np.ndarray]]:
    """The operator's definition in plain code, single-threaded and slow: takes and writes what `prolog` does.

    Returns its result, and what it computes on the way: c_q [T, Hcq], c_q_quantized, c_q_scale [T], q_c [T, N, D],
    q_r [T, N, Dr], c_kv [T, Hckv], k_r [T, Dr], those that exist.
    """
    call = _make_call(weights, token_x, rope_sin, rope_cos, kv_cache, kr_cache, cache_index, **arguments)
    outputs = _outputs(call, out, query_norm)
    steps = _new_intermediates(call)
    typed: Dict[str, Array] = dict(steps)
    quantized = steps.get("c_q_quantized")
    if quantized is not None and quantized.dtype == np.uint8:
        typed["c_q_quantized"] = TypedArray(quantized, _RAW_NAMES[_names.WEIGHT_DTYPES[weights.facts[1]]])
    descriptors = tuple(describe(name, typed.get(name), written=True) for name in _native.INTERMEDIATES)
    _native.reference_run(weights.native, call.bind_outputs(outputs), call.modes, call.numbers, descriptors)
    return outputs, steps


def exact(
    weights: Weights,
    token_x: Array,
    rope_sin: Optional[Array],
    rope_cos: Optional[Array],
    **arguments: Unpack[CallArguments],
) -> ExactResult:
    """The operator's formula in binary64, with no rounding on the way: what errors are measured against."""
    call = _make_call(weights, token_x, rope_sin, rope_cos, None, None, None, **arguments)
    dims, tokens = weights.dims, call.tokens
    results = ExactResult(
        np.empty((tokens, dims.heads, dims.kv_rank)),
        np.empty((tokens, dims.heads, dims.rope)),
        np.empty((tokens, dims.kv_rank)),
        np.empty((tokens, dims.rope)),
    )
    descriptors = tuple(describe(name, getattr(results, name), written=True) for name in _native.EXACT_RESULTS)
    _native.exact_run(weights.native, tuple(call.tensors), call.modes, call.numbers, descriptors)
    return results
