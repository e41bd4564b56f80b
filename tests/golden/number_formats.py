"""The golden model's number formats, each from its definition: bf16, int8, E4M3, HiFloat8, E8M0.

A bf16 tensor is a uint16 array of bit patterns, an int8 tensor an int8 array; E4M3, HiFloat8 and
E8M0 tensors are uint8 arrays of codes. Values are float32. Every cast to an 8-bit format saturates
and turns NaN into 0.
"""
from typing import Callable, NamedTuple

import numpy as np

F32 = np.float32


# ---------------------------------------------------------------- bf16

def _bf16_bits(values, increment) -> np.ndarray:
    values = np.ascontiguousarray(values, dtype=F32)
    bits = values.view(np.uint32).astype(np.uint64)
    rounded = (bits + increment(bits)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def to_bf16(values) -> np.ndarray:
    """float32 -> bf16 bits, round to nearest even; NaN becomes 0x7FC0."""
    return _bf16_bits(values, lambda bits: 0x7FFF + ((bits >> 16) & 1))


def to_bf16_away(values) -> np.ndarray:
    """float32 -> bf16 bits, round to nearest, ties away from zero; NaN becomes 0x7FC0."""
    return _bf16_bits(values, lambda bits: 0x8000)


def from_bf16(bits) -> np.ndarray:
    """bf16 bits -> float32 (exact)."""
    bits = np.ascontiguousarray(bits)
    if bits.dtype != np.uint16:
        raise TypeError(f"bf16 tensors are uint16 arrays, got {bits.dtype}")
    return (bits.astype(np.uint32) << 16).view(F32)


def round_bf16(values) -> np.ndarray:
    """float32 -> nearest bf16 value, as float32."""
    return from_bf16(to_bf16(values))


def canonical_nan(values: np.ndarray) -> np.ndarray:
    """float32 array with every NaN replaced by the positive quiet NaN 0x7FC00000."""
    return np.where(np.isnan(values), F32(np.nan), values).astype(F32)


# ---------------------------------------------------------------- int8

def to_int8(values) -> np.ndarray:
    """Nearest integer, ties to even, saturated to [-128, 127]; NaN -> 0."""
    clipped = np.clip(np.rint(np.asarray(values, dtype=F32)), -128, 127)
    return np.where(np.isnan(clipped), 0, clipped).astype(np.int8)


def round_half_away(values) -> np.ndarray:
    """Nearest IEEE binary16 value, ties away from zero, as float64 (exact)."""
    values = np.asarray(values, dtype=np.float64)
    magnitude = np.abs(values)
    _, exponent = np.frexp(magnitude)                      # magnitude = [0.5, 1) * 2^exponent
    spacing = np.ldexp(1.0, np.maximum(exponent, -13) - 11)
    half = np.floor(magnitude / spacing + 0.5) * spacing
    half = np.where(half >= 65536.0, np.inf, half)
    return np.copysign(half, values)


def to_int8_query(values) -> np.ndarray:
    """The A2/A3 query cast: to binary16 and then to int8, both with ties away from zero."""
    half = round_half_away(np.asarray(values, dtype=F32))
    rounded = np.clip(np.copysign(np.floor(np.abs(half) + 0.5), half), -128, 127)
    return np.where(np.isnan(rounded), 0, rounded).astype(np.int8)


# ---------------------------------------------------------------- E4M3

def from_e4m3(codes) -> np.ndarray:
    """E4M3 ("fn": no infinity, 0x7F and 0xFF are NaN, largest 448) -> float32."""
    codes = np.asarray(codes).astype(np.int64)
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    magnitude = np.where(exponent == 0, np.ldexp(mantissa.astype(np.float64), -9),
                         np.ldexp(8.0 + mantissa, exponent - 10))
    magnitude = np.where((codes & 127) == 127, np.nan, magnitude)
    return canonical_nan(np.where(codes >= 128, -magnitude, magnitude))


def to_e4m3(values) -> np.ndarray:
    """float32 -> nearest E4M3 code, ties to even, saturated to +-448; the sign of zero stays."""
    values = np.asarray(values, dtype=np.float64)
    magnitude = np.minimum(np.abs(values), 448.0)
    nan = np.isnan(magnitude)
    magnitude = np.where(nan, 0.0, magnitude)
    _, exponent = np.frexp(magnitude)                      # magnitude = [0.5, 1) * 2^exponent
    exponent = np.maximum(np.where(magnitude == 0, -5, exponent) - 1, -6)
    # Steps of 2^(exponent - 3) above the start of the binade; 8 steps are the next binade.
    steps = np.rint(np.ldexp(magnitude, 3 - exponent)).astype(np.int64)
    code = (exponent + 6) * 8 + steps                      # subnormals: exponent -6, steps < 8
    return np.where(nan, 0, code + np.where(np.signbit(values), 128, 0)).astype(np.uint8)


# ---------------------------------------------------------------- HiFloat8

# Below the sign: the prefix, then the exponent, then the mantissa. By number of exponent bits:
_HIF8_PREFIX = {4: (0b11, 2), 3: (0b10, 2), 2: (0b01, 2), 1: (0b001, 3), 0: (0b0001, 4)}


def _hif8_magnitude(code: int) -> float:
    """Value of the seven bits below the sign."""
    if code == 0:
        return 0.0
    if code == 0b1101111:                                  # the place of 1.5 * 2^15
        return np.inf
    for exponent_bits, (prefix, prefix_bits) in _HIF8_PREFIX.items():
        if code >> (7 - prefix_bits) != prefix:
            continue
        mantissa_bits = 7 - prefix_bits - exponent_bits
        mantissa = code & ((1 << mantissa_bits) - 1)
        field = (code >> mantissa_bits) & ((1 << exponent_bits) - 1)
        exponent = 0
        if exponent_bits:                                  # sign, then magnitude below a hidden 1
            low = field & ((1 << (exponent_bits - 1)) - 1)
            exponent = (1 << (exponent_bits - 1)) | low
            if field >> (exponent_bits - 1):
                exponent = -exponent
        return float(np.ldexp(1 + mantissa / (1 << mantissa_bits), exponent))
    return float(np.ldexp(1.0, code - 23))                 # prefix 0000: denormal


_HIF8_VALUES = np.array([_hif8_magnitude(code) for code in range(128)]
                        + [-_hif8_magnitude(code) for code in range(128)], dtype=F32)
_HIF8_VALUES[0x80] = np.nan                                # the place of -0


def from_hif8(codes) -> np.ndarray:
    """HiFloat8 -> float32."""
    return _HIF8_VALUES[np.asarray(codes)]


def _to_hif8(value: float) -> int:
    magnitude = min(abs(value), 32768.0)
    if np.isnan(value) or magnitude < 2.0 ** -23:
        return 0
    exponent = max(int(np.frexp(magnitude)[1]) - 1, -22)
    size = abs(exponent)
    mantissa_bits = 3 if size <= 3 else 2 if size <= 7 else 1 if size <= 15 else 0
    steps = int(np.floor(np.ldexp(magnitude, mantissa_bits - exponent) + 0.5))
    if steps == 2 << mantissa_bits:                        # rounded up into the next binade
        return _to_hif8(float(np.copysign(np.ldexp(1.0, exponent + 1), value)))
    sign = 128 if value < 0 else 0
    if exponent < -15:                                     # 2^-23 itself is a tie: away from zero
        return sign | (exponent + 23 if steps else 0)
    exponent_bits = size.bit_length()
    prefix, prefix_bits = _HIF8_PREFIX[exponent_bits]
    field = 0
    if exponent_bits:
        field = (size - (1 << (exponent_bits - 1))) | ((exponent < 0) << (exponent_bits - 1))
    code = prefix << (7 - prefix_bits) | field << mantissa_bits | (steps - (1 << mantissa_bits))
    return sign | code


def to_hif8(values) -> np.ndarray:
    """float32 -> nearest HiFloat8 code, ties away from zero, saturated to +-2^15; zero is 0x00."""
    values = np.asarray(values, dtype=F32)
    flat = [_to_hif8(float(value)) for value in values.reshape(-1)]
    return np.array(flat, dtype=np.uint8).reshape(values.shape)


# ---------------------------------------------------------------- E8M0

def from_e8m0(codes) -> np.ndarray:
    """E8M0 -> float64: 2^(code - 127); 0xFF is NaN."""
    codes = np.asarray(codes).astype(np.int64)
    return np.where(codes == 255, np.nan, np.ldexp(1.0, codes - 127))


# ---------------------------------------------------------------- 8-bit types of the operator

class Format(NamedTuple):
    """An 8-bit type: the array type of its codes, its quantisation range, and both conversions."""
    name: str
    dtype: type
    largest: float
    decode: Callable
    encode: Callable


INT8 = Format("int8", np.int8, 127.0, lambda codes: codes.astype(F32), to_int8)
E4M3 = Format("e4m3", np.uint8, 448.0, from_e4m3, to_e4m3)
HIF8 = Format("hif8", np.uint8, 32768.0, from_hif8, to_hif8)
