"""torch_npu's MLA prolog operators on CPU tensors.

Importing this module registers `torch.ops.npu.npu_mla_prolog`, `npu_mla_prolog_v2`, `npu_mla_prolog_v3` and
`npu_mla_prolog_v3_functional` for CPU and meta tensors, with torch_npu's schemas; they are functions of this module, too.
Where torch_npu has defined them, only the CPU's part is added.

2-D weights are packed at their first call and kept as long as their storage lives; changes in place are noticed where
torch counts them. `install_torch_npu()` makes `import torch_npu` work where there is none.
"""

from __future__ import annotations

import torch

from . import _operators, _schemas
from ._shim import install_torch_npu
from ._tensors import HIFLOAT8 as hifloat8
from ._weights_cache import clear as clear_weights_cache
from ._weights_cache import count as num_cached_weights
from ._weights_cache import owned_bytes as cached_weights_bytes

__all__ = [
    "cached_weights_bytes",
    "clear_weights_cache",
    "hifloat8",
    "install_torch_npu",
    "npu_mla_prolog",
    "npu_mla_prolog_v2",
    "npu_mla_prolog_v3",
    "npu_mla_prolog_v3_functional",
    "num_cached_weights",
]


def _new_library(name: str, kind: str) -> torch.library.Library:
    return torch.library.Library(name, kind)


def _definitions() -> torch.library.Library:
    try:
        return _new_library("npu", "FRAGMENT")
    except ValueError:  # torch 1
        return _new_library("npu", "DEF")


def _register() -> list:
    """Defines what is missing and implements it for the CPU. The libraries live as long as the module."""
    missing = [name for name in _schemas.SCHEMAS if not hasattr(torch.ops.npu, name)]
    libraries = []
    if missing:
        definitions = _definitions()
        libraries.append(definitions)
        tag = getattr(getattr(torch, "Tag", None), "pt2_compliant_tag", None)
        for name in missing:
            if tag is not None and name in _schemas.FAITHFUL:
                definitions.define(_schemas.SCHEMAS[name], tags=(tag,))
            else:
                definitions.define(_schemas.SCHEMAS[name])
    kernels = _new_library("npu", "IMPL")
    libraries.append(kernels)
    for name, (on_cpu, on_meta) in _operators.IMPLEMENTATIONS.items():
        kernels.impl(name, on_cpu, "CPU")
        if name in missing:
            kernels.impl(name, on_meta, "Meta")
            if torch.__version__.startswith("1."):  # which lets no call through to Meta
                kernels.impl(name, on_meta, "AutogradMeta")
    return libraries


_libraries = _register()

npu_mla_prolog = torch.ops.npu.npu_mla_prolog
npu_mla_prolog_v2 = torch.ops.npu.npu_mla_prolog_v2
npu_mla_prolog_v3 = torch.ops.npu.npu_mla_prolog_v3
npu_mla_prolog_v3_functional = torch.ops.npu.npu_mla_prolog_v3_functional
