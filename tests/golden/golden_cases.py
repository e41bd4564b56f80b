"""The table of golden cases and the generation of their input tensors.

Everything is drawn from numpy.random.RandomState (its stream is frozen by NumPy) with the
seed of the case, so a case can be added or removed without changing the others.
"""
from typing import Dict, NamedTuple, Tuple

import numpy as np

from mla_prolog_model import Dims, F32, nz_pack, to_bf16

BF16_SENTINEL = 0x7FC1      # a NaN pattern that no computed value has
INT8_SENTINEL = 0x55

A = Dims(96, 64, 3, 32, 16, 64)
A32 = Dims(96, 64, 3, 32, 32, 64)       # Dr is a multiple of 32: int8 krCache in PA_NZ
B = Dims(80, 48, 1, 24, 8, 48)
B16 = Dims(80, 48, 1, 24, 16, 48)       # Dr is a multiple of 16: bf16 krCache in PA_NZ
B64 = Dims(80, 48, 1, 24, 16, 64)       # Hckv is a multiple of 32: int8 kvCache in PA_NZ
C = Dims(37, 21, 3, 7, 6, 33)           # nothing is a multiple of anything
TINY = Dims(20, 10, 1, 5, 4, 16)


class Case(NamedTuple):
    """One golden file. `shape` is (T,) or (B, S); `index` is explicit or drawn at random."""
    name: str
    scenario: str
    smooth: bool
    cache_mode: str
    shape: Tuple[int, ...]
    dims: Dims
    covers: str
    seed: int
    eps: Tuple[str, str] = ("1e-5", "1e-5")
    blocks: Tuple[int, int] = (3, 16)           # BlockNum, BlockSize
    index: Tuple[int, ...] = ()
    special: Tuple[Tuple[int, str], ...] = ()   # (token, kind)
    nonfinite: Tuple[int, ...] = ()             # tokens with a NaN or Inf in some output
    rope: str = "positions"                     # or "random_halves"
    power_of_two_scales: bool = False


NQ, P, PC, FI, FT = ("non_quant", "partial", "partial_kv_per_channel", "full_int8",
                     "full_int8_kv_per_tensor")
ND, NZ = "PA_BSND", "PA_NZ"

CASES = (
    # Four cases a scenario: smooth x cache mode x token form pairwise.
    Case("nq_bsnd_2d", NQ, False, ND, (5,), A, "base", 101),
    Case("nq_nz_3d", NQ, False, NZ, (2, 3), A, "B and S above 1", 102, blocks=(2, 32)),
    Case("nq_nz_2d", NQ, False, NZ, (17,), B16, "17 tokens", 103, eps=("1e-6", "1e-5")),
    Case("nq_bsnd_3d_odd", NQ, False, ND, (1, 2), C, "odd sizes, padded NZ weights", 104),
    Case("partial_bsnd_2d_smooth", P, True, ND, (17,), A, "17 tokens", 201),
    Case("partial_nz_3d", P, False, NZ, (1, 5), B16, "base", 202, eps=("1e-5", "1e-6")),
    Case("partial_nz_2d_smooth", P, True, NZ, (2,), A, "base", 203),
    Case("partial_bsnd_3d_odd", P, False, ND, (2, 1), C, "odd sizes, padded NZ weights", 204),
    Case("partial_pc_bsnd_2d_odd", PC, False, ND, (5,), C, "odd sizes, padded NZ weights", 301),
    Case("partial_pc_nz_3d_smooth", PC, True, NZ, (2, 3), A32, "B and S above 1", 302),
    Case("partial_pc_nz_2d", PC, False, NZ, (17,), A32, "17 tokens", 303),
    Case("partial_pc_bsnd_3d_smooth", PC, True, ND, (1, 1), B, "one token", 304),
    Case("full_bsnd_2d_smooth", FI, True, ND, (5,), C, "odd sizes, padded NZ weights", 401),
    Case("full_nz_3d", FI, False, NZ, (2, 1), A, "base", 402),
    Case("full_nz_2d_smooth", FI, True, NZ, (1,), B16, "one token", 403),
    Case("full_bsnd_3d", FI, False, ND, (17, 1), A, "17 tokens", 404),
    Case("full_pt_bsnd_2d", FT, False, ND, (17,), A, "17 tokens", 501),
    Case("full_pt_nz_3d_smooth", FT, True, NZ, (2, 3), A, "B and S above 1", 502),
    Case("full_pt_nz_2d", FT, False, NZ, (5,), B64, "base", 503),
    Case("full_pt_bsnd_3d_smooth_odd", FT, True, ND, (1, 2), C,
         "odd sizes, padded NZ weights", 504),
    # cache_index.
    Case("nq_index_negative", NQ, False, ND, (5,), B, "negative slots: -1, -16, INT64_MIN", 601,
         blocks=(1, 16), index=(-1, 7, -16, 0, -2 ** 63)),
    Case("nq_index_all_negative_nz", NQ, False, NZ, (2,), B16, "every slot negative", 602,
         index=(-1, -1)),
    Case("nq_index_duplicate_nz", NQ, False, NZ, (5,), B16, "duplicate slots, last wins", 603,
         index=(20, 3, 20, 3, 20)),
    Case("partial_pc_index_mixed", PC, True, ND, (5,), B, "duplicate and negative slots", 604,
         index=(47, -3, 5, 47, 5)),
    Case("partial_pc_index_mixed_nz", PC, False, NZ, (1, 5), A32, "duplicate and negative slots",
         605, index=(16, 16, -1, 31, 15)),
    Case("nq_no_blocks", NQ, False, ND, (2,), B, "BlockNum 0", 606, blocks=(0, 16)),
    Case("partial_pc_no_blocks_nz", PC, True, NZ, (1, 2), A32, "BlockNum 0", 607,
         blocks=(0, 16)),
    # Special tokens; the other tokens must not notice.
    Case("nq_zero_token", NQ, False, ND, (5,), B, "token 2 all zero", 701, special=((2, "zero"),)),
    Case("partial_zero_token", P, True, NZ, (2,), B16, "token 0 all zero: scale 0, int8 0", 702,
         special=((0, "zero"),)),
    Case("partial_pc_zero_token", PC, False, ND, (2, 1), C, "token 1 all zero", 703,
         special=((1, "zero"),)),
    Case("full_zero_token", FI, False, ND, (2,), B, "token 1 all zero", 704,
         special=((1, "zero"),)),
    Case("full_pt_zero_token", FT, True, ND, (2,), B,
         "token 0 all zero: query scale 0, query_rope NaN", 705, special=((0, "zero"),),
         nonfinite=(0,)),
    Case("nq_inf_nan", NQ, False, ND, (5,), A, "token 1 has Inf, 3 NaN, 4 -Inf", 706,
         special=((1, "inf"), (3, "nan"), (4, "neg_inf")), nonfinite=(1, 3, 4)),
    Case("partial_inf_nan", P, True, NZ, (1, 5), A, "token 1 has Inf, 3 NaN, 4 -Inf", 707,
         special=((1, "inf"), (3, "nan"), (4, "neg_inf")), nonfinite=(1, 3, 4)),
    Case("partial_pc_inf_nan", PC, False, ND, (5,), B, "token 1 has Inf, 3 NaN, 4 -Inf", 708,
         special=((1, "inf"), (3, "nan"), (4, "neg_inf")), nonfinite=(1, 3, 4)),
    Case("nq_denormal", NQ, False, ND, (5,), B,
         "token 1 all bf16 denormals, token 3 every other element", 709, eps=("1e-6", "1e-6"),
         special=((1, "denormal"), (3, "half_denormal"))),
    # eps, RoPE tables, ties.
    Case("nq_eps_zero", NQ, False, ND, (2,), B, "both eps 0", 801, eps=("0", "0")),
    Case("partial_eps_zero_zero_token", P, False, ND, (2,), B,
         "both eps 0 and token 1 all zero: 0/0 in the norm", 802, eps=("0", "0"),
         special=((1, "zero"),), nonfinite=(1,)),
    Case("nq_eps_big", NQ, False, NZ, (1, 2), B16, "eps 2.5 and 40: eps is inside the root", 803,
         eps=("2.5", "40")),
    Case("full_eps_big", FI, True, ND, (2,), B, "eps 40 and 2.5", 804, eps=("40", "2.5")),
    Case("partial_rope_random", P, True, ND, (5,), A, "unequal halves of sin and cos", 805,
         rope="random_halves"),
    Case("full_pt_rope_random", FT, False, NZ, (2,), A, "unequal halves of sin and cos", 806,
         rope="random_halves"),
    Case("partial_pc_kr_ties", PC, False, ND, (17,), B,
         "quant_scale_ckr powers of two: many exact ties in the int8 krCache", 807,
         power_of_two_scales=True),
    Case("nq_tiny", NQ, False, ND, (1,), TINY, "smallest file", 808, blocks=(1, 16)),
)


def _quantise(values: np.ndarray, axis: int) -> Tuple[np.ndarray, np.ndarray]:
    """Symmetric int8 quantisation along `axis`; an all-zero row gets scale 1/127."""
    largest = np.abs(values).max(axis=axis, keepdims=True)
    scale = (np.where(largest == 0, 1.0, largest) / 127).astype(F32)
    return np.clip(np.rint(values / scale), -127, 127).astype(np.int8), scale


def _weight(rng, rows: int, columns: int, gain: float, int8: bool):
    """NZ image of a random weight with standard deviation gain/sqrt(rows), and its scale."""
    values = rng.standard_normal((rows, columns)) * (gain / np.sqrt(rows))
    if not int8:
        return nz_pack(to_bf16(values)), None
    quantised, scale = _quantise(values, axis=0)
    return nz_pack(quantised), scale


def _apply_special(bits: np.ndarray, kind: str, rng) -> None:
    """Turn the bf16 row `bits` of token_x into a special token, in place."""
    one = {"inf": 0x7F80, "neg_inf": 0xFF80, "nan": 0x7FC0}
    if kind == "zero":
        bits[:] = 0
    elif kind in one:
        bits[bits.size // 3] = one[kind]
    else:
        denormals = rng.randint(1, 0x80, bits.size) | (rng.randint(0, 2, bits.size) << 15)
        step = {"denormal": 1, "half_denormal": 2}[kind]
        bits[::step] = denormals[::step]


def _rope_tables(rng, case: Case, tokens: int):
    half = case.dims.rope // 2
    if case.rope == "random_halves":
        tables = rng.uniform(-1, 1, (2, tokens, case.dims.rope))
        return to_bf16(tables[0]), to_bf16(tables[1])
    positions = rng.randint(0, 4096, tokens)
    angles = positions[:, None] * 10000.0 ** (-np.arange(half) / half)
    angles = np.concatenate([angles, angles], axis=1)
    return to_bf16(np.sin(angles)), to_bf16(np.cos(angles))


def make_inputs(case: Case) -> Dict[str, np.ndarray]:
    """The input tensors of a case, by torch_npu name."""
    rng = np.random.RandomState(case.seed)
    d = case.dims
    tokens = int(np.prod(case.shape))
    full = case.scenario.startswith("full")
    block_num, block_size = case.blocks
    gain = 0.02 * np.sqrt(7168)              # weights of standard deviation 0.02 at He 7168
    tensors = {}

    x = rng.standard_normal((tokens, d.hidden))
    if full:
        for token, kind in case.special:
            assert kind == "zero", "int8 tokens know no other special kind"
            x[token] = 0
        x, tensors["dequant_scale_x"] = _quantise(x, axis=1)
    else:
        x = to_bf16(x)
        for token, kind in case.special:
            _apply_special(x[token], kind, rng)
    tensors["token_x"] = x.reshape(case.shape + (d.hidden,))

    for name, rows, columns, scale, int8 in (
            ("dq", d.hidden, d.q_rank, gain, full),
            ("uq_qr", d.q_rank, d.heads * (d.nope + d.rope), 1.0, case.scenario != NQ),
            ("dkv_kr", d.hidden, d.kv_rank + d.rope, gain, full)):
        weight, channel_scale = _weight(rng, rows, columns, scale, int8)
        tensors["weight_" + name] = weight
        if int8:
            tensors["dequant_scale_w_" + name] = channel_scale
    tensors["weight_uk"] = to_bf16(
        rng.standard_normal((d.heads, d.nope, d.kv_rank)) / np.sqrt(d.nope))
    tensors["rmsnorm_gamma_cq"] = to_bf16(1 + 0.1 * rng.standard_normal(d.q_rank))
    tensors["rmsnorm_gamma_ckv"] = to_bf16(1 + 0.1 * rng.standard_normal(d.kv_rank))
    sin, cos = _rope_tables(rng, case, tokens)
    tensors["rope_sin"] = sin.reshape(case.shape + (d.rope,))
    tensors["rope_cos"] = cos.reshape(case.shape + (d.rope,))

    index = rng.permutation(max(block_num * block_size, tokens))[:tokens]
    index = np.array(case.index or index, dtype=np.int64)
    tensors["cache_index"] = index.reshape(case.shape)
    for name, width, int8 in (("kv_cache", d.kv_rank, case.scenario in (PC, FT)),
                              ("kr_cache", d.rope, case.scenario == PC)):
        shape = (block_num, block_size, 1, width)
        tensors[name] = (np.full(shape, INT8_SENTINEL, dtype=np.int8) if int8
                         else np.full(shape, BF16_SENTINEL, dtype=np.uint16))

    if case.smooth:
        tensors["smooth_scales_cq"] = rng.uniform(0.5, 2, (1, d.q_rank)).astype(F32)
    if case.scenario == PC:                  # large enough to saturate now and then
        tensors["quant_scale_ckv"] = rng.uniform(25, 60, (1, d.kv_rank)).astype(F32)
        ckr = rng.uniform(15, 40, (1, d.rope))
        if case.power_of_two_scales:
            ckr = 2.0 ** rng.randint(3, 6, (1, d.rope))
        tensors["quant_scale_ckr"] = ckr.astype(F32)
    if case.scenario == FT:                  # only element 0 may be used
        scale = rng.uniform(500, 1000, (1, d.kv_rank)).astype(F32)
        scale[0, 0] = rng.uniform(35, 50)
        tensors["quant_scale_ckv"] = scale
    return tensors
