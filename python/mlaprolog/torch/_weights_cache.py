"""Weights handles for the weights that the operators get anew with every call.

2-D matrices are packed to FRACTAL_NZ once and kept as long as their storages live; 4-D ones are read in place. Who made a
storage's StorageImpl cannot be fooled by a reused address: a weak reference keeps the address from being reused.
Changes in place are seen by torch's version counters.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .. import _names, _native
from ._tensors import Tensor, code_of, describe

NAMES = _native.WEIGHT_TENSORS
_MATRICES = frozenset(NAMES.index(name) for name in ("weight_dq", "weight_uq_qr", "weight_dkv_kr"))

_storage = Tensor.untyped_storage if hasattr(Tensor, "untyped_storage") else Tensor._storage  # torch 2 or 1


def _storages_have_identity() -> bool:
    """Whether a storage has one Python object for life (since torch 2.1), to which a weak reference is worth something."""
    tensor = torch.empty(1)
    return weakref.ref(_storage(tensor))() is not None


_ANCHORS_ARE_STORAGES = _storages_have_identity()


def _anchor(tensor: Tensor) -> Any:
    if _ANCHORS_ARE_STORAGES:
        return _storage(tensor)
    return tensor if tensor._base is None else tensor._base


class _Entry:
    __slots__ = ("native", "facts", "versions", "owned", "anchors", "identities", "__weakref__")

    def __init__(self, native: Any, versions: List[int], owned: List[Tensor]) -> None:
        self.native = native
        self.facts = native.facts()
        self.versions = versions
        self.owned = owned  # contiguous copies that a borrowing handle reads
        self.anchors: Tuple[Any, ...] = ()
        self.identities: Tuple[StorageWeakRef, ...] = ()


_entries: Dict[Any, _Entry] = {}
_lock = threading.Lock()


def find(
    tensors: Tuple[Optional[Tensor], ...], declared: Tuple[Optional[int], ...], hidden: int, rope: int
) -> _Entry:
    """The handle of these weights, in the order of NAMES, and what their *_dtype arguments declare. He and Dr are the
    call's."""
    identity: List[Any] = [hidden, rope, declared]
    versions: List[int] = []
    for tensor in tensors:
        if tensor is None:
            identity.append(None)
            continue
        identity += (_storage(tensor)._cdata, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        try:
            versions.append(tensor._version)
        except RuntimeError:  # made in inference mode, which does not count changes
            versions.append(0)
    key = tuple(identity)
    entry = _entries.get(key)
    if entry is not None and entry.versions == versions:
        return entry
    with _lock:
        entry = _entries.get(key)
        if entry is None or entry.versions != versions:
            _entries.pop(key, None)  # before the new one is made, so that a large layer is not there twice
            del entry
            entry = _make(tensors, declared, hidden, rope, versions)
            given = [tensor for tensor in tensors if tensor is not None]

            def drop(_: Any, key: Any = key, wanted: Any = weakref.ref(entry)) -> None:
                # Runs whenever a storage dies, so without the lock; an entry made since then stays.
                if _entries.get(key) is wanted():
                    _entries.pop(key, None)

            entry.identities = tuple(StorageWeakRef(_storage(tensor)) for tensor in given)
            entry.anchors = tuple(weakref.ref(_anchor(tensor), drop) for tensor in given)
            _entries[key] = entry
    return entry


def _make(
    tensors: Tuple[Optional[Tensor], ...], declared: Tuple[Optional[int], ...], hidden: int, rope: int,
    versions: List[int],
) -> _Entry:  # fmt: skip
    # A borrowing handle reads all its tensors in place, so it needs all matrices in FRACTAL_NZ.
    borrows = all(tensors[place].dim() == 4 for place in _MATRICES)
    owned: List[Tensor] = []
    descriptors: List[Any] = []
    for place, tensor in enumerate(tensors):
        if tensor is None:
            descriptors.append(None)
            continue
        if borrows and not tensor.is_contiguous():
            tensor = tensor.contiguous()
            owned.append(tensor)
        is_nz = place in _MATRICES and tensor.dim() == 4
        layout = _names.FRACTAL_NZ if is_nz else _names.ROW_MAJOR
        if is_nz and not borrows and not tensor.is_contiguous():
            tensor = tensor.contiguous()
            owned.append(tensor)
        descriptors.append(describe(tensor, code_of(NAMES[place], tensor, declared[place]), layout, owned))
    weight_uk, gamma_cq = tensors[NAMES.index("weight_uk")], tensors[NAMES.index("rmsnorm_gamma_cq")]
    if weight_uk.dim() != 3 or gamma_cq.dim() != 1:
        raise ValueError(f"weight_uk, rmsnorm_gamma_cq: expected [N, D, Hckv] and [Hcq], found "
                         f"{list(weight_uk.shape)} and {list(gamma_cq.shape)}")  # fmt: skip
    heads, nope, kv_rank = weight_uk.shape
    dims = (hidden, gamma_cq.shape[0], heads, nope, rope, kv_rank)
    native = _native.Weights(tuple(descriptors), _names.BORROW if borrows else _names.COPY, dims)
    return _Entry(native, versions, owned if borrows else [])


def clear() -> None:
    """Forgets all packed weights. Only needed after changes that torch does not count: through `.data`, NumPy, or in
    inference mode."""
    with _lock:
        _entries.clear()


def count() -> int:
    """How many sets of weights are kept."""
    return len(_entries)


def owned_bytes() -> int:
    """How much memory their packed copies take."""
    return sum(entry.facts[3] for entry in list(_entries.values()))
