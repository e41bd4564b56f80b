"""torch_npu's operator on CPU tensors."""

import mlaprolog.torch_npu_shim  # noqa: F401  where torch_npu is not installed: makes `import torch_npu` work
import torch
import torch_npu

T, He, Hcq, N, D, Dr, Hckv = 4, 1024, 1536, 8, 128, 64, 512
torch.manual_seed(0)


def bf16(*shape):
    return (torch.randn(shape) / shape[0] ** 0.5).to(torch.bfloat16)


weight_dq = torch_npu.npu_format_cast(bf16(He, Hcq), 29)  # FRACTAL_NZ; plain matrices do as well
weight_uq_qr = torch_npu.npu_format_cast(bf16(Hcq, N * (D + Dr)), 29)
weight_dkv_kr = torch_npu.npu_format_cast(bf16(He, Hckv + Dr), 29)
gamma_cq, gamma_ckv = torch.ones(Hcq).to(torch.bfloat16), torch.ones(Hckv).to(torch.bfloat16)
angles = torch.arange(T)[:, None] * 10000.0 ** (-torch.arange(0, Dr, 2) / Dr)
rope_sin, rope_cos = (torch.cat([f(angles)] * 2, -1).to(torch.bfloat16) for f in (torch.sin, torch.cos))
kv_cache = torch.zeros(2, 128, 1, Hckv).to(torch.bfloat16)
kr_cache = torch.zeros(2, 128, 1, Dr).to(torch.bfloat16)

query, query_rope, _, _, _ = torch_npu.npu_mla_prolog_v3(
    bf16(T, He), weight_dq, weight_uq_qr, bf16(N, D, Hckv), weight_dkv_kr, gamma_cq, gamma_ckv, rope_sin, rope_cos,
    kv_cache, kr_cache, cache_index=torch.tensor([5, 6, 130, -1]),
)  # fmt: skip
print("query", tuple(query.shape), "query_rope", tuple(query_rope.shape))
print("rows written:", kv_cache.view(256, Hckv).any(1).nonzero().flatten().tolist())
