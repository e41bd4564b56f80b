"""A second, deliberately naive model: Python floats, one element at a time.

It exists only to check mla_prolog_model.py and uses other means wherever it can: matmuls are
summed exactly (math.fsum), float32 operations are done in binary64 and rounded by struct
(harmless double rounding for + * / sqrt), bf16 is rounded through frexp, binary16 and the 8-bit
floats by a search in the table of all their values, layouts and slots by the formulas.
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


# Magnitudes of the 8-bit floats and their codes, ascending.
_E4M3 = [(m / 512 if e == 0 else math.ldexp(1 + m / 8, e - 7), 8 * e + m)
         for e in range(16) for m in range(8)][:-1]                     # 0x7F is NaN


def _hif8_table():
    """HiFloat8 from the text of its fields: prefix, exponent sign and digits, mantissa digits."""
    prefixes = ("0001", "001", "01", "10", "11")
    table = [(0.0, 0)] + [(2.0 ** (m - 23), m) for m in range(1, 8)]
    for e in range(-15, 16):
        size = bin(abs(e))[2:] if e else ""
        digits = ("1" if e < 0 else "0") + size[1:] if e else ""
        room = 7 - len(prefixes[len(size)]) - len(digits)
        for m in range(2 ** room):
            code = int(prefixes[len(size)] + digits + format(m, f"0{room}b"), 2)
            table.append((2.0 ** e * (1 + m / 2 ** room), code))
    return sorted(table)[:-1]                                           # 1.5 * 2^15 is infinity


_HIF8 = _hif8_table()


def _nearest(table, x, tie_to_even):
    """Code of the table's value nearest to x, saturated; NaN -> 0."""
    if math.isnan(x):
        return 0
    a = min(abs(x), table[-1][0])
    above = bisect.bisect_left(table, (a, -1))
    if table[above][0] != a:
        up, down = table[above][0] - a, a - table[above - 1][0]
        if down < up or (down == up and tie_to_even and table[above][1] % 2):
            above -= 1
    code = table[above][1]
    negative = math.copysign(1.0, x) < 0 and (tie_to_even or code)      # HiFloat8 has no -0
    return code + 128 if negative else code


def e4m3(x):
    """E4M3 code of a float."""
    return _nearest(_E4M3, x, True)


def hif8(x):
    """HiFloat8 code of a float."""
    return _nearest(_HIF8, x, False)


def _values(table, specials):
    """The 256 values of an 8-bit float by code."""
    values = [0.0] * 256
    for value, code in table:
        values[code], values[code + 128] = value, -value
    for code, value in specials.items():
        values[code] = value
    return values


E4M3_VALUES = _values(_E4M3, {0x7F: math.nan, 0xFF: math.nan})
HIF8_VALUES = _values(_HIF8, {0x6F: math.inf, 0xEF: -math.inf, 0x80: math.nan})


def dot(a, b):
    """Exact sum of products, rounded once to binary64 and once to float32."""
    products = [x * y for x, y in zip(a, b)]
    if all(map(math.isfinite, products)):
        return f32(math.fsum(products))
    return f32(sum(products))


class Kind:
    """The 8-bit type of a call: largest value, cast, and values of codes."""

    def __init__(self, weight_quant):
        self.weight_quant = weight_quant
        self.largest = (0, 127, 127, 448, 448, 32768)[weight_quant]
        self.cast = (None, int8, int8, e4m3, e4m3, hif8)[weight_quant]
        self.values = {3: E4M3_VALUES, 4: E4M3_VALUES, 5: HIF8_VALUES}.get(weight_quant)

    def widen(self, tensor):
        """bf16 bits or 8-bit codes -> nested lists of Python floats; others -> lists of numbers."""
        if tensor.dtype == np.uint16:
            floats = [struct.unpack("<f", struct.pack("<I", int(b) << 16))[0] for b in tensor.flat]
        elif tensor.dtype == np.uint8:
            floats = [self.values[code] for code in tensor.flat]
        else:
            return tensor.tolist()
        return np.array(floats, dtype=np.float64).reshape(tensor.shape).tolist()


def column(storage, k_rows, n):
    """Column n of a weight, by the offset formula if it is an NZ image."""
    if storage.ndim == 2:
        return np.array([storage[k, n] for k in range(k_rows)], dtype=storage.dtype)
    c0 = 16 if storage.dtype == np.uint16 else 32
    padded = (k_rows + 15) // 16 * 16
    flat = storage.reshape(-1)
    picked = [flat[n // c0 * padded * c0 + k // 16 * 16 * c0 + k % 16 * c0 + n % c0]
              for k in range(k_rows)]
    return np.array(picked, dtype=storage.dtype)


def norm(x, gamma, eps, factor):
    """RMSNorm of one row, times a factor that counts only if it differs from 1."""
    lanes = [0.0] * 64
    for j, v in enumerate(x):
        lanes[j % 64] = f32(lanes[j % 64] + f32(v * v))

    def tree(begin, count):
        if count == 1:
            return lanes[begin]
        return f32(tree(begin, count // 2) + tree(begin + count // 2, count // 2))

    mean = f32(f32(tree(0, 64) * f32(1 / len(x))) + f32(eps))
    root = f32(math.sqrt(mean)) if not math.isnan(mean) else mean
    y = [f32(div(v, root) * g) for v, g in zip(x, gamma)]
    factor = f32(factor)
    if abs(factor - 1) >= 2.0 ** -23:
        y = [f32(v * factor) for v in y]
    return y


def amax(row):
    """Largest magnitude; NaN if any element is NaN."""
    return math.nan if any(map(math.isnan, row)) else max(map(abs, row))


def quantise(row, kind, is_950, cast=None):
    """8-bit values and scale of a row."""
    cast = cast or kind.cast
    top = amax(row)
    if is_950:
        scale = f32(top * f32(1 / kind.largest))
        return [cast(div(v, scale)) for v in row], scale
    return [cast(f32(v * div(float(kind.largest), top))) for v in row], div(top, kind.largest)


def bf_away(x):
    """Nearest bf16 value, ties away from zero."""
    if x == 0 or math.isinf(x) or math.isnan(x):
        return x
    unit = max(math.frexp(x)[1], -125) - 8
    rounded = math.ldexp(math.floor(math.ldexp(abs(x), -unit) + 0.5), unit)
    return math.copysign(math.inf if rounded >= 2.0 ** 128 else rounded, x)


def quantise_mx(row):
    """E4M3 codes and E8M0 codes of a row in blocks of 32."""
    codes, scales = [], []
    for start in range(0, len(row), 32):
        block = [bf_away(v) for v in row[start:start + 32]]
        top = amax(block)
        if not math.isfinite(top):
            exponent = 255
        else:
            exponent = max(math.frexp(top)[1] + 126, 0) if top else 0
        scale = 255 if exponent == 255 else max(exponent - 8, 0)
        scales.append(scale)
        for v in block:
            wide = bf(v * 2.0 ** (127 - scale))
            codes.append(0 if exponent == 0 else e4m3(wide))
    return codes, scales


def rope(x, cos, sin):
    """RoPE of one row."""
    h = len(x) // 2
    out = [0.0] * len(x)
    for i in range(h):
        re, im = x[2 * i], x[2 * i + 1]
        out[i] = bf(f32(f32(re * cos[i]) - f32(im * sin[i])))
        out[h + i] = bf(f32(f32(im * cos[h + i]) + f32(re * sin[h + i])))
    return out


def group_row(c, kr, kind, alpha):
    """The bytes of a per-group cache row."""
    row, scales = bytearray(), []
    for start in range(0, len(c), 128):
        tile = c[start:start + 128]
        top = amax(tile)
        if kind.largest == 127:
            limit = f32(top * alpha)
            scale = f32(limit * f32(1 / 127))
            inverse = div(1.0, scale)
            for v in tile:
                v = v if math.isnan(v) or math.isnan(limit) else min(max(v, -limit), limit)
                row.append(int8(f32(v * inverse)) & 0xFF)
        else:
            scale = f32((top if top > f32(1e-4) or math.isnan(top) else f32(1e-4))
                        * f32(1 / kind.largest))
            row += bytes(kind.cast(div(v, scale)) for v in tile)
        scales.append(scale)
    for v in kr:
        row += b"\xc0\x7f" if math.isnan(v) else struct.pack("<f", v)[2:]
    for v in scales:
        row += struct.pack("<I", 0x7FC00000) if math.isnan(v) else struct.pack("<f", v)
    return list(row)


class Token:
    """All results of one token as Python numbers, including the two cache rows."""

    def __init__(self, tensors, t, mode, dims):
        self.tensors, self.mode, self.dims = tensors, mode, dims
        self.kind = Kind(mode.weight_quant)
        self.is_950 = mode.soc == "ascend950"
        he, hcq, heads, d, dr, hckv = dims
        x = self.kind.widen(tensors["token_x"].reshape(-1, he)[t])
        self.cos = self.kind.widen(tensors["rope_cos"].reshape(-1, dr)[t])
        self.sin = self.kind.widen(tensors["rope_sin"].reshape(-1, dr)[t])
        sx = None
        if "dequant_scale_x" in tensors:
            scales = tensors["dequant_scale_x"]
            sx = scales.reshape(len(scales), -1)[t].tolist()
        self.r = {}
        self.query(x, sx, hcq, heads, d, dr, hckv)
        self.key(x, sx, hckv, dr)

    def row(self, name):
        """A one-row tensor as a list, None if it is absent."""
        return self.kind.widen(self.tensors[name].reshape(-1)) if name in self.tensors else None

    def project(self, x, token_scale, name, n_columns):
        """One token times a weight; bf16 result for bf16, dequantised for 8-bit types."""
        weight = self.tensors["weight_" + name]
        if weight.dtype != np.uint16:
            scale = self.tensors["dequant_scale_w_" + name]
            scale = scale.tolist() if scale.dtype == np.uint8 else scale.reshape(-1).tolist()
        out = []
        for n in range(n_columns):
            w = self.kind.widen(column(weight, len(x), n))
            if weight.dtype == np.uint16:
                out.append(bf(dot(x, w)))
            elif self.mode.weight_quant == 3:
                def e8m0(code):
                    return math.nan if code == 255 else 2.0 ** (code - 127)
                out.append(dot([v * e8m0(token_scale[k // 32]) for k, v in enumerate(x)],
                               [v * e8m0(scale[n][k // 32]) for k, v in enumerate(w)]))
            else:
                total = dot(x, w)
                first, second = token_scale[0], scale[n]
                if self.is_950:
                    first, second = second, first
                out.append(f32(f32(total * first) * second))
        return out

    def query(self, x, sx, hcq, heads, d, dr, hckv):
        r, mode, kind = self.r, self.mode, self.kind
        cq = self.project(x, sx, "dq", hcq)
        cq = norm(cq, self.row("rmsnorm_gamma_cq"), mode.epsilon_cq, mode.qc_qr_scale)
        columns = heads * (d + dr)
        if mode.weight_quant == 0:
            r["c_q"] = r["query_norm"] = cq = [bf(v) for v in cq]
            q = self.project(cq, None, "uq_qr", columns)
        else:
            r["c_q"] = cq
            smooth = self.row("smooth_scales_cq")
            z = cq if smooth is None else [f32(a * b) for a, b in zip(cq, smooth)]
            if mode.weight_quant == 3:
                codes, scale = quantise_mx(z)
            else:
                codes, scale = quantise(z, kind, self.is_950)
                scale = [scale]
            r["query_norm"], r["dequant_scale_q_norm"] = codes, scale
            if kind.largest == 127:
                r["c_q_int8"], r["c_q_scale"] = codes, scale
            values = codes if kind.values is None else [kind.values[code] for code in codes]
            q = self.project(values, scale, "uq_qr", columns)
        for name in ("q_c", "q_r", "query", "query_rope"):
            r[name] = []
        if mode.kv_quant == 1:
            r["dequant_scale_q_nope"] = []
        uk = kind.widen(self.tensors["weight_uk"])
        for n in range(heads):
            head = q[n * (d + dr):(n + 1) * (d + dr)]
            qc = [bf(v) for v in head[:d]]
            qn = [bf(dot(qc, [uk[n][k][j] for k in range(d)])) for j in range(hckv)]
            qr = rope(head[d:], self.cos, self.sin)
            r["q_c"].append(qc)
            r["q_r"].append(head[d:])
            if mode.kv_quant == 1:
                old_int8 = kind.largest == 127 and not self.is_950
                qn, scale = quantise(qn, kind, self.is_950, int8_query if old_int8 else None)
                factor = float(self.tensors["quant_scale_ckv"].reshape(-1)[0])
                qr = [bf(f32(v * div(factor, scale))) for v in qr]
                r["dequant_scale_q_nope"].append([scale])
            r["query"].append(qn)
            r["query_rope"].append(qr)

    def key(self, x, sx, hckv, dr):
        r, mode, kind = self.r, self.mode, self.kind
        kv = self.project(x, sx, "dkv_kr", hckv + dr)
        r["c_kv"] = c = norm(kv[:hckv], self.row("rmsnorm_gamma_ckv"), mode.epsilon_ckv,
                             mode.kc_scale)
        r["k_r"] = kv[hckv:]
        self.kr_row = kr = rope(kv[hckv:], self.cos, self.sin)
        if mode.kv_quant == 0:
            self.kv_row = [bf(v) for v in c]
        elif mode.kv_quant == 1:
            factor = self.row("quant_scale_ckv")[0]
            self.kv_row = [kind.cast(f32(v * factor)) for v in c]
        elif mode.kv_quant == 2:
            self.kv_row = [int8(f32(v * s)) for v, s in zip(c, self.row("quant_scale_ckv"))]
            self.kr_row = [int8(f32(v * s)) for v, s in zip(kr, self.row("quant_scale_ckr"))]
        else:
            alpha = self.row("k_nope_clip_alpha")
            self.kv_row = group_row(c, kr, kind, alpha[0] if alpha else None)


def _narrow(values, dtype):
    """Python numbers -> flat array of `dtype` (values are exact in it)."""
    if dtype in (np.int8, np.uint8):
        return (np.array(values, dtype=np.int64).reshape(-1) & 0xFF).astype(np.uint8).view(dtype)
    wide = np.array(values, dtype=np.float32).reshape(-1)
    wide[np.isnan(wide)] = np.float32(np.nan)
    if dtype == np.float32:
        return wide
    return (wide.view(np.uint32) >> 16).astype(np.uint16)


def slot_of(tensors, mode, t, block_size):
    """The slot of token t, negative if it is not stored."""
    if mode.cache_mode in ("BSND", "TND"):
        return t
    index = tensors["cache_index"].reshape(-1).tolist()
    if "BLK" not in mode.cache_mode:
        return index[t]
    lead = tensors["token_x"].shape[:-1]
    if len(lead) == 2:
        batch, position = divmod(t, lead[1])
        base = batch * math.ceil(lead[1] / block_size)
    else:
        begin = base = 0
        for end in tensors["actual_seq_len"].tolist():
            if t < end:
                break
            base += math.ceil((end - begin) / block_size)
            begin = end
        position = t - begin
    page = index[base + position // block_size]
    return -1 if page < 0 else page * block_size + position % block_size


def differences(tensors, mode, dims, result):
    """Names of the entries of `result` (from the NumPy model) that the naive model denies."""
    rows = [Token(tensors, t, mode, dims) for t in range(tensors["token_x"][..., 0].size)]
    bad = []
    for name in result:
        if name.endswith("_cache"):
            expected = tensors[name].reshape(-1).copy()
            if expected.size:
                bs, width = tensors[name].shape[1], tensors[name].shape[-1]
                c0 = 16 if expected.dtype == np.uint16 else 32
            for t, token in enumerate(rows):
                slot = slot_of(tensors, mode, t, bs) if expected.size else -1
                if slot < 0:
                    continue
                values = _narrow(token.kv_row if name == "kv_cache" else token.kr_row,
                                 expected.dtype)
                for e in range(width):
                    where = slot * width + e
                    if mode.cache_mode.endswith("NZ"):
                        where = (slot // bs * bs * width + e // c0 * bs * c0
                                 + slot % bs * c0 + e % c0)
                    expected[where] = values[e]
        else:
            expected = _narrow([token.r[name] for token in rows], result[name].dtype)
        if expected.tobytes() != result[name].tobytes():
            bad.append(name)
    return bad
