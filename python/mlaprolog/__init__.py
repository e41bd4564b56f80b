"""The pre-processing of Multi-head Latent Attention on CPUs, on NumPy arrays.

    cQ  = RmsNorm(x W_DQ)      qC | qR = cQ W_UQ|QR     query = qC W_UK     query_rope = RoPE(qR)
    cKV | kR = x W_DKV|KR      kv_cache[slot] = RmsNorm(cKV)                kr_cache[slot] = RoPE(kR)

`Weights` holds one layer's weights; `prolog` does one call; `reference` and `exact` say what it should give. Arrays of
bf16 have dtype `ml_dtypes.bfloat16`, or uint16 with the raw bits. `mlaprolog.torch` has torch_npu's operators.
"""

from ._arrays import TypedArray, from_bf16, to_bf16, typed
from ._comparison import Comparison, ComparisonTable, compare, standards
from ._context import Context, default_context, set_default_context
from ._errors import CacheIndexError
from ._limits import LimitsAnswer, check_limits
from ._native import chosen_isa, cpu_name, isas, kernels
from ._native import version as _version
from ._operator import ExactResult, PrologResult, exact, prolog, reference
from ._preparation import (
    cache_convert,
    cache_rows_join,
    cache_rows_reorder,
    cache_rows_split,
    nz_dims,
    nz_pack,
    nz_unpack,
    rope_reorder,
    rope_table,
    split_kv_b_proj,
)
from ._weights import Dims, Weights

__version__ = _version()

__all__ = [
    "CacheIndexError",
    "Comparison",
    "ComparisonTable",
    "Context",
    "Dims",
    "ExactResult",
    "LimitsAnswer",
    "PrologResult",
    "TypedArray",
    "Weights",
    "cache_convert",
    "cache_rows_join",
    "cache_rows_reorder",
    "cache_rows_split",
    "check_limits",
    "chosen_isa",
    "compare",
    "cpu_name",
    "default_context",
    "exact",
    "from_bf16",
    "isas",
    "kernels",
    "nz_dims",
    "nz_pack",
    "nz_unpack",
    "prolog",
    "reference",
    "rope_reorder",
    "rope_table",
    "set_default_context",
    "split_kv_b_proj",
    "standards",
    "to_bf16",
    "typed",
]
