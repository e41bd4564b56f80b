"""What prepares weights, tables and caches. Every function returns new arrays and leaves its arguments alone."""

from __future__ import annotations

from typing import Optional, Tuple, Union

import numpy as np

from . import _names, _native
from ._arrays import Array, Descriptor, TypedArray, describe, dtype_code, numpy_dtype

_EIGHT_BITS = {np.dtype(np.uint8): "hifloat8"}  # which of the formats does not matter where bytes are moved


def _movable(array: Array) -> Array:
    """Raw bytes are moved without being told what they are."""
    if isinstance(array, np.ndarray) and array.dtype in _EIGHT_BITS:
        return TypedArray(array, _EIGHT_BITS[array.dtype])
    return array


def _values(parameter: str, array: Array, ndim: Optional[int] = None) -> np.ndarray:
    values = array.array if isinstance(array, TypedArray) else array
    if not isinstance(values, np.ndarray):
        raise TypeError(f"{parameter}: expected a numpy.ndarray, found {type(values).__name__}")
    if ndim is not None and values.ndim != ndim:
        raise ValueError(f"{parameter}: expected {ndim} dimensions, found shape {values.shape}")
    return values


def _like(array: np.ndarray, shape: Tuple[int, ...], dtype: Optional[np.dtype] = None) -> np.ndarray:
    return np.empty(shape, array.dtype if dtype is None else dtype)


def nz_dims(dtype: Union[str, int], k: int, n: int) -> Tuple[int, int, int, int]:
    """The four dimensions of the FRACTAL_NZ image of a matrix (k, n).

    >>> nz_dims("bfloat16", 100, 40)
    (3, 7, 16, 16)
    """
    return _native.nz_dims(_names.code_of("dtype", _names.DTYPES, dtype), k, n)


def nz_pack(matrix: Array, layout: str = "row_major") -> np.ndarray:
    """Packs a matrix (k, n) - or with layout "out_in" its transpose (n, k) - to FRACTAL_NZ, padded with zeros.

    Returns [ceil(n / C0), ceil(k / 16), 16, C0], C0 = 16 for bf16 and 32 for 8-bit types.
    """
    values = _values("matrix", matrix, 2)
    code = _names.code_of("layout", {"row_major": _names.ROW_MAJOR, "out_in": _names.OUT_IN}, layout)
    matrix = _movable(matrix)
    k, n = values.shape if code == _names.ROW_MAJOR else values.shape[::-1]
    nz = _like(values, _native.nz_dims(dtype_code("matrix", matrix), k, n))
    _native.nz_pack(describe("matrix", matrix, code), _nz_descriptor(nz, written=True))
    return nz


def nz_unpack(nz: Array, k: int, n: int) -> np.ndarray:
    """The matrix (k, n) in a FRACTAL_NZ array; what lies in the padding is ignored."""
    values = _values("nz", nz, 4)
    matrix = _like(values, (k, n))
    _native.nz_unpack(_nz_descriptor(nz), describe("matrix", _movable(matrix), written=True))
    return matrix


def _nz_descriptor(nz: Array, written: bool = False) -> Descriptor:
    return describe("nz", _movable(nz), _names.FRACTAL_NZ, written)


def split_kv_b_proj(kv_b_proj: Array, heads: int, nope: int) -> Tuple[np.ndarray, np.ndarray]:
    """Splits Hugging Face's kv_b_proj [N * (D + Dv), Hckv] into weight_uk [N, D, Hckv] and weight_uv [N, Hckv, Dv].

    >>> uk, uv = split_kv_b_proj(to_bf16(np.ones((2 * (3 + 5), 4))), heads=2, nope=3)
    >>> uk.shape, uv.shape
    ((2, 3, 4), (2, 4, 5))
    """
    values = _values("kv_b_proj", kv_b_proj, 2)
    rows, kv_rank = values.shape
    if heads < 1 or rows % heads or not 0 <= nope <= rows // heads:
        raise ValueError(f"kv_b_proj: expected heads * (nope + Dv) rows with heads {heads} and nope {nope}, found {rows}")
    weight_uk = _like(values, (heads, nope, kv_rank))
    weight_uv = _like(values, (heads, kv_rank, rows // heads - nope))
    _native.split_kv_b_proj(
        describe("kv_b_proj", _movable(kv_b_proj)),
        describe("weight_uk", _movable(weight_uk), written=True),
        describe("weight_uv", _movable(weight_uv), written=True),
    )
    return weight_uk, weight_uv


def rope_reorder(array: Array, group: int, rope: int, order: str, layout: str = "row_major") -> np.ndarray:
    """Reorders the last `rope` of every `group` outputs: "half_to_interleaved" makes the rope columns of half-style
    weights those of the operator, "interleaved_to_half" is the reverse.

    The outputs are the last dimension, or the first one with layout "out_in". weight_uq_qr: group = D + Dr;
    weight_dkv_kr: group = Hckv + Dr; a kr_cache: group = Dr.
    """
    values = _values("array", array)
    code = _names.code_of("layout", {"row_major": _names.ROW_MAJOR, "out_in": _names.OUT_IN}, layout)
    reordered = _like(values, values.shape)
    _native.rope_reorder(
        describe("array", _movable(array), code),
        group,
        rope,
        _names.code_of("order", _names.ROPE_ORDERS, order),
        describe("reordered", _movable(reordered), code, written=True),
    )
    return reordered


def rope_table(
    positions: np.ndarray,
    rope: int,
    *,
    base: float = 10000.0,
    rope_style: Union[str, int] = "interleaved_to_half",
    factor: float = 1.0,
    original_max_position: int = 4096,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    mscale: float = 1.0,
    mscale_all_dim: float = 1.0,
    dtype: str = "bfloat16",
    raw: bool = False,
) -> Tuple[np.ndarray, np.ndarray]:
    """The operator's (rope_sin, rope_cos), [*positions.shape, rope], for int32 or int64 positions.

    factor > 1: YaRN as DeepSeek defines it. dtype: "bfloat16" or "float32". raw: bf16 as uint16.

    >>> sin, cos = rope_table(np.array([0]), 4)
    >>> from_bf16(sin).tolist(), from_bf16(cos).tolist()
    ([[0.0, 0.0, 0.0, 0.0]], [[1.0, 1.0, 1.0, 1.0]])
    """
    places = _values("positions", positions)
    code = _names.code_of("dtype", {"bfloat16": _names.BF16, "float32": _names.FLOAT32}, dtype)
    sin, cos = (np.empty((*places.shape, rope), numpy_dtype(code, raw)) for _ in range(2))
    numbers = (base, factor, original_max_position, beta_fast, beta_slow, mscale, mscale_all_dim)
    _native.rope_table(
        describe("positions", positions),
        describe("rope_sin", sin, written=True),
        describe("rope_cos", cos, written=True),
        _names.code_of("rope_style", _names.ROPE_STYLES, rope_style),
        tuple(float(number) for number in numbers),
    )
    return sin, cos


def cache_convert(cache: Array, from_mode: str, to_mode: str) -> np.ndarray:
    """A whole cache [BlockNum, BlockSize, 1, width] in another order of bytes, "PA_BSND" or "PA_NZ"."""
    values = _values("cache", cache, 4)
    converted = _like(values, values.shape)
    _native.cache_convert(
        describe("cache", _movable(cache)),
        _names.code_of("from_mode", _names.CACHE_MODES, from_mode),
        describe("converted", _movable(converted), written=True),
        _names.code_of("to_mode", _names.CACHE_MODES, to_mode),
    )
    return converted


def cache_rows_split(
    rows: Array, kv_rank: int = 512, rope: int = 64, order: str = "cann"
) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Takes "per_group" rows [.., width] apart: values [.., Hckv] of the rows' type, rope bf16 [.., Dr], and scales
    float32 [.., ceil(Hckv / 128)]. order: "cann" (values, rope, scales) or "flashmla" (values, scales, rope)."""
    values = _values("rows", rows)
    if values.ndim < 1:
        raise ValueError("rows: expected at least one dimension, found none")
    lead = values.shape[:-1]
    parts = (
        _like(values, lead + (kv_rank,)),
        np.empty(lead + (rope,), numpy_dtype(_names.BF16)),
        np.empty(lead + (-(-kv_rank // 128),), np.float32),
    )
    _native.cache_rows_split(
        describe("rows", _movable(rows)),
        _names.code_of("order", _names.ROW_ORDERS, order),
        describe("values", _movable(parts[0]), written=True),
        describe("rope", parts[1], written=True),
        describe("scales", parts[2], written=True),
    )
    return parts


def cache_rows_join(values: Array, rope: Array, scales: Array, order: str = "cann") -> np.ndarray:
    """The reverse of `cache_rows_split`."""
    parts = _values("values", values), _values("rope", rope), _values("scales", scales)
    if not all(part.ndim >= 1 for part in parts):
        raise ValueError("values, rope, scales: expected at least one dimension each")
    width = parts[0].shape[-1] + 2 * parts[1].shape[-1] + 4 * parts[2].shape[-1]
    rows = _like(parts[0], parts[0].shape[:-1] + (width,))
    _native.cache_rows_join(
        describe("values", _movable(values)),
        describe("rope", rope),
        describe("scales", scales),
        describe("rows", _movable(rows), written=True),
        _names.code_of("order", _names.ROW_ORDERS, order),
    )
    return rows


def cache_rows_reorder(
    rows: Array, from_order: str, to_order: str, kv_rank: int = 512, rope: int = 64
) -> np.ndarray:
    """Moves the parts of every row from one order to another; the values are not changed."""
    values = _values("rows", rows)
    reordered = _like(values, values.shape)
    _native.cache_rows_reorder(
        describe("rows", _movable(rows)),
        _names.code_of("from_order", _names.ROW_ORDERS, from_order),
        describe("reordered", _movable(reordered), written=True),
        _names.code_of("to_order", _names.ROW_ORDERS, to_order),
        kv_rank,
        rope,
    )
    return reordered
