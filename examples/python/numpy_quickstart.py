"""Four tokens through the operator, on NumPy arrays."""

import numpy as np

import mlaprolog as mla

T, He, Hcq, N, D, Dr, Hckv = 4, 1024, 1536, 8, 128, 64, 512
random = np.random.default_rng(0)


def bf16(*shape):
    return mla.to_bf16(random.standard_normal(shape) / shape[0] ** 0.5)


weights = mla.Weights(
    weight_dq=bf16(He, Hcq),
    weight_uq_qr=bf16(Hcq, N * (D + Dr)),
    weight_uk=bf16(N, D, Hckv),
    weight_dkv_kr=bf16(He, Hckv + Dr),
    rmsnorm_gamma_cq=mla.to_bf16(np.ones(Hcq)),
    rmsnorm_gamma_ckv=mla.to_bf16(np.ones(Hckv)),
)
sin, cos = mla.rope_table(np.arange(T), Dr)  # of positions 0 to 3
kv_cache = np.zeros((2, 128, 1, Hckv), sin.dtype)  # two pages of 128 slots
kr_cache = np.zeros((2, 128, 1, Dr), sin.dtype)
slots = np.array([5, 6, 130, -1])  # the last token gets no cache row
call = (weights, bf16(T, He), sin, cos, kv_cache, kr_cache, slots)

result = mla.prolog(*call)
print("query", result.query.shape, "query_rope", result.query_rope.shape)
print("rows written:", np.flatnonzero(kv_cache.reshape(256, -1).view(np.uint16).any(1)))

expected, intermediates = mla.reference(*call)
print("against the reference:", mla.compare(result.query, expected.query, standard="staged"))
