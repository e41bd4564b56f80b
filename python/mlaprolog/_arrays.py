"""NumPy arrays as the C interface sees them: address, type, sizes and strides, with nothing guessed."""

from __future__ import annotations

import sys
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _names

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None  # type: ignore[assignment]

# (address, dtype, layout, dims, strides), or without the strides if contiguous; None for an absent tensor.
Descriptor = Optional[Tuple[Any, ...]]

# uint16 holds nothing but raw bf16 bits in this operator; uint8 might be three formats, so `typed` has to tell.
_CODES = {
    np.dtype(np.uint16): _names.BF16,
    np.dtype(np.int8): _names.INT8,
    np.dtype(np.float32): _names.FLOAT32,
    np.dtype(np.int64): _names.INT64,
    np.dtype(np.int32): _names.INT32,
    np.dtype(np.float64): _names.FLOAT64,
    np.dtype(np.float16): _names.FLOAT16,
}
_DTYPES = {code: dtype for dtype, code in _CODES.items()}
_DTYPES.update({code: np.dtype(np.uint8) for code in (_names.FLOAT8_E4M3, _names.HIFLOAT8, _names.FLOAT8_E8M0)})

if ml_dtypes is not None:
    for _name, _code in (
        ("bfloat16", _names.BF16),
        ("float8_e4m3fn", _names.FLOAT8_E4M3),
        ("float8_e8m0fnu", _names.FLOAT8_E8M0),  # since ml_dtypes 0.5
    ):
        if hasattr(ml_dtypes, _name):
            _dtype = np.dtype(getattr(ml_dtypes, _name))
            _CODES[_dtype] = _code
            _DTYPES[_code] = _dtype

_RAW: Dict[str, np.dtype] = {
    "bfloat16": np.dtype(np.uint16),
    "float8_e4m3fn": np.dtype(np.uint8),
    "hifloat8": np.dtype(np.uint8),
    "float8_e8m0fnu": np.dtype(np.uint8),
}
_RAW_DTYPES = {_names.DTYPES[name]: dtype for name, dtype in _RAW.items()}


class TypedArray(NamedTuple):
    """An array with the format of its elements, where NumPy has no type for it. Made by `typed`."""

    array: np.ndarray
    dtype: str


Array = Union[np.ndarray, TypedArray]


def typed(array: np.ndarray, dtype: str) -> TypedArray:
    """Says which format the raw bits of a uint8 or uint16 array are: "hifloat8", "float8_e4m3fn", "float8_e8m0fnu",
    or "bfloat16". Copies nothing.

    >>> typed(np.zeros(4, np.uint8), "hifloat8").dtype
    'hifloat8'
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"array: expected a numpy.ndarray, found {type(array).__name__}")
    if dtype not in _RAW:
        raise ValueError(f"dtype: expected one of {', '.join(_RAW)}, found {dtype!r}")
    if array.dtype != _RAW[dtype]:
        raise TypeError(f"array: expected raw bits of {dtype} as {_RAW[dtype]}, found {array.dtype}")
    return TypedArray(array, dtype)


def to_bf16(array: np.ndarray) -> np.ndarray:
    """Rounds to bf16, to the nearest and ties to even: ml_dtypes.bfloat16, or raw uint16 without ml_dtypes.

    >>> int(to_bf16(np.float32([1.0])).view(np.uint16)[0]) == 0x3F80
    True
    """
    if ml_dtypes is not None:
        return np.asarray(array).astype(ml_dtypes.bfloat16)
    values = np.asarray(array, dtype=np.float32)
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded).reshape(values.shape)


def from_bf16(array: np.ndarray) -> np.ndarray:
    """The float32 values of bf16 bits, exactly: of an ml_dtypes.bfloat16 or a uint16 array."""
    if _CODES.get(array.dtype) != _names.BF16:
        raise TypeError(f"array: expected bfloat16 or raw uint16, found {array.dtype}")
    bits = np.ascontiguousarray(array).view(np.uint16).astype(np.uint32) << 16
    return bits.view(np.float32).reshape(array.shape)


def numpy_dtype(code: int, raw: bool = False) -> np.dtype:
    """The NumPy type of results; `raw`: of plain integers where ml_dtypes has a type."""
    return _RAW_DTYPES.get(code, _DTYPES[code]) if raw else _DTYPES[code]


def is_raw_bf16(array: Optional[Array]) -> bool:
    if array is None:
        return ml_dtypes is None
    values = array.array if isinstance(array, TypedArray) else array
    return isinstance(values, np.ndarray) and values.dtype == np.uint16


def dtype_code(parameter: str, array: Array) -> int:
    values, declared = array if isinstance(array, TypedArray) else (array, None)
    if not isinstance(values, np.ndarray):
        raise TypeError(f"{parameter}: expected a numpy.ndarray, found {type(values).__name__}")
    if declared is not None:
        return _names.DTYPES[declared]
    code = _CODES.get(values.dtype)
    if code is None:
        advice = ""
        if values.dtype == np.uint8:
            advice = '; say which format the bytes are, e.g. mlaprolog.typed(array, "float8_e4m3fn")'
        elif values.dtype.byteorder == (">" if sys.byteorder == "little" else "<"):
            advice = "; its bytes are in the other order: array.astype(array.dtype.newbyteorder('='))"
        raise TypeError(f"{parameter}: an array of {values.dtype} is none of the operator's types{advice}")
    return code


def describe(parameter: str, array: Optional[Array], layout: int = _names.ROW_MAJOR, written: bool = False) -> Descriptor:
    """Checks what the C interface cannot see in an address and some sizes."""
    if array is None:
        return None
    code = dtype_code(parameter, array)
    values = array.array if isinstance(array, TypedArray) else array
    flags = values.flags
    if written and not flags.writeable:
        raise ValueError(f"{parameter}: expected an array that can be written, found a read-only one")
    address = values.__array_interface__["data"][0]
    if flags.c_contiguous and flags.aligned:
        return (address, code, layout, values.shape)
    if not flags.aligned:
        raise ValueError(f"{parameter}: expected aligned elements, found a misaligned array; pass array.copy()")
    size = values.itemsize
    if any(stride % size for stride in values.strides):
        raise ValueError(f"{parameter}: expected strides of whole elements, found {values.strides} bytes")
    strides = tuple(stride // size for stride in values.strides)
    if not any(strides):
        # The C interface takes strides that are all zero for those of a contiguous tensor.
        raise ValueError(f"{parameter}: expected elements side by side, found one element broadcast to "
                         f"{values.shape}; pass numpy.ascontiguousarray(array)")  # fmt: skip
    return (address, code, layout, values.shape, strides)
