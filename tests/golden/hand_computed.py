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


# Values by code, worked out from the fields.
# E4M3: sign, 4 bits of exponent with bias 7, 3 bits of mantissa.
E4M3_CODES = (
    (0x00, 0), (0x01, 2 ** -9), (0x07, 7 * 2 ** -9), (0x08, 2 ** -6), (0x0F, 15 * 2 ** -9),
    (0x10, 2 ** -5), (0x30, 0.5), (0x38, 1), (0x39, 1.125), (0x3F, 1.875), (0x40, 2), (0x48, 4),
    (0x77, 240), (0x78, 256), (0x7D, 416), (0x7E, 448), (0x7F, np.nan),
    (0x80, 0), (0x81, -2 ** -9), (0xB8, -1), (0xC4, -3), (0xFE, -448), (0xFF, np.nan))
# HiFloat8: sign, prefix, exponent (sign, then digits below a leading one), mantissa.
HIF8_CODES = (
    (0x00, 0), (0x01, 2 ** -22), (0x02, 2 ** -21), (0x07, 2 ** -16),    # 0000 mmm: 2^(m - 23)
    (0x08, 1), (0x09, 1.125), (0x0F, 1.875),                            # 0001 mmm: exponent 0
    (0x10, 2), (0x17, 3.75), (0x18, 0.5), (0x1F, 0.9375),               # 001 s mmm: +-1
    (0x20, 4), (0x28, 8), (0x2F, 15), (0x30, 0.25), (0x38, 0.125),      # 01 sd mmm: +-2, 3
    (0x40, 16), (0x43, 28), (0x44, 32), (0x4C, 128), (0x4F, 224),       # 10 0dd mm: 4 to 7
    (0x50, 2 ** -4), (0x5C, 2 ** -7), (0x5F, 1.75 * 2 ** -7),           # 10 1dd mm
    (0x60, 256), (0x61, 384), (0x6D, 24576), (0x6E, 32768),             # 11 0ddd m: 8 to 15
    (0x6F, np.inf), (0x70, 2 ** -8), (0x71, 1.5 * 2 ** -8), (0x7E, 2 ** -15),
    (0x7F, 1.5 * 2 ** -15),
    (0x80, np.nan), (0x81, -2 ** -22), (0x88, -1), (0xC0, -16), (0xEE, -32768), (0xEF, -np.inf))


def check_8_bit_floats():
    """Codes of E4M3, HiFloat8 and E8M0, and the casts' ties, underflow, saturation and NaN."""
    for fmt, codes in ((nf.E4M3, E4M3_CODES), (nf.HIF8, HIF8_CODES)):
        listed = np.array([code for code, _ in codes])
        _same(fmt.decode(listed), np.array([value for _, value in codes], dtype=F32), fmt.name)
        every = np.arange(256)
        every = every[np.isfinite(fmt.decode(every))]
        _same(fmt.encode(fmt.decode(every)), every, fmt.name + " round trip")
    ulp = 2 ** -9
    # Ties to even: half a subnormal unit, 1.5 units, 7.75 units (a normal number), 1.0625, 1.1875.
    _same(nf.to_e4m3([0, -0.0, ulp / 2, -ulp / 2, 0.51 * ulp, 1.5 * ulp, 2.5 * ulp, 7.75 * ulp,
                      1.0625, 1.1875, 1.9375, 448, 464, 1e30, np.inf, -np.inf, np.nan]),
          [0x00, 0x80, 0x00, 0x80, 0x01, 0x02, 0x02, 0x08,
           0x38, 0x3A, 0x40, 0x7E, 0x7E, 0x7E, 0x7E, 0xFE, 0x00], "to E4M3")
    # Ties away: 1.0625, 3.875 and 15.5 and 14.5 and 1.5 * 2^-16 (between denormal and normal), 320.
    _same(nf.to_hif8([0, -0.0, 2 ** -23, 0.49 * 2 ** -22, -2 ** -24, 1.5 * 2 ** -22, 1.5 * 2 ** -16,
                      1.0625, -1.0625, 3.875, 15.5, 14.5, 18, 17.9, 320, 319, 28672, 40000, np.inf,
                      -np.inf, np.nan]),
          [0x00, 0x00, 0x01, 0x00, 0x00, 0x02, 0x7E,
           0x09, 0x89, 0x20, 0x40, 0x2F, 0x41, 0x40, 0x61, 0x60, 0x6E, 0x6E, 0x6E,
           0xEE, 0x00], "to HiFloat8")
    _same(nf.from_e8m0([0, 1, 126, 127, 128, 254, 255]),
          np.array([2.0 ** -127, 2.0 ** -126, 0.5, 1, 2, 2.0 ** 127, np.nan]), "E8M0")
    tie = np.array([0x3F808000, 0xBF808000, 0x3F807FFF, 0x7F7F8000], dtype=np.uint32).view(F32)
    _same(nf.to_bf16_away(tie), [0x3F81, 0xBF81, 0x3F80, 0x7F80], "bf16 with ties away")


def check_blocks():
    """MXFP8 quantisation: scale from the largest exponent, ties away on the way through bf16."""
    rows = np.zeros((1, 32 * 5), dtype=F32)
    # Block 0: 1.99 is 1.9921875 in bf16, times 2^8 above 448; 273/256 is a tie, away to 274/256,
    # which is nearer to 288 than to 256; 2^-17 * 2^8 = 2^-9. Block 1 stays 0. Block 2: an infinity.
    # Block 3: 2^-126 has exponent 1, so the byte is 0: times 2^127. Block 4: a denormal alone.
    rows[0, :4] = 1.99, 273 / 256, -273 / 256, 2.0 ** -17
    rows[0, 64:67] = np.inf, 1, np.nan
    rows[0, 96] = 2.0 ** -126
    rows[0, 128] = 2.0 ** -127
    with np.errstate(all="ignore"):
        codes, scales = m.mx_quant(rows)
    _same(scales, [[119, 0, 255, 0, 0]], "E8M0 scales")
    expected = np.zeros((1, 160))
    expected[0, :4] = 0x7E, 0x79, 0xF9, 0x01
    expected[0, 64] = 0x7E
    expected[0, 96] = 0x40
    _same(codes, expected, "MXFP8 codes")


def check_group_rows():
    """Per-group rows byte by byte."""
    tile = np.zeros((1, 130), dtype=F32)
    tile[0, :3], tile[0, 128:] = (2, -0.5, -3), (0, 0)
    with np.errstate(all="ignore"):
        row = m.group_rows(tile, _bf(1, -2).reshape(1, 2), nf.INT8, 2 / 3)[0].tolist()
    # A 3, L = 2: 2 and -3 saturate, -0.5 * 63.5 = -31.75; scale 2/127 is 0x3C810204; a zero tile.
    _same(row, [127, 224, 129] + [0] * 127 + [0x80, 0x3F, 0x00, 0xC0]
          + [0x04, 0x02, 0x81, 0x3C] + [0, 0, 0, 0], "int8 row")
    # E4M3: 3/448 is the scale, so 2 -> 298.67, -0.5 -> -74.67, -3 -> -448; zeros have 1e-4/448.
    row = m.group_rows(tile, _bf(1, -2).reshape(1, 2), nf.E4M3, None)[0].tolist()
    scales = np.array([3 / 448, 1e-4 / 448]).astype("<f4")
    _same(row[:130], [0x79, 0xE9, 0xFE] + [0] * 127, "E4M3 row")
    got = np.frombuffer(bytes(row[134:]), dtype="<f4")
    if not np.allclose(got, scales, rtol=2e-7, atol=0):
        raise AssertionError(f"E4M3 tile scales: got {got}, expected {scales}")


def check_slots():
    """Slots of the cache modes, block size 16."""
    pages = np.array([4, -1, 2, 0])
    batches = layouts.token_slots("PA_BLK_BSND", (2, 17), pages.reshape(2, 2), None, 16)
    _same(batches, list(range(64, 80)) + [-1] + list(range(32, 48)) + [0], "pages of batches")
    ends = np.array([0, 1, 1, 18], dtype=np.int32)
    fused = layouts.token_slots("PA_BLK_NZ", (18,), np.array([3, 1, 5]), ends, 16)
    _same(fused, [48] + list(range(16, 32)) + [80], "pages of sequences")
    _same(layouts.token_slots("PA_NZ", (3,), np.array([7, -9, 7]), None, 16), [7, -1, 7], "slots")
    _same(layouts.token_slots("BSND", (2, 2), None, None, 2), [0, 1, 2, 3], "token numbers")


def check_factors():
    """A factor closer to 1 than FLT_EPSILON, and NaN, count as 1."""
    y = np.array([3], dtype=F32)
    for factor, expected in ((2, 6), (1 - 2.0 ** -24, 3), (1 - 2.0 ** -23, 3 - 2.0 ** -22 * 1.5),
                             (1 + 2.0 ** -23, 3 + 2.0 ** -22 * 1.5), (np.nan, 3), (0, 0)):
        _same(m.apply_factor(y, factor), np.array([expected], dtype=F32), f"factor {factor}")


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
    _same(layouts.cache_offsets(38, 64, 16, "PA_NZ", 16)[21], 2048 + 256 + 96 + 5,
          "PA_NZ bf16 offset")
    _same(layouts.cache_offsets(38, 64, 16, "PA_NZ", 32)[40], 2048 + 512 + 192 + 8,
          "PA_NZ int8 offset")


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
    for check in (check_bf16, check_int8, check_8_bit_floats, check_blocks, check_group_rows,
                  check_slots, check_factors, check_layouts, check_steps, check_operator):
        check()
