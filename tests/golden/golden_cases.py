"""The table of golden cases and the generation of their input tensors.

Everything is drawn from numpy.random.RandomState (its stream is frozen by NumPy) with the
seed of the case, so a case can be added or removed without changing the others.
"""
from typing import Dict, NamedTuple, Optional, Tuple

import numpy as np

from layouts import nz_pack
from mla_prolog_model import MX, MX_BLOCK, SCENARIOS, Dims, Mode, group_row_bytes
from number_formats import E4M3, F32, HIF8, INT8, Format, to_bf16

BF16_SENTINEL = 0x7FC1      # a NaN pattern that no computed value has
BYTE_SENTINEL = 0x55        # of the 8-bit caches

A = Dims(96, 64, 3, 32, 16, 64)
A32 = Dims(96, 64, 3, 32, 32, 64)       # Dr is a multiple of 32: int8 krCache in PA_NZ
B = Dims(80, 48, 1, 24, 8, 48)
B16 = Dims(80, 48, 1, 24, 16, 48)       # Dr is a multiple of 16: bf16 krCache in PA_NZ
B64 = Dims(80, 48, 1, 24, 16, 64)       # Hckv is a multiple of 32: int8 kvCache in PA_NZ
C = Dims(37, 21, 3, 7, 6, 33)           # nothing is a multiple of anything
TINY = Dims(20, 10, 1, 5, 4, 16)
F = Dims(32, 32, 2, 8, 32, 32)          # small; legal in every layout, also with an int8 krCache
G = Dims(32, 32, 1, 8, 8, 132)           # tiles of 128 and 4 columns
BIG_RANK = Dims(48, 128, 2, 12, 4, 32)  # Hcq 2048 and D 192 with the other sizes, a sixteenth
F16 = Dims(32, 32, 2, 8, 16, 32)        # the same for a bf16 krCache, and for blocks of 32
SQUARE = F16                            # He = Hcq = Hckv, for identity weights
REAL_ROW = Dims(16, 16, 1, 8, 64, 512)      # per-group rows of 656 bytes


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
    soc: str = "ascend910b"
    factors: Tuple[str, str] = ("1", "1")       # qc_qr_scale, kc_scale
    query_norm: bool = False                    # query_norm and its scale are outputs
    alpha: float = 1.0                          # k_nope_clip_alpha, where the scenario has one
    ends: Tuple[int, ...] = ()                  # actual_seq_len
    row_major: Tuple[str, ...] = ()             # weights given as (K, N) instead of FRACTAL_NZ
    craft: str = ""                             # key of CRAFTS
    v3: bool = True                             # quant_scale_ckv of kv per-tensor has one element

    @property
    def mode(self) -> Mode:
        return Mode(self.scenario, self.cache_mode, float(self.eps[0]), float(self.eps[1]),
                    self.soc, float(self.factors[0]), float(self.factors[1]))

    @property
    def tokens(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


NQ, P, PC, FI, FT = ("non_quant", "partial", "partial_kv_per_channel", "full_int8",
                     "full_int8_kv_per_tensor")
PG, FG = "partial_kv_per_group", "full_int8_kv_per_group"
ND, NZ, BLK, BLK_NZ = "PA_BSND", "PA_NZ", "PA_BLK_BSND", "PA_BLK_NZ"

# What the first version of the operator has, and the int8 tokens of the second.
_FIRST = (
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

# The other cache modes: name, mode, token form, and how sequences and pages lie. A sequence of 17
# tokens has two pages of 16. Pages are drawn at random unless given.
_CACHE_MODES = (
    ("blk_bsnd_3d", BLK, (3, 2), {}, "a page per batch"),
    ("blk_bsnd_fused", BLK, (19,), {"ends": (0, 17, 17, 19), "index": (4, 0, 2),
                                    "blocks": (5, 16)}, "sequences of 0, 17, 0 and 2 tokens"),
    ("blk_nz_3d", BLK_NZ, (2, 3), {"index": (-1, 2)}, "batch 0 in a negative page"),
    ("blk_nz_fused", BLK_NZ, (20,), {"ends": (1, 1, 18, 20), "index": (2, -7, 0, 1)},
     "sequences of 1, 0, 17 and 2 tokens, a negative page"),
    ("bsnd", "BSND", (2, 3), {}, "the cache has the tokens' shape"),
    ("tnd", "TND", (4,), {}, "the cache has the tokens' shape"),
)
_ROW_MAJOR = (("dq", "uq_qr", "dkv_kr"), ("dq", "dkv_kr"), ("uq_qr",))


def _matrix(prefix, scenario, dims, seed, modes, **fields):
    """A case for each of `modes` (rows of _CACHE_MODES); features alternate between them."""
    cases = []
    can_smooth = SCENARIOS[scenario][0] not in (0, MX)
    for i, (label, mode, shape, layout, covers) in enumerate(modes):
        turn = seed // 100 + i
        features = {"query_norm": turn % 3 != 1}
        if turn % 3 == 2:
            features["row_major"] = _ROW_MAJOR[turn // 3 % 3]
            covers += ", row-major weights"
        cases.append(Case(f"{prefix}_{label}", scenario, can_smooth and turn % 2 == 0, mode, shape,
                          dims, covers, seed + i, **{**features, **layout, **fields}))
    return tuple(cases)


def _without_blocks(modes):
    return tuple(row for row in modes if row[1] in ("BSND", "TND"))


_SMALL = {"blocks": (2, 16)}
_PA_ROWS = (("bsnd_pa_3d", ND, (2, 2), {"index": (5, -1, 29, 5), **_SMALL},
             "duplicate and negative slots"),
            ("bsnd_pa_2d", ND, (5,), _SMALL, "base"))
_PA_NZ = (("nz_pa_3d", NZ, (2, 2), {"index": (-4, 16, 29, 16), **_SMALL},
           "duplicate and negative slots"),)

_CACHE_MODE_CASES = (
    _matrix("nq", NQ, F16, 1000, _CACHE_MODES)
    + _matrix("partial", P, F16, 1100, _CACHE_MODES)
    + _matrix("partial_pc", PC, F, 1200, _CACHE_MODES)
    + _matrix("full", FI, F16, 1300, _CACHE_MODES)
    + _matrix("full_pt", FT, F16, 1400, _CACHE_MODES)
    + _matrix("partial_pg", PG, G, 1500, _without_blocks(_CACHE_MODES) + _PA_ROWS, alpha=0.75)
    + _matrix("full_pg", FG, G, 1600, _without_blocks(_CACHE_MODES) + _PA_ROWS, alpha=1.25)
    + (
        Case("nq_blk_nz_long_3d", NQ, False, BLK_NZ, (2, 17), F16,
             "two pages per batch, one negative", 1701, index=(3, 0, -2, 1), blocks=(4, 16)),
        Case("full_pt_blk_bsnd_long_3d", FT, False, BLK, (2, 17), F16,
             "two pages per batch, two batches in one page: the last wins", 1702,
             index=(1, 2, 1, 0)),
        Case("partial_blk_bsnd_big_block", P, False, BLK, (7,), F16, "block size 48", 1703,
             ends=(3, 7), index=(1, 0), blocks=(2, 48)),
        Case("partial_pc_blk_nz_no_blocks", PC, True, BLK_NZ, (5,), F, "BlockNum 0", 1704,
             ends=(2, 5), index=(0, 0), blocks=(0, 16)),
    ))

_VERSION_3_CASES = (
    Case("partial_pg_real_row", PG, False, ND, (3,), REAL_ROW, "rows of 656 bytes, alpha 1", 2001,
         blocks=(1, 16)),
    Case("full_pg_real_row", FG, True, "TND", (4,), REAL_ROW, "rows of 656 bytes, alpha below 1",
         2002, alpha=0.5, query_norm=True),
    Case("partial_pg_alpha_above_1", PG, True, ND, (2, 3), G, "alpha above 1", 2003, alpha=1.5),
    Case("full_pg_alpha_1", FG, False, ND, (5,), G, "alpha 1", 2004),
    Case("partial_pg_no_blocks", PG, False, ND, (2,), G, "BlockNum 0", 2005, blocks=(0, 16)),
    Case("partial_pg_zero_token", PG, False, "TND", (3,), G, "token 1 all zero: tile scales 0",
         2006, special=((1, "zero"),), alpha=0.9, query_norm=True),
    Case("full_pg_zero_token", FG, True, ND, (2,), G, "token 0 all zero", 2007,
         special=((0, "zero"),), query_norm=True),
    Case("partial_pg_inf_nan", PG, False, ND, (5,), G, "token 1 has Inf, 3 NaN, 4 -Inf", 2008,
         special=((1, "inf"), (3, "nan"), (4, "neg_inf")), nonfinite=(1, 3, 4), query_norm=True),
    Case("nq_factors", NQ, False, ND, (5,), F16, "qc_qr_scale and kc_scale", 2101,
         factors=("0.70710678", "1.7"), query_norm=True),
    Case("partial_factors", P, True, NZ, (2, 2), F16, "qc_qr_scale and kc_scale", 2102,
         factors=("1.5", "0.3"), query_norm=True),
    Case("partial_pc_factors", PC, False, ND, (5,), F, "negative qc_qr_scale, kc_scale", 2103,
         factors=("-2.25", "0.6"), query_norm=True),
    Case("full_pt_factors", FT, True, NZ, (5,), F16, "qc_qr_scale and kc_scale", 2104,
         factors=("0.1", "1.1"), query_norm=True),
    Case("full_pg_factors", FG, True, "BSND", (1, 4), G, "qc_qr_scale and kc_scale", 2105,
         factors=("3", "0.01"), alpha=0.8, query_norm=True),
    Case("partial_factors_below_epsilon", P, False, ND, (3,), F16,
         "factors closer to 1 than FLT_EPSILON: not applied", 2106,
         factors=("0.99999994", "0.99999994"), query_norm=True),
    Case("partial_factors_at_epsilon", P, False, ND, (3,), F16,
         "factors 1 + FLT_EPSILON and 1 - FLT_EPSILON: applied", 2107,
         factors=("1.00000012", "0.99999988"), query_norm=True),
    Case("full_factors_nan", FI, False, ND, (2,), F16, "NaN factors: not applied", 2108,
         factors=("nan", "nan"), query_norm=True),
    Case("full_factors_zero", FI, False, ND, (2,), F16, "factors 0: scale 0, int8 0, cache 0", 2109,
         factors=("0", "0"), query_norm=True),
    Case("nq_big_rank", NQ, False, NZ, (3,), BIG_RANK._replace(rope=16), "long Hcq and D", 2201,
         query_norm=True),
    Case("partial_big_rank", P, True, ND, (3,), BIG_RANK, "long Hcq and D", 2202, query_norm=True),
    Case("full_pt_big_rank", FT, True, ND, (1, 3), BIG_RANK, "long Hcq and D", 2203,
         query_norm=True),
    Case("nq_query_norm", NQ, False, ND, (2, 2), C, "query_norm, odd sizes", 2301, query_norm=True),
    Case("partial_query_norm_smooth", P, True, ND, (2, 2), C,
         "query_norm includes smooth_scales_cq, odd sizes", 2302, query_norm=True),
    Case("full_query_norm", FI, False, ND, (3,), C, "query_norm, odd sizes", 2303, query_norm=True),
    Case("full_pt_query_norm_zero_token", FT, False, ND, (3,), F16,
         "token 1 all zero: query_norm 0 with scale 0", 2304, special=((1, "zero"),),
         nonfinite=(1,), query_norm=True),
    Case("nq_index_duplicate", NQ, False, ND, (2, 3), F16, "duplicate slots, last wins", 2401,
         index=(9, 30, 9, 9, 30, 1)),
    Case("partial_index_duplicate_nz", P, True, NZ, (5,), F16, "duplicate slots, last wins", 2402,
         index=(47, 0, 47, 16, 16)),
    Case("full_index_mixed", FI, True, ND, (5,), F16, "duplicate and negative slots", 2403,
         index=(-9, 8, 8, -1, 8)),
    Case("full_pt_index_mixed_nz", FT, False, NZ, (1, 5), F16, "duplicate and negative slots", 2404,
         index=(31, -1, 32, 31, -2 ** 63)),
    Case("nq_no_tokens", NQ, False, ND, (0,), F16, "no token", 2501, query_norm=True),
    Case("partial_pc_no_tokens", PC, True, NZ, (0, 3), F, "no token: B is 0", 2502),
    Case("full_pt_no_tokens", FT, False, BLK, (2, 0), F16, "no token: S is 0", 2503,
         query_norm=True),
    Case("partial_pg_no_tokens", PG, False, "TND", (0,), G, "no token, caches empty", 2504),
    Case("full_blk_fused_no_tokens", FI, True, BLK_NZ, (0,), F16, "two sequences without a token",
         2505, ends=(0, 0)),
)

# The 950's rules for the scenarios that the older devices have too.
_RULES_950_CASES = sum((
    _matrix(prefix + "_950", scenario, dims, seed, _without_blocks(_CACHE_MODES) + _PA_ROWS[1:],
            soc="ascend950", **fields)
    for prefix, scenario, dims, seed, fields in (
        ("nq", NQ, F16, 3000, {}), ("partial", P, F16, 3100, {}), ("partial_pc", PC, F16, 3200, {}),
        ("partial_pg", PG, G, 3300, {"alpha": 0.8}), ("full", FI, F16, 3400, {}),
        ("full_pt", FT, F16, 3500, {}), ("full_pg", FG, G, 3600, {"alpha": 1.5}))), ()) + (
    Case("full_pt_950_17_tokens", FT, True, NZ, (17,), F, "17 tokens", 3701, soc="ascend950",
         query_norm=True),
    Case("full_pt_950_zero_token", FT, False, ND, (3,), F16, "token 2 all zero", 3702,
         soc="ascend950", special=((2, "zero"),), nonfinite=(2,), query_norm=True, **_SMALL),
    Case("partial_pg_950_zero_token", PG, False, ND, (2,), G, "token 0 all zero", 3703,
         soc="ascend950", special=((0, "zero"),), **_SMALL),
    Case("partial_950_inf_nan", P, False, ND, (5,), F16, "token 1 has Inf, 3 NaN, 4 -Inf", 3704,
         soc="ascend950", special=((1, "inf"), (3, "nan"), (4, "neg_inf")), nonfinite=(1, 3, 4),
         query_norm=True, **_SMALL),
)


def _float8_cases(name, seed):
    """The cases of an 8-bit float type."""
    plain, tensor, group = ("full_" + name + kv for kv in ("", "_kv_per_tensor", "_kv_per_group"))
    can_smooth = name != "mxfp8"
    common = {"soc": "ascend950", "query_norm": True, **_SMALL}
    cases = (
        _matrix(name, plain, F16, seed, _CACHE_MODES + _PA_ROWS[:1] + _PA_NZ, soc="ascend950")
        + _matrix(name + "_pt", tensor, F16, seed + 100, _CACHE_MODES, soc="ascend950")
        + _matrix(name + "_pg", group, G, seed + 200,
                  _without_blocks(_CACHE_MODES) + _PA_ROWS[:1], soc="ascend950")
        + (
            Case(name + "_17_tokens", plain, can_smooth, ND, (17,), F16, "17 tokens", seed + 301,
                 **common),
            Case(name + "_zero_token", plain, can_smooth, ND, (2,), F16, "token 1 all zero",
                 seed + 302, special=((1, "zero"),), **common),
            Case(name + "_pt_zero_token", tensor, False, "TND", (3,), F16, "token 0 all zero",
                 seed + 303, special=((0, "zero"),), nonfinite=(0,), **common),
            Case(name + "_pg_zero_token", group, False, "TND", (3,), G,
                 "token 1 all zero: tile scales from 1e-4", seed + 304, special=((1, "zero"),),
                 **common),
            Case(name + "_nan", plain, False, ND, (3,), F16, "token 1 has NaN", seed + 305,
                 special=((1, "nan"),), nonfinite=(1,), soc="ascend950", **_SMALL),
            Case(name + "_pt_factors", tensor, can_smooth, NZ, (4,), F16, "both factors",
                 seed + 306, factors=("0.6", "1.9"), **common),
            Case(name + "_pg_factors", group, False, "BSND", (1, 3), G,
                 "kc_scale so small that the 1e-4 floor counts", seed + 307,
                 factors=("-1.5", "2e-5"), **common),
            Case(name + "_big_rank", tensor, can_smooth, ND, (3,), BIG_RANK._replace(hidden=64),
                 "long Hcq and D", seed + 308, **common),
            Case(name + "_no_tokens", tensor, False, BLK, (0,), F16, "one sequence without a token",
                 seed + 309, ends=(0,), **common),
            Case(name + "_no_blocks", plain, False, NZ, (2,), F16, "BlockNum 0", seed + 310,
                 soc="ascend950", blocks=(0, 16)),
        ))
    return cases


_FLOAT8_CASES = (
    _float8_cases("mxfp8", 4000) + _float8_cases("fp8", 5000) + _float8_cases("hif8", 6000) + (
        Case("fp8_pg_real_row", "full_fp8_kv_per_group", True, ND, (2,),
             REAL_ROW._replace(hidden=32, q_rank=32), "rows of 656 bytes", 6901, soc="ascend950",
             blocks=(1, 16)),
        Case("hif8_inf", "full_hif8", False, ND, (3,), F16, "token 0 has Inf, token 2 -Inf", 6902,
             special=((0, "inf"), (2, "neg_inf")), nonfinite=(0, 2), soc="ascend950", **_SMALL),
    ))

_TIES = "every quotient and every cached value halfway between two codes"
_CRAFTED_CASES = tuple(
    Case(name, scenario, scenario != "full_mxfp8_kv_per_tensor", ND, (4,), SQUARE, covers, seed,
         eps=("1.75", "1.75") if "mxfp8" in name else ("3", "3"), soc=soc, query_norm=True,
         craft="ties", **_SMALL)
    for name, scenario, covers, seed, soc in (
        ("partial_pc_ties", PC, _TIES, 7001, "ascend910b"),
        ("full_pt_ties", FT, _TIES, 7002, "ascend910b"),
        ("partial_pc_950_ties", PC, _TIES, 7003, "ascend950"),
        ("full_pt_950_ties", FT, _TIES, 7004, "ascend950"),
        ("mxfp8_pt_ties", "full_mxfp8_kv_per_tensor",
         "c_q halfway between two bf16, and there between two codes; cached values halfway", 7005,
         "ascend950"),
        ("fp8_pt_ties", "full_fp8_kv_per_tensor", _TIES, 7006, "ascend950"),
        ("hif8_pt_ties", "full_hif8_kv_per_tensor", _TIES, 7007, "ascend950"))
) + (
    Case("full_scale_order", FI, False, ND, (3,), F16,
         "channel scales 2^122 times larger, token scales smaller: token first or overflow", 7101,
         craft="scale_order", **_SMALL),
    Case("full_950_scale_order", FI, False, ND, (3,), F16,
         "token scales 2^122 times larger, channel scales smaller: channel first or overflow", 7102,
         craft="scale_order", soc="ascend950", **_SMALL),
    Case("fp8_scale_order", "full_fp8", False, ND, (3,), F16,
         "token scales 2^122 times larger, channel scales smaller: channel first or overflow", 7103,
         craft="scale_order", soc="ascend950", **_SMALL),
)

CASES = (tuple(case._replace(v3=False) for case in _FIRST) + _CACHE_MODE_CASES + _VERSION_3_CASES
         + _RULES_950_CASES + _FLOAT8_CASES + _CRAFTED_CASES)


# Where _quantise puts the largest magnitude of a row. HiFloat8 has most of its precision around 1.
_INPUT_RANGE = {INT8: 127.0, E4M3: 448.0, HIF8: 1024.0}


def _quantise(values: np.ndarray, axis: int, fmt: Format = INT8) -> Tuple[np.ndarray, np.ndarray]:
    """Symmetric quantisation along `axis`; an all-zero row gets the scale of a largest value 1."""
    largest = np.abs(values).max(axis=axis, keepdims=True, initial=0)
    scale = (np.where(largest == 0, 1.0, largest) / _INPUT_RANGE[fmt]).astype(F32)
    if fmt is INT8:
        return np.clip(np.rint(values / scale), -127, 127).astype(np.int8), scale
    return fmt.encode(values / scale), scale


def _quantise_mx(values: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """E4M3 codes of rows and the E8M0 scales [rows, length / 32] of their blocks."""
    blocks = values.reshape(values.shape[0], values.shape[1] // MX_BLOCK, MX_BLOCK)
    _, exponent = np.frexp(np.abs(blocks).max(axis=-1, keepdims=True))
    codes = E4M3.encode(blocks / np.ldexp(1.0, exponent - 9))
    return codes.reshape(values.shape), (exponent[..., 0] - 9 + 127).astype(np.uint8)


def _weight(rng, rows: int, columns: int, gain: float, mode: Mode, fmt: Optional[Format]):
    """Random weight (K, N) of standard deviation gain/sqrt(rows), bf16 or 8-bit with its scale."""
    values = rng.standard_normal((rows, columns)) * (gain / np.sqrt(rows))
    if fmt is None:
        return to_bf16(values), None
    if mode.weight_quant == MX:
        codes, scale = _quantise_mx(values.T)
        return np.ascontiguousarray(codes.T), scale
    return _quantise(values, 0, fmt)


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


# Codes of special values in 8-bit tokens.
_SPECIAL_CODES = {(E4M3, "nan"): 0x7F, (HIF8, "nan"): 0x80, (HIF8, "inf"): 0x6F,
                  (HIF8, "neg_inf"): 0xEF}


def _token_x(rng, case: Case, tensors) -> np.ndarray:
    """token_x as [T, He]; an 8-bit one adds its scale to `tensors`."""
    x = rng.standard_normal((case.tokens, case.dims.hidden))
    mode = case.mode
    if not mode.full:
        x = to_bf16(x)
        for token, kind in case.special:
            _apply_special(x[token], kind, rng)
        return x
    for token, kind in case.special:
        if kind == "zero":
            x[token] = 0
    if mode.weight_quant == MX:
        x, tensors["dequant_scale_x"] = _quantise_mx(x)
    else:
        x, tensors["dequant_scale_x"] = _quantise(x, 1, mode.format)
    for token, kind in case.special:
        if kind != "zero":
            x[token, case.dims.hidden // 3] = _SPECIAL_CODES[mode.format, kind]
    return x


def _rope_tables(rng, case: Case):
    half = case.dims.rope // 2
    if case.rope == "random_halves":
        tables = rng.uniform(-1, 1, (2, case.tokens, case.dims.rope))
        return to_bf16(tables[0]), to_bf16(tables[1])
    positions = rng.randint(0, 4096, case.tokens)
    angles = positions[:, None] * 10000.0 ** (-np.arange(half) / half)
    angles = np.concatenate([angles, angles], axis=1)
    return to_bf16(np.sin(angles)), to_bf16(np.cos(angles))


def _pages(case: Case) -> Tuple[int, ...]:
    """Shape of cache_index in the PA_BLK modes."""
    size = case.blocks[1]
    if len(case.shape) == 2:
        return (case.shape[0], -(-case.shape[1] // size))
    ends = (0,) + case.ends
    return (sum(-(-(end - begin) // size) for begin, end in zip(ends, ends[1:])),)


def _add_caches(rng, case: Case, tensors) -> None:
    """cache_index, actual_seq_len and both caches, full of sentinels."""
    block_num, block_size = case.blocks
    if case.cache_mode in ("BSND", "TND"):
        lead = case.shape
    else:
        lead = case.blocks
        blk = case.cache_mode in (BLK, BLK_NZ)
        shape, places = (_pages(case), block_num) if blk else (case.shape, block_num * block_size)
        count = int(np.prod(shape, dtype=np.int64))
        index = rng.permutation(max(places, count))[:count]
        tensors["cache_index"] = np.array(case.index or index, dtype=np.int64).reshape(shape)
        if case.ends:
            tensors["actual_seq_len"] = np.array(case.ends, dtype=np.int32)
    d, mode = case.dims, case.mode
    widths = {"kv_cache": d.kv_rank, "kr_cache": d.rope}
    eight_bit = {"kv_cache": mode.kv_quant != 0, "kr_cache": mode.kv_quant == 2}
    if mode.kv_quant == 3:
        widths["kv_cache"] = group_row_bytes(d)
    for name, width in widths.items():
        dtype = mode.format.dtype if eight_bit[name] else np.uint16
        sentinel = BYTE_SENTINEL if eight_bit[name] else BF16_SENTINEL
        tensors[name] = np.full(lead + (1, width), sentinel, dtype=dtype)
    if mode.kv_quant == 3:
        tensors["kr_cache"] = np.zeros((0,), dtype=np.uint16)


# kv per-tensor: factors that saturate now and then.
_TENSOR_FACTORS = {INT8: (35, 50), E4M3: (120, 170), HIF8: (8000, 12000)}


def make_inputs(case: Case) -> Dict[str, np.ndarray]:
    """The input tensors of a case, by torch_npu name."""
    rng = np.random.RandomState(case.seed)
    d, mode = case.dims, case.mode
    gain = 0.02 * np.sqrt(7168)              # weights of standard deviation 0.02 at He 7168
    tensors = {}
    tensors["token_x"] = _token_x(rng, case, tensors).reshape(case.shape + (d.hidden,))
    for name, rows, columns, scale, quantised in (
            ("dq", d.hidden, d.q_rank, gain, mode.full),
            ("uq_qr", d.q_rank, d.heads * (d.nope + d.rope), 1.0, mode.weight_quant != 0),
            ("dkv_kr", d.hidden, d.kv_rank + d.rope, gain, mode.full)):
        weight, weight_scale = _weight(rng, rows, columns, scale, mode,
                                       mode.format if quantised else None)
        tensors["weight_" + name] = weight if name in case.row_major else nz_pack(weight)
        if quantised:
            tensors["dequant_scale_w_" + name] = weight_scale
    tensors["weight_uk"] = to_bf16(
        rng.standard_normal((d.heads, d.nope, d.kv_rank)) / np.sqrt(d.nope))
    tensors["rmsnorm_gamma_cq"] = to_bf16(1 + 0.1 * rng.standard_normal(d.q_rank))
    tensors["rmsnorm_gamma_ckv"] = to_bf16(1 + 0.1 * rng.standard_normal(d.kv_rank))
    sin, cos = _rope_tables(rng, case)
    tensors["rope_sin"] = sin.reshape(case.shape + (d.rope,))
    tensors["rope_cos"] = cos.reshape(case.shape + (d.rope,))
    _add_caches(rng, case, tensors)

    if case.smooth:
        tensors["smooth_scales_cq"] = rng.uniform(0.5, 2, (1, d.q_rank)).astype(F32)
    if mode.kv_quant == 2:                   # large enough to saturate now and then
        tensors["quant_scale_ckv"] = rng.uniform(25, 60, (1, d.kv_rank)).astype(F32)
        ckr = rng.uniform(15, 40, (1, d.rope))
        if case.power_of_two_scales:
            ckr = 2.0 ** rng.randint(3, 6, (1, d.rope))
        tensors["quant_scale_ckr"] = ckr.astype(F32)
    if mode.kv_quant == 1:
        low, high = _TENSOR_FACTORS[mode.format]
        if case.v3:
            scale = rng.uniform(low, high, 1).astype(F32)
        else:                                # only element 0 may be used
            scale = rng.uniform(500, 1000, (1, d.kv_rank)).astype(F32)
            scale[0, 0] = rng.uniform(low, high)
        tensors["quant_scale_ckv"] = scale
    if mode.kv_quant == 3 and mode.format is INT8:
        tensors["k_nope_clip_alpha"] = np.array([case.alpha], dtype=F32)
    if case.craft:
        CRAFTS[case.craft](rng, case, tensors)
    return tensors


# ---------------------------------------------------------------- crafted inputs

def midpoints(fmt: Format, count: int) -> np.ndarray:
    """`count` values halfway between neighbouring codes, spread over the positive range."""
    values = np.unique(fmt.decode(np.arange(256).astype(np.uint8).view(fmt.dtype)))
    values = values[(values >= (0 if fmt is INT8 else 2.0 ** -6)) & np.isfinite(values)]
    middles = (values[:-1] + values[1:]) / 2
    return middles[np.arange(count) * (len(middles) - 1) // (count - 1)]


# Largest magnitude of a row over the range of its type, such that the 950's quotient and the
# other devices' quotient fall on different sides of many midpoints.
_TIE_UNIT = {INT8: 255, E4M3: 63, HIF8: 1}


def _craft_ties(rng, case: Case, tensors) -> None:
    """x W is +-1 (MXFP8: +-1.5), the root of the norm 2; gamma and smooth scales set the values."""
    d, mode = case.dims, case.mode
    fmt = mode.format
    size, unit_scale = (1.5, 127) if mode.weight_quant == MX else (1.0, 1.0)

    def put(name, values, nz):
        exact = fmt.encode(values) if mode.full else to_bf16(values)
        tensors[name] = nz_pack(exact) if nz else exact

    put("token_x", size * rng.choice((-1.0, 1.0), (case.tokens, d.hidden)), False)
    identity = np.eye(d.hidden)
    put("weight_dq", identity, True)
    put("weight_dkv_kr",
        np.concatenate([identity, rng.randint(-2, 3, (d.hidden, d.rope))], axis=1), True)
    if mode.full:
        for name in ("x", "w_dq", "w_dkv_kr"):
            tensors["dequant_scale_" + name][:] = unit_scale
    tensors["quant_scale_ckv"][:] = 1
    if mode.weight_quant == MX:
        # 0.75 * 91/64 = 273/256 is halfway between two bf16; the larger one is nearer to 1.125 than
        # to 1, the smaller one halfway. 0.75 * 1.75 = 21/16 and 0.75 * 2.25 = 27/16 are midpoints.
        tensors["rmsnorm_gamma_cq"][:] = to_bf16(91 / 64)
        exponent = np.arange(d.kv_rank) // 2 % 8 - 3
        gamma = np.ldexp(np.where(np.arange(d.kv_rank) % 2, 1.75, 2.25), exponent)
    else:
        tensors["rmsnorm_gamma_cq"][:] = to_bf16(1)
        z = midpoints(fmt, d.q_rank)
        z[0] = fmt.largest
        tensors["smooth_scales_cq"][0] = 2 * z * _TIE_UNIT[fmt]
        gamma = 2 * midpoints(fmt, d.kv_rank)
    tensors["rmsnorm_gamma_ckv"] = to_bf16(gamma)


def _craft_scale_order(_, case: Case, tensors) -> None:
    """Token and channel scales far apart: one order of the multiplications overflows."""
    shift = F32(2.0 ** (122 if case.mode.is_950 else -122))
    tensors["dequant_scale_x"] *= shift
    for name in ("dq", "dkv_kr"):
        tensors["dequant_scale_w_" + name] /= shift


CRAFTS = {"ties": _craft_ties, "scale_order": _craft_scale_order}
