"""NumPy golden model of the MLA prolog operator ("staged" numerics, A2/A3 devices and the 950).

The model was written from the operator's numerical specification alone; it shares no code
and no design with the C++ sources, so that agreement between the two means something.

Rules followed everywhere:
  * a matmul of bf16 or 8-bit float values is summed in float64, k ascending, and rounded once to
    float32; an int8 matmul is exact;
  * everything else is float32, one rounding per operation, no fused multiply-add;
  * a NaN result always has the bits 0x7FC0 (bf16) or 0x7FC00000 (float32).
"""
from typing import Dict, NamedTuple, Optional, Tuple

import numpy as np

from layouts import CACHE_MODES, logical_weight, scatter, token_slots
from number_formats import (E4M3, F32, HIF8, INT8, Format, canonical_nan, from_bf16, from_e8m0,
                            round_bf16, to_bf16, to_bf16_away, to_e4m3, to_int8_query)

# Scenario -> weightQuantMode, kvCacheQuantMode.
SCENARIOS = {"non_quant": (0, 0), "partial": (1, 0), "partial_kv_per_channel": (1, 2),
             "partial_kv_per_group": (1, 3)}
for _name, _weight_quant in (("int8", 2), ("mxfp8", 3), ("fp8", 4), ("hif8", 5)):
    SCENARIOS["full_" + _name] = (_weight_quant, 0)
    SCENARIOS[f"full_{_name}_kv_per_tensor"] = (_weight_quant, 1)
    SCENARIOS[f"full_{_name}_kv_per_group"] = (_weight_quant, 3)
SOCS = ("ascend910b", "ascend950")
MX = 3                # weightQuantMode of E4M3 with E8M0 scales
LANES = 64            # width of the vector unit that sums the squares of the norm
TILE = 128            # columns of the key that share a scale in the per-group caches
MX_BLOCK = 32         # values that share an E8M0 scale
GROUP_FLOOR = F32(1e-4)     # of the largest magnitude of a tile of 8-bit floats

# Where a value is rounded to bf16 on its way. A point can be toggled (rounded where it must not
# be, or not where it must), to see what a wrong rounding does to the outputs.
POINTS = ("cq", "ckv_kr", "norm_cq", "qc", "qr", "norm_ckv", "qn", "rope")


class Dims(NamedTuple):
    """Logical sizes: hidden He, q rank Hcq, heads N, nope D, rope Dr, kv rank Hckv."""
    hidden: int
    q_rank: int
    heads: int
    nope: int
    rope: int
    kv_rank: int


class Mode(NamedTuple):
    """What the operator is told besides tensors and sizes."""
    scenario: str
    cache_mode: str
    epsilon_cq: float = 1e-5
    epsilon_ckv: float = 1e-5
    soc: str = "ascend910b"
    qc_qr_scale: float = 1.0
    kc_scale: float = 1.0

    @property
    def weight_quant(self) -> int:
        return SCENARIOS[self.scenario][0]

    @property
    def kv_quant(self) -> int:
        return SCENARIOS[self.scenario][1]

    @property
    def full(self) -> bool:
        return self.weight_quant >= 2

    @property
    def is_950(self) -> bool:
        return self.soc == "ascend950"

    @property
    def format(self) -> Format:
        """The 8-bit type of the call."""
        return {0: None, 1: INT8, 2: INT8, MX: E4M3, 4: E4M3, 5: HIF8}[self.weight_quant]


def group_row_bytes(dims: Dims) -> int:
    """Bytes of a per-group cache row: 8-bit c_kv, bf16 rope, a float32 scale for each tile."""
    return dims.kv_rank + 2 * dims.rope + 4 * -(-dims.kv_rank // TILE)


# ---------------------------------------------------------------- steps

def matmul(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Product of matrices: float64 sum, k ascending, one fp32 rounding.

    Written as a loop so that the order of additions does not depend on a BLAS.
    """
    left, right = left.astype(np.float64), right.astype(np.float64)
    total = np.zeros((left.shape[0], right.shape[1]))
    for k in range(left.shape[1]):
        total += left[:, k:k + 1] * right[k]
    return total.astype(F32)


def matmul_int8(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Exact int8 product as float32."""
    total = left.astype(np.int64) @ right.astype(np.int64)
    if total.size and np.abs(total).max() >= 2 ** 31:
        raise OverflowError("int32 accumulator overflow")
    return total.astype(F32)


def matmul_mx(left, left_scale, right, right_scale) -> np.ndarray:
    """E4M3 product; left_scale [M, K/32] and right_scale [N, K/32] are E8M0 codes."""
    left_scale = np.repeat(from_e8m0(left_scale), MX_BLOCK, axis=1)
    right_scale = np.repeat(from_e8m0(right_scale), MX_BLOCK, axis=1).T
    return matmul(E4M3.decode(left) * left_scale, E4M3.decode(right) * right_scale)


def dequantise(total, token_scale, channel_scale, is_950: bool) -> np.ndarray:
    """Accumulator times token scale and channel scale; the 950 takes the channel first."""
    token_scale, channel_scale = token_scale.reshape(-1, 1), channel_scale.reshape(1, -1)
    if is_950:
        return (total * channel_scale) * token_scale
    return (total * token_scale) * channel_scale


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


def apply_factor(y: np.ndarray, factor: float) -> np.ndarray:
    """y * factor, unless the factor is closer to 1 than FLT_EPSILON or is NaN."""
    factor = F32(factor)
    enabled = np.abs(factor - F32(1)) >= np.finfo(F32).eps
    return y * factor if enabled else y


def dynamic_quant(z: np.ndarray, fmt: Format = INT8, is_950: bool = False, cast=None):
    """8-bit values and dequant scale of each row (last axis); NaN anywhere makes the scale NaN."""
    cast = cast or fmt.encode
    largest = np.abs(z).max(axis=-1, keepdims=True)
    if is_950:
        scale = largest * (F32(1) / F32(fmt.largest))
        return cast(z / scale), scale
    return cast(z * (F32(fmt.largest) / largest)), largest / F32(fmt.largest)


def mx_quant(y: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """E4M3 codes and E8M0 scales of rows in blocks of 32; goes through bf16 with ties away."""
    bits = to_bf16_away(y).reshape(y.shape[0], y.shape[1] // MX_BLOCK, MX_BLOCK)
    exponent = ((bits >> 7) & 0xFF).max(axis=-1, keepdims=True).astype(np.int64)
    scale = np.where(exponent == 255, 255, np.maximum(exponent - 8, 0))
    data = round_bf16(from_bf16(bits) * np.ldexp(F32(1), 127 - scale).astype(F32))
    codes = to_e4m3(np.clip(data, -448, 448))
    codes = np.where(exponent == 0, 0, codes).astype(np.uint8)
    return codes.reshape(y.shape), scale[..., 0].astype(np.uint8)


def rope(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """RoPE of [..., Dr] rows in float32, interleaved pairs in, half-split out.

    Both halves of cos and sin are read; they need not be equal.
    """
    h = x.shape[-1] // 2
    even, odd = x[..., 0::2], x[..., 1::2]
    first = even * cos[..., :h] + odd * (-sin[..., :h])
    second = odd * cos[..., h:] + even * sin[..., h:]
    return np.concatenate([first, second], axis=-1)


def group_rows(c: np.ndarray, k_r: np.ndarray, fmt: Format, alpha) -> np.ndarray:
    """Per-group cache rows as bytes: 8-bit c, bf16 bits k_r, float32 scales of the tiles.

    int8 clips at alpha times the largest magnitude; the 8-bit floats do not clip, and take the
    largest magnitude to be 1e-4 at least.
    """
    codes, scales = [], []
    for start in range(0, c.shape[1], TILE):
        tile = c[:, start:start + TILE]
        largest = np.abs(tile).max(axis=1, keepdims=True)
        if fmt is INT8:
            limit = largest * F32(alpha)
            clipped = np.minimum(np.maximum(tile, -limit), limit)
            scale = limit * (F32(1) / F32(127))
            quotient = clipped * (F32(1) / scale)
        else:
            scale = np.maximum(largest, GROUP_FLOOR) * (F32(1) / F32(fmt.largest))
            quotient = tile / scale
        codes.append(fmt.encode(quotient).view(np.uint8))
        scales.append(canonical_nan(scale))
    parts = codes + [part.astype(part.dtype.newbyteorder("<")).view(np.uint8)
                     for part in (k_r, np.concatenate(scales, axis=1))]
    return np.concatenate(parts, axis=1)


# ---------------------------------------------------------------- operator

def mla_prolog(tensors: Dict[str, np.ndarray], mode: Mode, dims: Dims,
               toggled: Optional[str] = None) -> Dict[str, np.ndarray]:
    """Run the operator. `tensors` uses torch_npu's names; `toggled` names one of POINTS.

    Returns outputs in the form of token_x: query, query_rope, kv_cache, kr_cache, query_norm,
    dequant_scale_q_norm (quantised scenarios) and dequant_scale_q_nope (per-tensor);
    and intermediates by flat token:
      c_q [T,Hcq]   norm result, with qc_qr_scale, before smooth scales; bf16 in non_quant
      c_q_int8, c_q_scale [T,1]   the dynamically quantised c_q (int8 scenarios)
      q_c [T,N,D] bf16; q_r [T,N,Dr] float32 before RoPE
      c_kv [T,Hckv] float32 norm result, with kc_scale; k_r [T,Dr] float32 before RoPE
    """
    if (mode.scenario not in SCENARIOS or mode.cache_mode not in CACHE_MODES
            or mode.soc not in SOCS or toggled not in POINTS + (None,)):
        raise ValueError(f"unknown mode {mode} or point {toggled}")
    with np.errstate(all="ignore"):
        return _Run(tensors, mode, dims, toggled).run()


class _Run:
    """One call; the steps share the arguments."""

    def __init__(self, tensors, mode, dims, toggled):
        self.tensors, self.mode, self.dims, self.toggled = tensors, mode, dims, toggled
        self.lead = tensors["token_x"].shape[:-1]
        self.x = tensors["token_x"].reshape(-1, dims.hidden)
        self.tokens = self.x.shape[0]
        self.cos = from_bf16(tensors["rope_cos"]).reshape(self.tokens, dims.rope)
        self.sin = from_bf16(tensors["rope_sin"]).reshape(self.tokens, dims.rope)
        self.result = {}

    def bf(self, point: str, rounded: bool, values):
        """`values`, rounded to bf16 if `rounded`, the other way round at the toggled point."""
        return round_bf16(values) if rounded != (point == self.toggled) else values

    def project(self, left, left_scale, name, columns) -> np.ndarray:
        """left * weight_<name> in float32, dequantised; the weight's type decides how."""
        weight = logical_weight(self.tensors["weight_" + name], left.shape[1], columns)
        if weight.dtype == np.uint16:
            return matmul(left, from_bf16(weight))
        scale = self.tensors["dequant_scale_w_" + name]
        if self.mode.weight_quant == MX:
            return matmul_mx(left, left_scale, weight, scale)
        if weight.dtype == np.int8:
            total = matmul_int8(left, weight)
        else:
            total = matmul(self.mode.format.decode(left), self.mode.format.decode(weight))
        return dequantise(total, left_scale, scale, self.mode.is_950)

    def project_x(self, point, name, columns) -> np.ndarray:
        x = self.x if self.mode.full else from_bf16(self.x)
        values = self.project(x, self.tensors.get("dequant_scale_x"), name, columns)
        return self.bf(point, not self.mode.full, values)

    def norm(self, x, which, epsilon, factor) -> np.ndarray:
        gamma = from_bf16(self.tensors["rmsnorm_gamma_" + which])
        return apply_factor(rms_norm(x, gamma, epsilon), factor)

    def project_query(self, c_q) -> np.ndarray:
        """c_q * weight_uq_qr, with the quantisation of c_q; fills the c_q results."""
        mode, result = self.mode, self.result
        columns = self.dims.heads * (self.dims.nope + self.dims.rope)
        c_q = self.bf("norm_cq", mode.weight_quant == 0, c_q)
        if mode.weight_quant == 0:
            result["c_q"] = result["query_norm"] = to_bf16(c_q)
            return self.project(c_q, None, "uq_qr", columns)
        result["c_q"] = canonical_nan(c_q)
        smooth = self.tensors.get("smooth_scales_cq")
        if smooth is not None:
            c_q = c_q * smooth.reshape(1, -1)
        if mode.weight_quant == MX:
            values, scale = mx_quant(c_q)
        else:
            values, scale = dynamic_quant(c_q, mode.format, mode.is_950)
            scale = canonical_nan(scale)
        result["query_norm"], result["dequant_scale_q_norm"] = values, scale
        if mode.format is INT8:
            result["c_q_int8"], result["c_q_scale"] = values, scale
        return self.project(values, scale, "uq_qr", columns)

    def query_path(self):
        mode, dims, result, tensors = self.mode, self.dims, self.result, self.tensors
        c_q = self.project_x("cq", "dq", dims.q_rank)
        q = self.project_query(self.norm(c_q, "cq", mode.epsilon_cq, mode.qc_qr_scale))
        q = q.reshape(self.tokens, dims.heads, dims.nope + dims.rope)
        q_c = self.bf("qc", True, q[..., :dims.nope])
        q_r = self.bf("qr", mode.weight_quant == 0, q[..., dims.nope:])
        result["q_c"], result["q_r"] = to_bf16(q_c), canonical_nan(q_r)
        weight_uk = from_bf16(tensors["weight_uk"])
        query = np.zeros((self.tokens, dims.heads, dims.kv_rank), dtype=F32)
        for head in range(dims.heads):
            query[:, head] = matmul(q_c[:, head], weight_uk[head])
        query = self.bf("qn", True, query)
        query_rope = self.bf("rope", True, rope(q_r, self.cos[:, None], self.sin[:, None]))
        if mode.kv_quant == 1:
            factor = tensors["quant_scale_ckv"].reshape(-1)[0]      # only element 0 counts
            cast = to_int8_query if mode.format is INT8 and not mode.is_950 else None
            query, scale = dynamic_quant(query, mode.format, mode.is_950, cast)
            query_rope = query_rope * (factor / scale)
            result["dequant_scale_q_nope"] = canonical_nan(scale)
        else:
            query = to_bf16(query)
        result["query"] = query.reshape(self.lead + query.shape[1:])
        result["query_rope"] = to_bf16(query_rope).reshape(self.lead + query_rope.shape[1:])
        result["query_norm"] = result["query_norm"].reshape(self.lead + (dims.q_rank,))

    def key_path(self):
        mode, dims, result, tensors = self.mode, self.dims, self.result, self.tensors
        kv = self.project_x("ckv_kr", "dkv_kr", dims.kv_rank + dims.rope)
        c_kv = self.norm(kv[:, :dims.kv_rank], "ckv", mode.epsilon_ckv, mode.kc_scale)
        k_r = kv[:, dims.kv_rank:]
        result["c_kv"], result["k_r"] = canonical_nan(c_kv), canonical_nan(k_r)
        c_kv = self.bf("norm_ckv", False, c_kv)
        k_r = self.bf("rope", True, rope(k_r, self.cos, self.sin))
        if mode.kv_quant == 0:
            kv_rows, kr_rows = to_bf16(c_kv), to_bf16(k_r)
        elif mode.kv_quant == 1:
            kv_rows = mode.format.encode(c_kv * tensors["quant_scale_ckv"].reshape(-1)[0])
            kr_rows = to_bf16(k_r)
        elif mode.kv_quant == 2:
            kv_rows = INT8.encode(c_kv * tensors["quant_scale_ckv"].reshape(1, -1))
            kr_rows = INT8.encode(k_r * tensors["quant_scale_ckr"].reshape(1, -1))
        else:
            alpha = tensors["k_nope_clip_alpha"][0] if mode.format is INT8 else None
            kv_rows = group_rows(c_kv, to_bf16(k_r), mode.format, alpha).view(mode.format.dtype)
            kr_rows = np.zeros((self.tokens, 0), dtype=np.uint16)
        kv_cache = tensors["kv_cache"]
        slots = None
        if kv_cache.size:
            slots = token_slots(mode.cache_mode, self.lead, tensors.get("cache_index"),
                                tensors.get("actual_seq_len"), kv_cache.shape[1])
        for name, rows in (("kv_cache", kv_rows), ("kr_cache", kr_rows)):
            if tensors[name].dtype != rows.dtype:
                raise TypeError(f"{name} has dtype {tensors[name].dtype}, expected {rows.dtype}")
            result[name] = scatter(tensors[name], rows, slots, mode.cache_mode)

    def run(self):
        self.query_path()
        self.key_path()
        return self.result
