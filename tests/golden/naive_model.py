"""A second, deliberately naive model: Python floats, one element at a time.

It exists only to check mla_prolog_model.py and uses other means wherever it can: matmuls are
summed exactly (math.fsum), float32 operations are done in binary64 and rounded by struct
(harmless double rounding for + * / sqrt), bf16 is rounded through frexp, binary16 by a search
in the table of all its values, layouts by the offset formulas.
"""
import bisect
import math
import struct

import numpy as np

_HALVES = [float(v) for v in np.arange(0x7C00, dtype=np.uint16).view(np.float16)] + [65536.0]


def f32(x):
    """Nearest float32 as a Python float."""
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def div(a, b):
    """IEEE division in float32."""
    if b == 0:
        if a == 0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    return f32(a / b)


def bf(x):
    """Nearest bf16 value, ties to even."""
    if x == 0 or math.isinf(x) or math.isnan(x):
        return x
    _, exponent = math.frexp(x)
    unit = max(exponent, -125) - 8
    rounded = math.ldexp(round(math.ldexp(x, -unit)), unit)
    return math.copysign(math.inf if abs(rounded) >= 2.0 ** 128 else abs(rounded), x)


def int8(x):
    """Nearest integer, ties to even, saturated; NaN -> 0."""
    if math.isnan(x):
        return 0
    return max(-128, min(127, x if math.isinf(x) else round(x)))


def int8_query(x):
    """Through binary16, both steps ties away; NaN -> 0."""
    if math.isnan(x):
        return 0
    a = min(abs(x), 65536.0)
    above = bisect.bisect_left(_HALVES, a)
    if _HALVES[above] != a and a - _HALVES[above - 1] < _HALVES[above] - a:
        above -= 1
    whole = int(_HALVES[above])
    whole += _HALVES[above] - whole >= 0.5
    return max(-128, min(127, int(math.copysign(whole, x))))


def dot(a, b):
    """Exact sum of products, rounded once to binary64 and once to float32."""
    products = [x * y for x, y in zip(a, b)]
    if all(map(math.isfinite, products)):
        return f32(math.fsum(products))
    return f32(sum(products))


def widen(tensor):
    """bf16 bits -> nested lists of Python floats; other dtypes -> lists of numbers."""
    if tensor.dtype == np.uint16:
        floats = [struct.unpack("<f", struct.pack("<I", int(b) << 16))[0] for b in tensor.flat]
        return np.array(floats, dtype=np.float64).reshape(tensor.shape).tolist()
    return tensor.tolist()


def column(storage, k_rows, n):
    """Column n of an NZ weight, by the offset formula."""
    c0 = 16 if storage.dtype == np.uint16 else 32
    padded = (k_rows + 15) // 16 * 16
    flat = storage.reshape(-1)
    picked = [flat[n // c0 * padded * c0 + k // 16 * 16 * c0 + k % 16 * c0 + n % c0]
              for k in range(k_rows)]
    return widen(np.array(picked, dtype=storage.dtype))


def norm(x, gamma, eps):
    """RMSNorm of one row."""
    lanes = [0.0] * 64
    for j, v in enumerate(x):
        lanes[j % 64] = f32(lanes[j % 64] + f32(v * v))

    def tree(begin, count):
        if count == 1:
            return lanes[begin]
        return f32(tree(begin, count // 2) + tree(begin + count // 2, count // 2))

    mean = f32(f32(tree(0, 64) * f32(1 / len(x))) + f32(eps))
    root = f32(math.sqrt(mean)) if not math.isnan(mean) else mean
    return [f32(div(v, root) * g) for v, g in zip(x, gamma)]


def amax(row):
    """Largest magnitude; NaN if any element is NaN."""
    return math.nan if any(map(math.isnan, row)) else max(map(abs, row))


def rope(x, cos, sin):
    """RoPE of one row."""
    h = len(x) // 2
    out = [0.0] * len(x)
    for i in range(h):
        re, im = x[2 * i], x[2 * i + 1]
        out[i] = bf(f32(f32(re * cos[i]) - f32(im * sin[i])))
        out[h + i] = bf(f32(f32(im * cos[h + i]) + f32(re * sin[h + i])))
    return out


def _project(x, weight, n_columns, scale_token=None, scale_channel=None):
    """One token times an NZ weight; bf16 result, or dequantised if scales are given."""
    out = []
    for n in range(n_columns):
        w = column(weight, len(x), n)
        if scale_token is None:
            out.append(bf(dot(x, w)))
        else:
            total = f32(sum(a * b for a, b in zip(x, w)))
            out.append(f32(f32(total * scale_token) * scale_channel[n]))
    return out


def _row(tensors, name):
    return widen(tensors[name].reshape(-1)) if name in tensors else None


def run_token(tensors, t, scenario, eps_cq, eps_ckv, dims):
    """All results of token t (Python numbers), including the two cache rows."""
    he, hcq, heads, d, dr, hckv = dims
    full = scenario.startswith("full")
    x = widen(tensors["token_x"].reshape(-1, he)[t])
    cos = widen(tensors["rope_cos"].reshape(-1, dr)[t])
    sin = widen(tensors["rope_sin"].reshape(-1, dr)[t])
    sx = float(tensors["dequant_scale_x"].reshape(-1)[t]) if full else None
    scale_ckv, scale_ckr = _row(tensors, "quant_scale_ckv"), _row(tensors, "quant_scale_ckr")
    r = {}

    cq = _project(x, tensors["weight_dq"], hcq, sx, _row(tensors, "dequant_scale_w_dq"))
    cq = norm(cq, _row(tensors, "rmsnorm_gamma_cq"), eps_cq)
    columns = heads * (d + dr)
    if scenario == "non_quant":
        r["c_q"] = cq = [bf(v) for v in cq]
        q = _project(cq, tensors["weight_uq_qr"], columns)
    else:
        r["c_q"] = cq
        smooth = _row(tensors, "smooth_scales_cq")
        z = cq if smooth is None else [f32(a * b) for a, b in zip(cq, smooth)]
        top = amax(z)
        r["c_q_int8"] = [int8(f32(v * div(127.0, top))) for v in z]
        r["c_q_scale"] = [div(top, 127.0)]
        q = _project(r["c_q_int8"], tensors["weight_uq_qr"], columns, r["c_q_scale"][0],
                     _row(tensors, "dequant_scale_w_uq_qr"))
    for name in ("q_c", "q_r", "query", "query_rope"):
        r[name] = []
    if scenario == "full_int8_kv_per_tensor":
        r["dequant_scale_q_nope"] = []
    uk = widen(tensors["weight_uk"])
    for n in range(heads):
        head = q[n * (d + dr):(n + 1) * (d + dr)]
        qc = [bf(v) for v in head[:d]]
        qn = [bf(dot(qc, [uk[n][k][j] for k in range(d)])) for j in range(hckv)]
        qr = rope(head[d:], cos, sin)
        r["q_c"].append(qc)
        r["q_r"].append(head[d:])
        if scenario == "full_int8_kv_per_tensor":
            top = amax(qn)
            scale = div(top, 127.0)
            qn = [int8_query(f32(v * div(127.0, top))) for v in qn]
            qr = [bf(f32(v * div(scale_ckv[0], scale))) for v in qr]
            r["dequant_scale_q_nope"].append([scale])
        r["query"].append(qn)
        r["query_rope"].append(qr)

    kv = _project(x, tensors["weight_dkv_kr"], hckv + dr, sx,
                  _row(tensors, "dequant_scale_w_dkv_kr"))
    r["c_kv"] = ckv = norm(kv[:hckv], _row(tensors, "rmsnorm_gamma_ckv"), eps_ckv)
    r["k_r"] = kv[hckv:]
    kr = rope(kv[hckv:], cos, sin)
    if scenario == "partial_kv_per_channel":
        ckv = [int8(f32(v * s)) for v, s in zip(ckv, scale_ckv)]
        kr = [int8(f32(v * s)) for v, s in zip(kr, scale_ckr)]
    elif scenario == "full_int8_kv_per_tensor":
        ckv = [int8(f32(v * scale_ckv[0])) for v in ckv]
    else:
        ckv = [bf(v) for v in ckv]
    return r, ckv, kr


def _narrow(values, like):
    """Python numbers -> array with the dtype and shape of `like` (values are exact in it)."""
    if like.dtype == np.int8:
        return np.array(values, dtype=np.int64).astype(np.int8).reshape(like.shape)
    wide = np.array(values, dtype=np.float32).reshape(like.shape)
    wide[np.isnan(wide)] = np.float32(np.nan)
    if like.dtype == np.float32:
        return wide
    return (wide.view(np.uint32) >> 16).astype(np.uint16)


def differences(tensors, scenario, cache_mode, eps_cq, eps_ckv, dims, result):
    """Names of the entries of `result` (from the NumPy model) that the naive model denies."""
    index = tensors["cache_index"].reshape(-1).tolist()
    rows = [run_token(tensors, t, scenario, eps_cq, eps_ckv, dims) for t in range(len(index))]
    bad = []
    for name in rows[0][0]:
        naive = _narrow([row[0][name] for row in rows], result[name])
        if naive.tobytes() != result[name].tobytes():
            bad.append(name)
    for which, name in ((1, "kv_cache"), (2, "kr_cache")):
        flat = tensors[name].reshape(-1).copy()
        blocks, bs, _, width = tensors[name].shape
        c0 = 16 if flat.dtype == np.uint16 else 32
        for t, slot in enumerate(index):
            if slot < 0 or blocks == 0:
                continue
            values = _narrow(rows[t][which], np.zeros(width, dtype=flat.dtype))
            for e in range(width):
                where = slot * width + e
                if cache_mode == "PA_NZ":
                    where = (slot // bs * bs * width + e // c0 * bs * c0
                             + slot % bs * c0 + e % c0)
                flat[where] = values[e]
        if flat.tobytes() != result[name].tobytes():
            bad.append(name)
    return bad
