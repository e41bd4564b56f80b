"""Values worked out by hand, asserted against mla_prolog_model.py by `make_golden.py --check`."""
import numpy as np

import layouts
import mla_prolog_model as m
import number_formats as nf
from mla_prolog_model import Dims, Mode
from number_formats import F32


def _same(actual, expected, what):
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape or not np.array_equal(actual, expected, equal_nan=(
            actual.dtype.kind == "f")):
        raise AssertionError(f"{what}: got {actual.tolist()}, expected {expected.tolist()}")


def _bf(*values):
    return nf.to_bf16(np.array(values, dtype=F32))


def check_bf16():
    """Rounding to bf16: ties go to the even pattern, overflow to Inf, NaN to 0x7FC0."""
    pairs = ((0x3F800000, 0x3F80), (0x3F808000, 0x3F80), (0x3F808001, 0x3F81),
             (0x3F817FFF, 0x3F81), (0x3F818000, 0x3F82), (0xBF818000, 0xBF82),
             (0x80000000, 0x8000), (0x00008000, 0x0000), (0x00008001, 0x0001),
             (0x00018000, 0x0002), (0x7F7F7FFF, 0x7F7F), (0x7F7F8000, 0x7F80),
             (0x7F7FFFFF, 0x7F80), (0xFF800000, 0xFF80), (0x7F800001, 0x7FC0),
             (0xFFFFFFFF, 0x7FC0))
    source = np.array([a for a, _ in pairs], dtype=np.uint32).view(F32)
    _same(nf.to_bf16(source), [b for _, b in pairs], "bf16 rounding")


def check_int8():
    """rint with saturation, and the arch22 query cast with its two ties-away roundings."""
    _same(nf.to_int8([0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, 300, -128.5, -129,
                     np.nan, np.inf, -np.inf]),
          [0, 2, 2, 0, -2, 126, 127, 127, -128, -128, 0, 127, -128], "rint to int8")
    # Half spacing: 1/32 in [32,64), 1/16 in [64,128). 63.484375 lies midway between the halves
    # 63.46875 and 63.5 and so ends at 64; 63.48 is nearer to the lower one and ends at 63.
    _same(nf.to_int8_query([63.4999, 63.484375, 63.48, 100.46875, -100.46875, 100.46, 0.5, -0.5,
                           2.5, 0.4998, 0.4999, 127.00001, -127.00001, np.nan]),
          [64, 64, 63, 101, -101, 100, 1, -1, 3, 0, 1, 127, -127, 0], "query cast")


def check_layouts():
    """FRACTAL_NZ weights and PA_NZ caches."""
    # k 17, n 35, K 32: block column 2 -> 2*32*16 = 1024, + 17*16 + 3.
    _same(layouts.nz_offset(17, 35, 32, 16), 1299, "bf16 NZ offset")
    # K 37 is padded to 48: block column 1 -> 48*32 = 1536, + 20*32 + 1.
    _same(layouts.nz_offset(20, 33, 37, 32), 2177, "int8 NZ offset, padded K")
    for dtype, shape in ((np.uint16, (3, 3, 16, 16)), (np.int8, (2, 3, 16, 32))):
        weight = (1 + np.arange(37 * 45) % 120).astype(dtype).reshape(37, 45)
        packed = layouts.nz_pack(weight)
        _same(packed.shape, shape, "NZ storage shape")
        _same(layouts.nz_unpack(packed, 37, 45), weight, "NZ round trip")
        flat, c0 = packed.reshape(-1), layouts.block_columns(dtype)
        for k, n in ((0, 0), (36, 44), (17, 35), (20, 33), (16, 15)):
            _same(flat[layouts.nz_offset(k, n, 37, c0)], weight[k, n], "NZ element")
        _same(np.count_nonzero(flat), 37 * 45, "NZ padding is zero")
    # Slot 38 with 16 rows a page and width 64 is row 6 of page 2.
    _same(layouts.cache_offsets(38, 64, 16, "PA_BSND", 16)[21], 38 * 64 + 21, "PA_BSND offset")
    _same(layouts.cache_offsets(38, 64, 16, "PA_NZ", 16)[21], 2048 + 256 + 96 + 5, "PA_NZ bf16 offset")
    _same(layouts.cache_offsets(38, 64, 16, "PA_NZ", 32)[40], 2048 + 512 + 192 + 8, "PA_NZ int8 offset")


def check_steps():
    """RMSNorm, dequantisation order, dynamic quantisation, RoPE."""
    ones = np.ones(2, dtype=F32)
    # (1 + 49) / 2 = 25, root 5; eps 3 inside the root: (1 + 1) / 2 + 3 = 4, root 2.
    _same(m.rms_norm(np.array([[1, 7]], dtype=F32), ones, 0.0),
          np.array([[0.2, 1.4]], dtype=F32), "norm")
    _same(m.rms_norm(np.array([[1, 1]], dtype=F32), np.array([1, 4], dtype=F32), 3.0),
          np.array([[0.5, 2]], dtype=F32), "norm with eps")
    # Token before channel: 3 * 2^127 overflows, although the product of the scales is 1.
    with np.errstate(over="ignore"):
        got, other = (m.dequantise(np.array([[3]], dtype=F32), np.array([2.0 ** 127], dtype=F32),
                                   np.array([2.0 ** -127], dtype=F32), is_950)
                      for is_950 in (False, True))
    _same(got, np.array([[np.inf]], dtype=F32), "dequantisation order")
    _same(other, np.array([[3]], dtype=F32), "dequantisation order of the 950")
    with np.errstate(all="ignore"):
        values, scale = m.dynamic_quant(np.array([[-127, 63.5, 1.5, 0.25], [0, 0, 0, 0]],
                                                 dtype=F32))
    _same(values, [[-127, 64, 2, 0], [0, 0, 0, 0]], "dynamic quantisation")
    _same(scale, np.array([[1], [0]], dtype=F32), "dynamic scale")
    # x = 1 2 3 4, four different cos and sin: 1*1-2*16, 3*2-4*32, 2*4+1*64, 4*8+3*128.
    got = m.rope(np.array([1, 2, 3, 4], dtype=F32), np.array([1, 2, 4, 8], dtype=F32),
                 np.array([16, 32, 64, 128], dtype=F32))
    _same(got, np.array([-31, -122, 72, 416], dtype=F32), "RoPE index mapping")


def check_operator():
    """A whole non-quant call and a partial one with every size 1 (Dr 2)."""
    dims = Dims(1, 1, 1, 1, 2, 1)
    tensors = {
        "token_x": _bf(2).reshape(1, 1), "weight_dq": layouts.nz_pack(_bf(3).reshape(1, 1)),
        "weight_uq_qr": layouts.nz_pack(_bf(2, 4, 6).reshape(1, 3)),
        "weight_uk": _bf(5).reshape(1, 1, 1),
        "weight_dkv_kr": layouts.nz_pack(_bf(2, 2, 3).reshape(1, 3)),
        "rmsnorm_gamma_cq": _bf(0.5), "rmsnorm_gamma_ckv": _bf(3),
        "rope_cos": _bf(1, 2).reshape(1, 2), "rope_sin": _bf(3, 4).reshape(1, 2),
        "cache_index": np.array([1], dtype=np.int64),
        "kv_cache": _bf(9, 9).reshape(1, 2, 1, 1), "kr_cache": _bf(9, 9, 9, 9).reshape(1, 2, 1, 2)}
    # c_q = 6, norm 1 * 0.5; q = 0.5 * (2 | 4 6) = 1 | 2 3; query 1*5; rope 2*1-3*3, 3*2+2*4.
    # c_kv = 4, norm 1 * 3; k_r = 4 6 -> 4*1-6*3, 6*2+4*4.
    out = m.mla_prolog(tensors, Mode("non_quant", "PA_BSND", 0.0, 0.0), dims)
    _same(out["query"].reshape(-1), _bf(5), "query")
    _same(out["query_rope"].reshape(-1), _bf(-7, 14), "query_rope")
    _same(out["kv_cache"].reshape(-1), _bf(9, 3), "kv_cache")
    _same(out["kr_cache"].reshape(-1), _bf(9, 9, -14, 28), "kr_cache")
    # Partial: 0.5 -> int8 127 with scale 0.5/127; (2 | 4 6) scaled by 1 | 0.5 2 -> 1 | 1 6;
    # rope 1*1-6*3, 6*2+1*4; the caches as int8 of 3*11.5 (tie) and -14*0.25 (tie), 28*10 (sat).
    tensors.update(
        weight_uq_qr=layouts.nz_pack(np.array([[2, 4, 6]], dtype=np.int8)),
        dequant_scale_w_uq_qr=np.array([[1, 0.5, 2]], dtype=F32),
        quant_scale_ckv=np.array([[11.5]], dtype=F32),
        quant_scale_ckr=np.array([[0.25, 10]], dtype=F32),
        kv_cache=np.full((1, 2, 1, 1), 9, dtype=np.int8),
        kr_cache=np.full((1, 2, 1, 2), 9, dtype=np.int8))
    out = m.mla_prolog(tensors, Mode("partial_kv_per_channel", "PA_BSND", 0.0, 0.0), dims)
    _same(out["c_q_int8"], [[127]], "c_q_int8")
    _same(out["query"].reshape(-1), _bf(5), "partial query")
    _same(out["query_rope"].reshape(-1), _bf(-17, 16), "partial query_rope")
    _same(out["kv_cache"].reshape(-1), [9, 34], "int8 kv_cache")
    _same(out["kr_cache"].reshape(-1), [9, 9, -4, 127], "int8 kr_cache")

    # Full int8, per-tensor: x = 4 * 0.5, so the same c_q and c_kv; query 5 -> scale 5/127, int8
    # 127; rope -17 16 times 11.5*127/5 = 292.1 in steps of 32; kv_cache 3*11.5; kr_cache bf16.
    full = dict(tensors, token_x=np.array([[4]], dtype=np.int8),
                weight_dq=layouts.nz_pack(np.array([[3]], dtype=np.int8)),
                weight_dkv_kr=layouts.nz_pack(np.array([[2, 2, 3]], dtype=np.int8)),
                dequant_scale_x=np.array([[0.5]], dtype=F32),
                dequant_scale_w_dq=np.ones((1, 1), dtype=F32),
                dequant_scale_w_dkv_kr=np.ones((1, 3), dtype=F32),
                kr_cache=np.zeros((1, 2, 1, 2), dtype=np.uint16))
    out = m.mla_prolog(full, Mode("full_int8_kv_per_tensor", "PA_BSND", 0.0, 0.0), dims)
    _same(out["query"].reshape(-1), [127], "int8 query")
    _same(out["dequant_scale_q_nope"], np.array([[[5 / 127]]], dtype=F32), "query scale")
    _same(out["query_rope"].reshape(-1), _bf(-4960, 4672), "scaled query_rope")
    _same(out["kv_cache"].reshape(-1), [9, 34], "per-tensor kv_cache")
    _same(out["kr_cache"].reshape(-1), _bf(0, 0, -14, 28), "per-tensor kr_cache")
    # No token: nothing changes. A slot past the end is refused.
    none = dict(tensors, token_x=tensors["token_x"][:0], rope_cos=tensors["rope_cos"][:0],
                rope_sin=tensors["rope_sin"][:0], cache_index=tensors["cache_index"][:0])
    out = m.mla_prolog(none, Mode("partial_kv_per_channel", "PA_BSND", 0.0, 0.0), dims)
    _same(out["query"].shape, (0, 1, 1), "query of no token")
    _same(out["kv_cache"], tensors["kv_cache"], "kv_cache of no token")
    beyond = dict(tensors, cache_index=np.array([2], dtype=np.int64))
    try:
        m.mla_prolog(beyond, Mode("partial_kv_per_channel", "PA_BSND", 0.0, 0.0), dims)
    except ValueError:
        return
    raise AssertionError("a slot past the end was accepted")


def check_all():
    """Run every hand-computed check."""
    for check in (check_bf16, check_int8, check_layouts, check_steps, check_operator):
        check()
