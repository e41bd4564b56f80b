"""A module for code that imports torch_npu, with what the operators need of it."""

from __future__ import annotations

import enum
import importlib.util
import sys
import types
import weakref

import torch
from torch import Tensor

from ._tensors import HIFLOAT8


class Format(enum.IntEnum):
    """torch_npu's formats, those that mean something to a CPU."""

    ND = 2
    FRACTAL_NZ = 29


# Tensors that were cast to FRACTAL_NZ, by identity.
_nz_tensors: "weakref.WeakValueDictionary[int, Tensor]" = weakref.WeakValueDictionary()


def npu_format_cast(tensor: Tensor, acl_format: int) -> Tensor:
    """A copy of `tensor` under the format. As on the device the sizes stay those of the matrix; the bytes become
    FRACTAL_NZ when the operator first meets the weight, and stay so."""
    wanted = Format(acl_format)
    if get_npu_format(tensor) == wanted:
        return tensor
    cast = tensor.detach().clone(memory_format=torch.contiguous_format)
    if wanted == Format.FRACTAL_NZ:
        if tensor.dim() < 2:
            raise ValueError(f"tensor: expected at least two dimensions for FRACTAL_NZ, found {list(tensor.shape)}")
        _nz_tensors[id(cast)] = cast
    return cast


def get_npu_format(tensor: Tensor) -> int:
    """29 for what `npu_format_cast` made FRACTAL_NZ, 2 otherwise."""
    return int(Format.FRACTAL_NZ if _nz_tensors.get(id(tensor)) is tensor else Format.ND)


def _new_module() -> types.ModuleType:
    module = types.ModuleType("torch_npu", "mlaprolog's stand-in for torch_npu: the MLA prolog operators on the CPU.")
    for name in (
        "npu_mla_prolog", "npu_mla_prolog_v2", "npu_mla_prolog_v3", "npu_mla_prolog_v3_functional",
    ):  # fmt: skip
        setattr(module, name, getattr(torch.ops.npu, name))
    npu = types.ModuleType("torch_npu.npu")
    vars(npu).update(
        config=types.SimpleNamespace(allow_internal_format=True), is_available=lambda: False, device_count=lambda: 0
    )
    vars(module).update(
        npu_format_cast=npu_format_cast, get_npu_format=get_npu_format, Format=Format, hifloat8=HIFLOAT8, npu=npu,
        __mlaprolog__=True,
    )  # fmt: skip
    return module


def install_torch_npu() -> types.ModuleType:
    """Makes `import torch_npu` give a module with the four operators, npu_format_cast, get_npu_format, and
    npu.config, where torch_npu is not installed. Returns the module.

    Raises RuntimeError where the real torch_npu is installed: its own operators take CPU tensors then, once
    mlaprolog.torch is imported.
    """
    found = sys.modules.get("torch_npu")
    if found is not None and getattr(found, "__mlaprolog__", False):
        return found
    if found is not None or importlib.util.find_spec("torch_npu") is not None:
        raise RuntimeError("torch_npu is installed; import it and mlaprolog.torch, and its operators take CPU tensors")
    module = _new_module()
    sys.modules["torch_npu"] = module
    sys.modules["torch_npu.npu"] = vars(module)["npu"]
    if not hasattr(torch, "npu"):
        setattr(torch, "npu", vars(module)["npu"])
    return module
