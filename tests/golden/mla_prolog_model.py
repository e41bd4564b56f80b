"""NumPy golden model of the MLA prolog operator ("staged" A2/A3 numerics).

The model was written from the operator's numerical specification alone; it shares no code
and no design with the C++ sources, so that agreement between the two means something.

Rules followed everywhere:
  * a bf16 tensor is a uint16 array of bit patterns; conversions are the functions below;
  * a bf16 matmul is summed in float64, k ascending, rounded once to float32 and then to bf16;
  * an int8 matmul is exact;
  * everything else is float32, one rounding per operation, no fused multiply-add;
  * a NaN result always has the bits 0x7FC0 (bf16) or 0x7FC00000 (float32).
"""
from typing import Dict, NamedTuple, Tuple

import numpy as np

F32 = np.float32
SCENARIOS = ("non_quant", "partial", "partial_kv_per_channel", "full_int8",
             "full_int8_kv_per_tensor")
CACHE_MODES = ("PA_BSND", "PA_NZ")
LANES = 64            # width of the vector unit that sums the squares of the norm


class Dims(NamedTuple):
    """Logical sizes: hidden He, q rank Hcq, heads N, nope D, rope Dr, kv rank Hckv."""
    hidden: int
    q_rank: int
    heads: int
    nope: int
    rope: int
    kv_rank: int


# ---------------------------------------------------------------- number formats

def to_bf16(values) -> np.ndarray:
    """float32 -> bf16 bits, round to nearest even; NaN becomes 0x7FC0."""
    values = np.ascontiguousarray(values, dtype=F32)
    bits = values.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


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
    """The arch22 query cast: to binary16 and then to int8, both with ties away from zero."""
    half = round_half_away(np.asarray(values, dtype=F32))
    rounded = np.clip(np.copysign(np.floor(np.abs(half) + 0.5), half), -128, 127)
    return np.where(np.isnan(rounded), 0, rounded).astype(np.int8)


# ---------------------------------------------------------------- layouts

def block_columns(dtype) -> int:
    """C0: the columns of a 32-byte block, 16 for bf16 and 32 for int8."""
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


def cache_offsets(slot: int, width: int, block_size: int, mode: str, c0: int) -> np.ndarray:
    """Element offsets of the `width` elements of a cache row."""
    element = np.arange(width)
    if mode == "PA_BSND":
        return slot * width + element
    page, row = divmod(slot, block_size)
    return (page * block_size * width + (element // c0) * block_size * c0
            + row * c0 + element % c0)


def scatter(cache: np.ndarray, rows: np.ndarray, index: np.ndarray, mode: str) -> np.ndarray:
    """Copy of `cache` [BlockNum, BlockSize, 1, W] with row t of `rows` at slot index[t].

    Negative slots are skipped; tokens go in ascending order, so the last duplicate stays;
    without blocks nothing is written; a slot past the end is an error.
    """
    block_num, block_size, _, width = cache.shape
    c0 = block_columns(cache.dtype)
    if mode == "PA_NZ" and width % c0:
        raise ValueError(f"PA_NZ needs a row width that is a multiple of {c0}, got {width}")
    result = cache.copy()
    flat = result.reshape(-1)
    for token, slot in enumerate(index):
        if slot < 0 or block_num == 0:
            continue
        if slot >= block_num * block_size:
            raise ValueError(f"cache_index {slot} is beyond the cache")
        flat[cache_offsets(int(slot), width, block_size, mode, c0)] = rows[token]
    return result


# ---------------------------------------------------------------- steps

def matmul_bf16(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Product of bf16-valued float32 matrices: float64 sum, k ascending, one fp32 rounding.

    Written as a loop so that the order of additions does not depend on a BLAS.
    """
    left, right = left.astype(np.float64), right.astype(np.float64)
    total = np.zeros((left.shape[0], right.shape[1]))
    for k in range(left.shape[1]):
        total += left[:, k:k + 1] * right[k]
    return total.astype(F32)


def matmul_int8_dequant(left, right, token_scale, channel_scale) -> np.ndarray:
    """Exact int8 product, then * token scale, then * channel scale (arch22 order)."""
    total = left.astype(np.int64) @ right.astype(np.int64)
    if total.size and np.abs(total).max() >= 2 ** 31:
        raise OverflowError("int32 accumulator overflow")
    return (total.astype(F32) * token_scale.reshape(-1, 1)) * channel_scale.reshape(1, -1)


def rms_norm(x: np.ndarray, gamma: np.ndarray, epsilon: float) -> np.ndarray:
    """RMSNorm of each row; 64 lane sums joined by a tree of adjacent pairs."""
    length = x.shape[1]
    squares = x * x
    lanes = np.zeros((x.shape[0], LANES), dtype=F32)
    for start in range(0, length, LANES):
        chunk = squares[:, start:start + LANES]
        lanes[:, :chunk.shape[1]] += chunk
    while lanes.shape[1] > 1:
        lanes = lanes[:, 0::2] + lanes[:, 1::2]
    mean = lanes * (F32(1) / F32(length))
    root = np.sqrt(mean + F32(epsilon))
    return (x / root) * gamma


def dynamic_quant(z: np.ndarray, cast=to_int8) -> Tuple[np.ndarray, np.ndarray]:
    """int8 values and dequant scale of each row (last axis); NaN anywhere makes scale NaN."""
    largest = np.abs(z).max(axis=-1, keepdims=True)
    return cast(z * (F32(127) / largest)), largest / F32(127)


def rope(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """RoPE of [..., Dr] rows, interleaved pairs in, half-split out; returns bf16 bits.

    Both halves of cos and sin are read; they need not be equal.
    """
    h = x.shape[-1] // 2
    even, odd = x[..., 0::2], x[..., 1::2]
    first = even * cos[..., :h] + odd * (-sin[..., :h])
    second = odd * cos[..., h:] + even * sin[..., h:]
    return to_bf16(np.concatenate([first, second], axis=-1))


# ---------------------------------------------------------------- operator

def mla_prolog(tensors: Dict[str, np.ndarray], scenario: str, cache_mode: str,
               epsilon_cq: float, epsilon_ckv: float, dims: Dims) -> Dict[str, np.ndarray]:
    """Run the operator. `tensors` uses torch_npu's names; weights are 4-D NZ images.

    Returns outputs (query, query_rope, kv_cache, kr_cache and, per-tensor only,
    dequant_scale_q_nope) in the form of token_x, and intermediates by flat token:
      c_q [T,Hcq]   norm result before smooth scales; bf16 in non_quant, else float32
      c_q_int8, c_q_scale [T,1]   the dynamically quantised c_q (quantised scenarios)
      q_c [T,N,D] bf16; q_r [T,N,Dr] float32 before RoPE
      c_kv [T,Hckv] float32 norm result; k_r [T,Dr] float32 before RoPE
    """
    if scenario not in SCENARIOS or cache_mode not in CACHE_MODES:
        raise ValueError(f"unknown scenario or cache mode: {scenario}, {cache_mode}")
    with np.errstate(all="ignore"):
        return _run(tensors, scenario, cache_mode, epsilon_cq, epsilon_ckv, dims)


def _project_x(tensors, x, name, columns, dims, full) -> np.ndarray:
    """x * weight_<name>: bf16-rounded in non-quant and partial, fp32 dequantised in full."""
    weight = nz_unpack(tensors["weight_" + name], dims.hidden, columns)
    if full:
        return matmul_int8_dequant(x, weight, tensors["dequant_scale_x"],
                                   tensors["dequant_scale_w_" + name])
    return round_bf16(matmul_bf16(from_bf16(x), from_bf16(weight)))


def _project_query(tensors, c_q, scenario, dims, result) -> np.ndarray:
    """c_q * weight_uq_qr, with the quantisation of c_q; fills the c_q results."""
    columns = dims.heads * (dims.nope + dims.rope)
    weight = nz_unpack(tensors["weight_uq_qr"], dims.q_rank, columns)
    if scenario == "non_quant":
        result["c_q"] = to_bf16(c_q)
        return round_bf16(matmul_bf16(from_bf16(result["c_q"]), from_bf16(weight)))
    result["c_q"] = canonical_nan(c_q)
    smooth = tensors.get("smooth_scales_cq")
    if smooth is not None:
        c_q = c_q * smooth.reshape(1, -1)
    quantised, scale = dynamic_quant(c_q)
    result["c_q_int8"], result["c_q_scale"] = quantised, canonical_nan(scale)
    return matmul_int8_dequant(quantised, weight, scale, tensors["dequant_scale_w_uq_qr"])


def _run(tensors, scenario, cache_mode, epsilon_cq, epsilon_ckv, dims):
    full = scenario.startswith("full_int8")
    lead = tensors["token_x"].shape[:-1]
    x = tensors["token_x"].reshape(-1, dims.hidden)
    tokens = x.shape[0]
    cos = from_bf16(tensors["rope_cos"]).reshape(tokens, dims.rope)
    sin = from_bf16(tensors["rope_sin"]).reshape(tokens, dims.rope)
    gamma_cq = from_bf16(tensors["rmsnorm_gamma_cq"])
    gamma_ckv = from_bf16(tensors["rmsnorm_gamma_ckv"])
    result = {}

    # Query path.
    c_q = _project_x(tensors, x, "dq", dims.q_rank, dims, full)
    c_q = rms_norm(c_q, gamma_cq, epsilon_cq)
    q = _project_query(tensors, c_q, scenario, dims, result)
    q = q.reshape(tokens, dims.heads, dims.nope + dims.rope)
    q_c, q_r = to_bf16(q[..., :dims.nope]), q[..., dims.nope:]
    result["q_c"], result["q_r"] = q_c, canonical_nan(q_r)
    weight_uk = from_bf16(tensors["weight_uk"])
    query = np.zeros((tokens, dims.heads, dims.kv_rank), dtype=np.uint16)
    for head in range(dims.heads):
        query[:, head] = to_bf16(matmul_bf16(from_bf16(q_c[:, head]), weight_uk[head]))
    query_rope = rope(q_r, cos[:, None], sin[:, None])
    if scenario == "full_int8_kv_per_tensor":
        factor = tensors["quant_scale_ckv"].reshape(-1)[0]      # only element 0 counts
        query, scale = dynamic_quant(from_bf16(query), to_int8_query)
        query_rope = to_bf16(from_bf16(query_rope) * (factor / scale))
        result["dequant_scale_q_nope"] = canonical_nan(scale)
    result["query"] = query.reshape(lead + query.shape[1:])
    result["query_rope"] = query_rope.reshape(lead + query_rope.shape[1:])

    # Key/value path.
    kv = _project_x(tensors, x, "dkv_kr", dims.kv_rank + dims.rope, dims, full)
    c_kv = rms_norm(kv[:, :dims.kv_rank], gamma_ckv, epsilon_ckv)
    k_r = kv[:, dims.kv_rank:]
    result["c_kv"], result["k_r"] = canonical_nan(c_kv), canonical_nan(k_r)
    kr_rows = rope(k_r, cos, sin)
    if scenario == "partial_kv_per_channel":
        kv_rows = to_int8(c_kv * tensors["quant_scale_ckv"].reshape(1, -1))
        kr_rows = to_int8(from_bf16(kr_rows) * tensors["quant_scale_ckr"].reshape(1, -1))
    elif scenario == "full_int8_kv_per_tensor":
        kv_rows = to_int8(c_kv * tensors["quant_scale_ckv"].reshape(-1)[0])
    else:
        kv_rows = to_bf16(c_kv)
    index = tensors["cache_index"].reshape(-1)
    for name, rows in (("kv_cache", kv_rows), ("kr_cache", kr_rows)):
        if tensors[name].dtype != rows.dtype:
            raise TypeError(f"{name} has dtype {tensors[name].dtype}, expected {rows.dtype}")
        result[name] = scatter(tensors[name], rows, index, cache_mode)
    return result
