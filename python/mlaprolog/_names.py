"""The words of the Python interface and the numbers that the C interface has for them."""

from __future__ import annotations

from typing import Mapping, Union

# mlap_dtype
BF16, INT8, FLOAT32, INT64, INT32, FLOAT8_E4M3, HIFLOAT8, FLOAT8_E8M0, FLOAT64, FLOAT16 = range(10)

DTYPES = {
    "bfloat16": BF16,
    "int8": INT8,
    "float32": FLOAT32,
    "int64": INT64,
    "int32": INT32,
    "float8_e4m3fn": FLOAT8_E4M3,
    "hifloat8": HIFLOAT8,
    "float8_e8m0fnu": FLOAT8_E8M0,
    "float64": FLOAT64,
    "float16": FLOAT16,
}
ITEM_BYTES = {
    BF16: 2, INT8: 1, FLOAT32: 4, INT64: 8, INT32: 4, FLOAT8_E4M3: 1, HIFLOAT8: 1, FLOAT8_E8M0: 1, FLOAT64: 8,
    FLOAT16: 2,
}  # fmt: skip

ROW_MAJOR, FRACTAL_NZ, OUT_IN = range(3)
LAYOUTS = {"row_major": ROW_MAJOR, "nz": FRACTAL_NZ, "out_in": OUT_IN}

COPY, BORROW = range(2)

CACHE_MODES = {"PA_BSND": 0, "PA_NZ": 1, "PA_BLK_BSND": 2, "PA_BLK_NZ": 3, "BSND": 4, "TND": 5}

KV_BF16, KV_PER_TENSOR, KV_PER_CHANNEL, KV_PER_GROUP = range(4)
KV_QUANTS = {
    "bf16": KV_BF16, "per_tensor": KV_PER_TENSOR, "per_channel": KV_PER_CHANNEL, "per_group": KV_PER_GROUP,
}  # fmt: skip

WEIGHTS_BF16, WEIGHTS_UQ_QR_INT8, WEIGHTS_INT8, WEIGHTS_MXFP8, WEIGHTS_FP8, WEIGHTS_HIFLOAT8 = range(6)
WEIGHT_QUANTS = ("bf16", "uq_qr_int8", "int8", "mxfp8", "fp8", "hifloat8")
# The type that x, cQ and, where it is quantised, the key have with weights of each kind.
WEIGHT_DTYPES = (BF16, INT8, INT8, FLOAT8_E4M3, FLOAT8_E4M3, HIFLOAT8)

ROPE_INTERLEAVED_TO_HALF, ROPE_HALF, ROPE_INTERLEAVED, ROPE_NONE = range(4)
ROPE_STYLES = {
    "interleaved_to_half": ROPE_INTERLEAVED_TO_HALF,
    "half": ROPE_HALF,
    "interleaved": ROPE_INTERLEAVED,
    "none": ROPE_NONE,
}

ROPE_ORDERS = {"half_to_interleaved": 0, "interleaved_to_half": 1}
ROW_ORDERS = {"cann": 0, "flashmla": 1}
RULES = {"a2": 0, "950": 1}
WEIGHT_QUANT_CODES = {name: code for code, name in enumerate(WEIGHT_QUANTS)}


def code_of(parameter: str, names: Mapping[str, int], value: Union[str, int]) -> int:
    """The number of a word; a number that has a word is taken as it is."""
    if isinstance(value, str):
        code = names.get(value)
        if code is not None:
            return code
    elif isinstance(value, int) and not isinstance(value, bool):
        if value in names.values():
            return value
    else:
        raise TypeError(f"{parameter}: expected a str, one of {', '.join(names)}, found {type(value).__name__}")
    raise ValueError(f"{parameter}: expected one of {', '.join(names)}, found {value!r}")
