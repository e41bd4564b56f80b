"""A layer and its calls in every scenario, and the operator's formula in plain NumPy.

The formula is written from the operator's definition alone: in binary64, on the values that the operator's tensors stand
for, with no rounding and no quantisation on the way.
"""

import functools
import pathlib
import sys

import ml_dtypes
import numpy as np

import mlaprolog

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
from number_formats import from_hif8, to_hif8  # noqa: E402

BF16 = ml_dtypes.bfloat16
E4M3 = ml_dtypes.float8_e4m3fn
E8M0 = ml_dtypes.float8_e8m0fnu

HIDDEN, Q_RANK, HEADS, NOPE, ROPE, KV_RANK = 128, 64, 3, 32, 32, 160
EPSILON_CQ, EPSILON_CKV = 1e-6, 1e-5
SLOTS = 16  # of a page
PAGES = 4

# (weights, key): what the operator knows.
SCENARIOS = [
    ("bf16", "bf16"),
    ("uq_qr_int8", "bf16"), ("uq_qr_int8", "per_channel"), ("uq_qr_int8", "per_group"),
    *((weights, key) for weights in ("int8", "mxfp8", "fp8", "hifloat8") for key in ("bf16", "per_tensor", "per_group")),
]  # fmt: skip
# (mode, whether token_x is [B, S, He])
CACHE_MODES = [
    ("PA_BSND", False), ("PA_BSND", True), ("PA_NZ", False), ("PA_NZ", True), ("PA_BLK_BSND", False),
    ("PA_BLK_BSND", True), ("PA_BLK_NZ", False), ("PA_BLK_NZ", True), ("BSND", True), ("TND", False),
]  # fmt: skip
CASES = [
    (weights, key, mode, has_sequences)
    for weights, key in SCENARIOS
    for mode, has_sequences in CACHE_MODES
    if not (key == "per_group" and mode.endswith("NZ"))
]


def values_of(array):
    """What the elements stand for, in binary64."""
    if isinstance(array, mlaprolog.TypedArray):
        return {"hifloat8": from_hif8}[array.dtype](array.array).astype(np.float64)
    return array.astype(np.float64)


class Quantised:
    """A matrix (k, n) in one of the operator's types, its scales, and the values it stands for."""

    def __init__(self, values, weights):
        largest = np.abs(values)
        if weights == "bf16":
            self.array, self.scale = values.astype(BF16), None
            self.values = values_of(self.array)
        elif weights == "mxfp8":  # a power of two for every 32 values along k, [n, k / 32]
            k, n = values.shape
            groups = largest.reshape(k // 32, 32, n).max(1)
            power = np.exp2(np.floor(np.log2(groups)) - 8)
            self.array = np.clip(values / np.repeat(power, 32, 0), -448, 448).astype(E4M3)
            self.scale = power.T.astype(E8M0)
            self.values = values_of(self.array) * np.repeat(power, 32, 0)
        else:
            limit = {"int8": 127, "fp8": 448, "hifloat8": 32768}[weights]
            scale = (largest.max(0, keepdims=True) / limit).astype(np.float32)
            self.array = eight_bit(values / scale, weights)
            self.scale = scale
            self.values = values_of(self.array) * scale


def eight_bit(values, weights):
    if weights == "int8":
        return np.rint(values).astype(np.int8)
    if weights == "hifloat8":
        return mlaprolog.typed(to_hif8(values).astype(np.uint8), "hifloat8")
    return values.astype(E4M3)


@functools.lru_cache(maxsize=None)
def layer_of(weights, seed):
    """The three matrices, which many calls share."""
    random = np.random.default_rng(seed + 1000)
    down = "bf16" if weights == "uq_qr_int8" else weights
    up = "int8" if weights == "uq_qr_int8" else weights
    return {
        "weight_dq": Quantised(random.normal(size=(HIDDEN, Q_RANK)) / HIDDEN**0.5, down),
        "weight_uq_qr": Quantised(random.normal(size=(Q_RANK, HEADS * (NOPE + ROPE))) / Q_RANK**0.5, up),
        "weight_dkv_kr": Quantised(random.normal(size=(HIDDEN, KV_RANK + ROPE)) / HIDDEN**0.5, down),
    }


class Call:
    """Tokens, tables, caches and scales of one call, and the arguments for mlaprolog.prolog."""

    def __init__(self, weights="bf16", key="bf16", mode="PA_BSND", has_sequences=False, tokens=6, seed=5):
        self.weights_kind, self.key, self.mode = weights, key, mode
        random = np.random.default_rng(seed)
        self.layer = layer_of(weights, seed)
        is_full = weights not in ("bf16", "uq_qr_int8")
        down = weights if is_full else "bf16"
        self.weight_uk = (random.normal(size=(HEADS, NOPE, KV_RANK)) / NOPE**0.5).astype(BF16)
        self.gamma_cq = random.uniform(0.5, 1.5, Q_RANK).astype(BF16)
        self.gamma_ckv = random.uniform(0.5, 1.5, KV_RANK).astype(BF16)

        lead = (2, tokens // 2) if has_sequences else (tokens,)
        self.lead, self.tokens = lead, tokens
        x = random.normal(size=(tokens, HIDDEN))
        if down == "mxfp8":
            quantised = Quantised(x.T, down)
            self.token_x, self.scale_x = quantised.array.T.copy(), quantised.scale
            self.x_values = quantised.values.T
        elif is_full:
            quantised = Quantised(x.T, down)
            array = quantised.array
            turned = array.array.T.copy() if isinstance(array, mlaprolog.TypedArray) else array.T.copy()
            self.token_x = mlaprolog.typed(turned, "hifloat8") if down == "hifloat8" else turned
            self.scale_x = quantised.scale.T.copy()
            self.x_values = quantised.values.T
        else:
            self.token_x, self.scale_x = x.astype(BF16), None
            self.x_values = values_of(self.token_x)
        self.token_x = self._shaped(self.token_x, lead)
        self.sin, self.cos = mlaprolog.rope_table(np.arange(tokens).reshape(lead) * 7, ROPE)

        self.cache_index = self.actual_seq_len = None
        if mode in ("PA_BSND", "PA_NZ"):
            self.cache_index = random.permutation(PAGES * SLOTS)[:tokens].reshape(lead).astype(np.int64)
            self.slots = self.cache_index.reshape(-1)
        elif mode.startswith("PA_BLK"):
            pages = random.permutation(PAGES)[:2].astype(np.int64)
            if has_sequences:
                self.cache_index = pages.reshape(2, 1)
                lengths = [tokens // 2] * 2
            else:
                self.cache_index = pages
                lengths = [tokens // 3, tokens - tokens // 3]
                self.actual_seq_len = np.cumsum(lengths).astype(np.int32)
            self.slots = np.concatenate([page * SLOTS + np.arange(n) for page, n in zip(pages, lengths)])
        else:
            self.slots = np.arange(tokens)

        eight = {"uq_qr_int8": np.int8, "int8": np.int8, "fp8": E4M3, "mxfp8": E4M3, "hifloat8": np.uint8}
        if mode in ("BSND", "TND"):
            self.cache_lead = lead + (1,)
        else:
            self.cache_lead = (PAGES, SLOTS, 1)
        self.row_bytes = KV_RANK + 2 * ROPE + 4 * 2
        kv_type = BF16 if key == "bf16" else eight[weights]
        kv_width = self.row_bytes if key == "per_group" else KV_RANK
        kr_type = np.int8 if key == "per_channel" else BF16
        self.kv_cache = self._patterned(self.cache_lead + (kv_width,), kv_type)
        self.kr_cache = None if key == "per_group" else self._patterned(self.cache_lead + (ROPE,), kr_type)
        self.quant_scale_ckv = self.quant_scale_ckr = self.alpha = None
        if key == "per_channel":
            self.quant_scale_ckv = random.uniform(20, 40, KV_RANK).astype(np.float32)
            self.quant_scale_ckr = random.uniform(20, 40, ROPE).astype(np.float32)
        elif key == "per_tensor":
            limit = {"int8": 127, "fp8": 448, "mxfp8": 448, "hifloat8": 1000}[weights]
            self.quant_scale_ckv = np.float32([limit / 8])
        elif key == "per_group" and kv_type == np.int8:
            self.alpha = np.float32([0.9])

    @staticmethod
    def _shaped(array, lead):
        if isinstance(array, mlaprolog.TypedArray):
            return mlaprolog.typed(array.array.reshape(*lead, -1), array.dtype)
        return array.reshape(*lead, -1)

    @staticmethod
    def _patterned(shape, dtype):
        """A cache full of what no row holds by chance."""
        return np.full(int(np.prod(shape)) * np.dtype(dtype).itemsize, 0x55, np.uint8).view(dtype).reshape(shape)

    def weight_arrays(self):
        arrays = {name: matrix.array for name, matrix in self.layer.items()}
        for name, matrix in self.layer.items():
            if matrix.scale is not None:
                arrays["dequant_scale_" + name.replace("weight", "w")] = matrix.scale
        arrays.update(weight_uk=self.weight_uk, rmsnorm_gamma_cq=self.gamma_cq, rmsnorm_gamma_ckv=self.gamma_ckv)
        return arrays

    def weights(self, **options):
        return mlaprolog.Weights(**self.weight_arrays(), **options)

    def _is_hifloat8_cache(self):
        return self.kv_cache.dtype == np.uint8

    def arguments(self):
        """Positional and keyword arguments after the weights; the caches are this object's."""
        kv_cache = mlaprolog.typed(self.kv_cache, "hifloat8") if self._is_hifloat8_cache() else self.kv_cache
        keywords = {
            "dequant_scale_x": self.scale_x, "actual_seq_len": self.actual_seq_len,
            "quant_scale_ckv": self.quant_scale_ckv, "quant_scale_ckr": self.quant_scale_ckr,
            "k_nope_clip_alpha": self.alpha, "cache_mode": self.mode, "kv_quant": self.key,
            "rmsnorm_epsilon_cq": EPSILON_CQ, "rmsnorm_epsilon_ckv": EPSILON_CKV, "qc_qr_scale": 1.5, "kc_scale": 0.75,
            "rules": "950" if self.weights_kind in ("fp8", "mxfp8", "hifloat8") else "a2",
        }  # fmt: skip
        return (self.token_x, self.sin, self.cos, kv_cache, self.kr_cache, self.cache_index), keywords

    def rows(self):
        """The bytes of the cache rows by slot, [slots, width], in plain order."""

        def plain(cache):
            if cache is None:
                return None
            if self.mode.endswith("NZ"):
                pages, slots, _, width = cache.shape
                c0 = 32 // cache.itemsize
                cache = cache.reshape(pages, width // c0, slots, c0).transpose(0, 2, 1, 3)
                return cache.reshape(pages * slots, width)
            return cache.reshape(-1, cache.shape[-1])

        return plain(self.kv_cache), plain(self.kr_cache)

    def stored_key(self):
        """What the rows of the call's tokens stand for: cKV [T, Hckv] and kR [T, Dr], in binary64."""
        kv, kr = self.rows()
        kv = kv[self.slots]
        as_values = from_hif8 if kv.dtype == np.uint8 else (lambda codes: codes.astype(np.float64))
        if self.key == "per_group":
            kv = np.ascontiguousarray(kv)
            scales = kv[:, KV_RANK + 2 * ROPE :].copy().view(np.float32).astype(np.float64)
            c_kv = as_values(kv[:, :KV_RANK]) * np.repeat(scales, 128, 1)[:, :KV_RANK]
            return c_kv, kv[:, KV_RANK : KV_RANK + 2 * ROPE].copy().view(BF16).astype(np.float64)
        kr = kr[self.slots].astype(np.float64)
        c_kv = as_values(kv).astype(np.float64)
        if self.quant_scale_ckv is not None:
            c_kv = c_kv / self.quant_scale_ckv
        return c_kv, kr if self.quant_scale_ckr is None else kr / self.quant_scale_ckr

    def plain_formula(self):
        """query [T, N, Hckv], query_rope [T, N, Dr], cKV [T, Hckv], kR [T, Dr]."""

        def rms_norm(x, gamma, epsilon):
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * values_of(gamma)

        def rope(x):
            sin, cos = (values_of(t).reshape(self.tokens, *[1] * (x.ndim - 2), ROPE) for t in (self.sin, self.cos))
            x = np.concatenate([x[..., 0::2], x[..., 1::2]], -1)
            half = ROPE // 2
            return x * cos + np.concatenate([-x[..., half:], x[..., :half]], -1) * sin

        # epsilon arrives as binary32.
        c_q = rms_norm(self.x_values @ self.layer["weight_dq"].values, self.gamma_cq, np.float32(EPSILON_CQ)) * 1.5
        q = (c_q @ self.layer["weight_uq_qr"].values).reshape(self.tokens, HEADS, NOPE + ROPE)
        query = np.einsum("tnd,ndk->tnk", q[..., :NOPE], values_of(self.weight_uk))
        key = self.x_values @ self.layer["weight_dkv_kr"].values
        c_kv = rms_norm(key[:, :KV_RANK], self.gamma_ckv, np.float32(EPSILON_CKV)) * 0.75
        return query, rope(q[..., NOPE:]), c_kv, rope(key[:, KV_RANK:])


def case_name(case):
    weights, key, mode, has_sequences = case
    return f"{weights}-{key}-{mode}-{'BS' if has_sequences else 'T'}"


def results_of(call, result):
    """All bytes that a call has written, by name."""
    written = {name: value for name, value in result._asdict().items() if value is not None}
    written["kv_cache"] = call.kv_cache
    if call.kr_cache is not None:
        written["kr_cache"] = call.kr_cache
    return {name: np.ascontiguousarray(value).tobytes() for name, value in written.items()}
