"""CPU tensors as the C interface sees them."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor

from .. import _names

CODES = {
    torch.bfloat16: _names.BF16,
    torch.int8: _names.INT8,
    torch.float32: _names.FLOAT32,
    torch.int64: _names.INT64,
    torch.int32: _names.INT32,
    # None of the operator's: the C interface says which type it expected.
    torch.float16: _names.FLOAT16,
    torch.float64: _names.FLOAT64,
}
# Since torch 2.1 and 2.7.
for _name, _code in (("float8_e4m3fn", _names.FLOAT8_E4M3), ("float8_e8m0fnu", _names.FLOAT8_E8M0)):
    if hasattr(torch, _name):
        CODES[getattr(torch, _name)] = _code

# torch_npu's numbers of types that torch lacks, for the *_dtype arguments beside uint8 tensors.
HIFLOAT8 = 290
_DECLARED = {HIFLOAT8: _names.HIFLOAT8}


def code_of(name: str, tensor: Tensor, declared: Optional[int] = None) -> int:
    """The type of a tensor's elements; `declared` is the number in its *_dtype argument."""
    code = CODES.get(tensor.dtype)
    if declared is None:
        if code is not None:
            return code
        if tensor.dtype == torch.uint8:
            raise TypeError(f"{name}: torch.uint8 holds the bits of several types; pass {name}_dtype={HIFLOAT8} "
                            f"(torch_npu.hifloat8) for HiFloat8")  # fmt: skip
        raise TypeError(f"{name}: a tensor of {tensor.dtype} is none of the operator's types")
    if tensor.dtype == torch.uint8:
        if declared in _DECLARED:
            return _DECLARED[declared]
        raise ValueError(f"{name}_dtype: expected {HIFLOAT8} (torch_npu.hifloat8) for torch.uint8, found {declared}")
    if code is None or declared in _DECLARED:
        raise TypeError(f"{name}: expected torch.uint8 with {name}_dtype={declared}, found {tensor.dtype}")
    return code


def describe(tensor: Tensor, code: int, layout: int, kept: List[Tensor]) -> Tuple[Any, ...]:
    """What `mlaprolog._native` takes; `kept` holds what has to live as long as the description is used."""
    if tensor.is_contiguous():
        return (tensor.data_ptr(), code, layout, tensor.shape)
    strides = tensor.stride()
    if not any(strides):
        # The C interface takes strides that are all zero for those of a contiguous tensor.
        tensor = tensor.contiguous()
        kept.append(tensor)
        return (tensor.data_ptr(), code, layout, tensor.shape)
    return (tensor.data_ptr(), code, layout, tensor.shape, strides)
