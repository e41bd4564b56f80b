"""What a device would say of a call."""

from __future__ import annotations

from typing import NamedTuple, Tuple, Union

from . import _names, _native
from ._weights import Dims


class LimitsAnswer(NamedTuple):
    """Whether a device takes such a call, and if not, every reason. True if it does."""

    is_accepted: bool
    reasons: Tuple[str, ...]

    def __bool__(self) -> bool:
        return self.is_accepted


def check_limits(
    dims: Dims,
    *,
    tokens: Union[int, Tuple[int, int]] = 1,
    soc: str = "ascend910b",
    version: int = 3,
    block_size: int = 128,
    cache_mode: Union[str, int] = "PA_BSND",
    weight_quant: Union[str, int] = "bf16",
    kv_quant: Union[str, int] = "bf16",
    rope_style: Union[str, int] = "interleaved_to_half",
) -> LimitsAnswer:
    """Whether a device takes a call of these sizes.

    tokens: T, or (B, S). soc: "ascend910b" (A2), "ascend910_93" (A3), "ascend950". version: of the operator, 1 to 3.

    >>> answer = check_limits(Dims(2048, 768, 20, 192, 64, 512))
    >>> bool(answer), len(answer.reasons) > 0
    (False, True)
    """
    batch, sequence = tokens if isinstance(tokens, tuple) else (0, tokens)
    modes = (
        _names.code_of("cache_mode", _names.CACHE_MODES, cache_mode),
        _names.code_of("weight_quant", _names.WEIGHT_QUANT_CODES, weight_quant),
        _names.code_of("kv_quant", _names.KV_QUANTS, kv_quant),
        _names.code_of("rope_style", _names.ROPE_STYLES, rope_style),
    )
    sizes = (*Dims(*dims), batch, sequence, block_size)
    is_accepted, reasons = _native.check_limits(soc, version, sizes, modes)
    return LimitsAnswer(is_accepted, tuple(reasons.splitlines()))
