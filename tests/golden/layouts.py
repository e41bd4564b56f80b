"""Memory layouts of the golden model: FRACTAL_NZ weights, cache rows, slots of tokens."""
from typing import List, Optional, Tuple

import numpy as np

ROW_MODES = ("PA_BSND", "PA_BLK_BSND", "BSND", "TND")
NZ_MODES = ("PA_NZ", "PA_BLK_NZ")
CACHE_MODES = ROW_MODES + NZ_MODES


def block_columns(dtype) -> int:
    """C0: the columns of a 32-byte block, 16 for bf16 and 32 for 8-bit types."""
    return 32 // np.dtype(dtype).itemsize


def nz_offset(k: int, n: int, rows: int, c0: int) -> int:
    """Element offset of w[k, n] in the FRACTAL_NZ image of a weight with `rows` rows."""
    padded_rows = -(-rows // 16) * 16
    return (n // c0) * padded_rows * c0 + k * c0 + n % c0


def nz_pack(weight: np.ndarray) -> np.ndarray:
    """Logical (K, N) -> storage (ceil(N/C0), ceil(K/16), 16, C0), zero padded."""
    rows, columns = weight.shape
    c0 = block_columns(weight.dtype)
    k_blocks, n_blocks = -(-rows // 16), -(-columns // c0)
    padded = np.zeros((k_blocks * 16, n_blocks * c0), dtype=weight.dtype)
    padded[:rows, :columns] = weight
    blocks = padded.reshape(k_blocks, 16, n_blocks, c0).transpose(2, 0, 1, 3)
    return np.ascontiguousarray(blocks)


def nz_unpack(storage: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Storage (ceil(N/C0), ceil(K/16), 16, C0) -> logical (rows, columns)."""
    c0 = block_columns(storage.dtype)
    expected = (-(-columns // c0), -(-rows // 16), 16, c0)
    if storage.shape != expected:
        raise ValueError(f"NZ weight has shape {storage.shape}, expected {expected}")
    padded = storage.transpose(1, 2, 0, 3).reshape(expected[1] * 16, expected[0] * c0)
    return np.ascontiguousarray(padded[:rows, :columns])


def logical_weight(storage: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """(rows, columns) of a weight tensor: 4-D is an NZ image, 2-D is row-major."""
    if storage.ndim == 4:
        return nz_unpack(storage, rows, columns)
    if storage.shape != (rows, columns):
        raise ValueError(f"weight has shape {storage.shape}, expected {(rows, columns)}")
    return storage


def cache_offsets(slot: int, width: int, block_size: int, mode: str, c0: int) -> np.ndarray:
    """Element offsets of the `width` elements of a cache row."""
    element = np.arange(width)
    if mode in ROW_MODES:
        return slot * width + element
    page, row = divmod(slot, block_size)
    return (page * block_size * width + (element // c0) * block_size * c0
            + row * c0 + element % c0)


def token_slots(mode: str, lead: Tuple[int, ...], index: Optional[np.ndarray],
                sequence_ends: Optional[np.ndarray], block_size: int) -> List[int]:
    """The slot of each token; -1 for one that is not stored.

    PA_BSND, PA_NZ: cache_index has one slot per token. PA_BLK_*: it has ceil(length / BlockSize)
    pages for each sequence, which are the batches of a (B, S) call or, in a (T) call, end at the
    tokens that sequence_ends names. BSND, TND: the token's number.
    """
    tokens = int(np.prod(lead, dtype=np.int64))
    if mode in ("BSND", "TND"):
        return list(range(tokens))
    entries = [int(entry) for entry in index.reshape(-1)]
    if mode in ("PA_BSND", "PA_NZ"):
        return [max(slot, -1) for slot in entries]
    if len(lead) == 2:
        lengths = [lead[1]] * lead[0]
    else:
        ends = [0] + [int(end) for end in sequence_ends]
        lengths = [end - begin for begin, end in zip(ends, ends[1:])]
    slots, base = [], 0
    for length in lengths:
        for position in range(length):
            page = entries[base + position // block_size]
            slots.append(page * block_size + position % block_size if page >= 0 else -1)
        base += -(-length // block_size)
    if len(slots) != tokens or base != len(entries):
        raise ValueError(f"sequences of {len(slots)} tokens and {base} pages, "
                         f"expected {tokens} and {len(entries)}")
    return slots


def scatter(cache: np.ndarray, rows: np.ndarray, slots: List[int], mode: str) -> np.ndarray:
    """Copy of `cache` with row t of `rows` at slots[t].

    PA caches are [BlockNum, BlockSize, 1, W], the others [B, S, 1, W] or [T, 1, W]. Negative slots
    are skipped; tokens go in ascending order, so the last duplicate stays; into a cache without
    elements nothing is written; a slot past the end is an error.
    """
    result = cache.copy()
    if cache.size == 0:
        return result
    width, block_size = cache.shape[-1], cache.shape[1]
    c0 = block_columns(cache.dtype)
    if mode in NZ_MODES and width % c0:
        raise ValueError(f"{mode} needs a row width that is a multiple of {c0}, got {width}")
    flat = result.reshape(-1)
    for token, slot in enumerate(slots):
        if slot < 0:
            continue
        if slot >= cache.size // width:
            raise ValueError(f"slot {slot} is beyond the cache")
        flat[cache_offsets(slot, width, block_size, mode, c0)] = rows[token]
    return result
