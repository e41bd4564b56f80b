"""A decode loop: one attention layer of DeepSeek-V3's shape at a reduced size, over a paged cache that grows.

Each step, the operator makes the queries and writes the new rows into the pages; attention reads the pages with the
absorbed query; the layer's output is the next step's input. Every output is checked against the layer as the model's own
code has it: keys and values expanded by kv_b_proj for the whole history, in plain torch and binary64.
"""

import sys

import numpy as np
import torch

import mlaprolog
import mlaprolog.torch

He, Hcq, N, D, Dr, Dv, Hckv = 512, 192, 8, 64, 32, 64, 128
BLOCK_SIZE, NUM_PAGES = 16, 16
PROMPTS, STEPS = (21, 9), 24  # tokens of the two sequences before the loop, steps of the loop
EPSILON = 1e-6
YARN = dict(base=10000.0, factor=40.0, original_max_position=64)
SCALE = (D + Dr) ** -0.5

torch.manual_seed(0)


def bf16(*shape):
    return (torch.randn(shape) * shape[-1] ** -0.5).to(torch.bfloat16)


# As in a checkpoint: torch.nn.Linear's (out, in).
layer = {
    "q_a_proj": bf16(Hcq, He), "q_a_layernorm": torch.ones(Hcq).to(torch.bfloat16), "q_b_proj": bf16(N * (D + Dr), Hcq),
    "kv_a_proj_with_mqa": bf16(Hckv + Dr, He), "kv_a_layernorm": torch.ones(Hckv).to(torch.bfloat16),
    "kv_b_proj": bf16(N * (D + Dv), Hckv), "o_proj": bf16(He, N * Dv),
}  # fmt: skip
kv_b = layer["kv_b_proj"].view(N, D + Dv, Hckv)
weight_uk, weight_uv = kv_b[:, :D].contiguous(), kv_b[:, D:].transpose(1, 2)  # [N, D, Hckv], [N, Hckv, Dv]
weights = (
    layer["q_a_proj"].T, layer["q_b_proj"].T, weight_uk, layer["kv_a_proj_with_mqa"].T, layer["q_a_layernorm"],
    layer["kv_a_layernorm"],
)  # fmt: skip


def rope_tables(positions):
    sin, cos = mlaprolog.rope_table(np.array(positions), Dr, **YARN, dtype="float32")
    return torch.from_numpy(sin).to(torch.bfloat16), torch.from_numpy(cos).to(torch.bfloat16)


class PagedCache:
    """Pages of latent keys, handed out as sequences grow."""

    def __init__(self):
        self.kv = torch.zeros((NUM_PAGES, BLOCK_SIZE, 1, Hckv), dtype=torch.bfloat16)
        self.kr = torch.zeros((NUM_PAGES, BLOCK_SIZE, 1, Dr), dtype=torch.bfloat16)
        self.free = list(range(NUM_PAGES))[::-1]
        self.tables = {}
        self.lengths = {}

    def append(self, sequence, count):
        """The slots of the next `count` tokens."""
        table, length = self.tables.setdefault(sequence, []), self.lengths.get(sequence, 0)
        while len(table) * BLOCK_SIZE < length + count:
            table.append(self.free.pop())
        self.lengths[sequence] = length + count
        return [table[i // BLOCK_SIZE] * BLOCK_SIZE + i % BLOCK_SIZE for i in range(length, length + count)]

    def read(self, sequence):
        pages, length = self.tables[sequence], self.lengths[sequence]
        return tuple(cache[pages].reshape(-1, cache.shape[-1])[:length] for cache in (self.kv, self.kr))


def attend(query, query_rope, c_kv, k_rope):
    """Absorbed attention of one token's heads over the latent keys: [N, Dv]."""
    scores = (query.float() @ c_kv.float().T + query_rope.float() @ k_rope.float().T) * SCALE
    latent = scores.softmax(-1) @ c_kv.float()
    return torch.einsum("nk,nkv->nv", latent, weight_uv.float())


def run(cache, x, sequences, positions):
    """The layer for tokens x [T, He] of the given sequences and positions: outputs [T, He]."""
    slots = [slot for sequence in sequences for slot in cache.append(sequence, 1)]
    sin, cos = rope_tables(positions)
    query, query_rope, _, _, _ = torch.ops.npu.npu_mla_prolog_v3(
        x, *weights, sin, cos, cache.kv, cache.kr, cache_index=torch.tensor(slots), rmsnorm_epsilon_cq=EPSILON,
        rmsnorm_epsilon_ckv=EPSILON,
    )  # fmt: skip
    outputs = []
    for token, (sequence, position) in enumerate(zip(sequences, positions)):
        c_kv, k_rope = (rows[: position + 1] for rows in cache.read(sequence))  # causal
        heads = attend(query[token], query_rope[token], c_kv, k_rope)
        outputs.append(heads.flatten() @ layer["o_proj"].float().T)
    return torch.stack(outputs)


def plain_attention(history):
    """The layer's output for the last of the tokens [L, He], as the model's code computes it, in binary64."""
    w = {name: tensor.double() for name, tensor in layer.items()}
    x = history.double()
    sin, cos = (table.double() for table in rope_tables(range(len(history))))

    def norm(values, gamma):
        return values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + EPSILON) * gamma

    def rope(values, sine, cosine):
        values = torch.cat([values[..., 0::2], values[..., 1::2]], -1)
        first, second = values.chunk(2, -1)
        return values * cosine + torch.cat([-second, first], -1) * sine

    q = (norm(x[-1] @ w["q_a_proj"].T, w["q_a_layernorm"]) @ w["q_b_proj"].T).view(N, D + Dr)
    key = x @ w["kv_a_proj_with_mqa"].T
    expanded = (norm(key[:, :Hckv], w["kv_a_layernorm"]) @ w["kv_b_proj"].T).view(-1, N, D + Dv)
    k_rope = rope(key[:, Hckv:], sin, cos)
    scores = torch.einsum("nd,lnd->nl", q[:, :D], expanded[..., :D]) + rope(q[:, D:], sin[-1], cos[-1]) @ k_rope.T
    heads = torch.einsum("nl,lnv->nv", (scores * SCALE).softmax(-1), expanded[..., D:])
    return heads.flatten() @ w["o_proj"].T


def main():
    cache = PagedCache()
    histories = [torch.randn(length, He).to(torch.bfloat16) for length in PROMPTS]
    errors = []

    def check(outputs):
        for history, output in zip(histories, outputs):
            expected = plain_attention(history)
            errors.append(float((output - expected).norm() / expected.norm()))

    # The prompts in one call, then a token of each sequence per step.
    sequences = [sequence for sequence, length in enumerate(PROMPTS) for _ in range(length)]
    positions = [position for length in PROMPTS for position in range(length)]
    outputs = run(cache, torch.cat(histories), sequences, positions)
    last = outputs[torch.tensor(PROMPTS).cumsum(0) - 1]
    check(last)
    for step in range(STEPS):
        x = (last * torch.rsqrt(last.pow(2).mean(-1, keepdim=True))).to(torch.bfloat16)
        histories = [torch.cat([history, token[None]]) for history, token in zip(histories, x)]
        last = run(cache, x, [0, 1], [len(history) - 1 for history in histories])
        check(last)

    print(f"{STEPS} steps of 2 sequences after prompts of {PROMPTS} tokens; lengths {list(cache.lengths.values())}, "
          f"pages {list(cache.tables.values())}")  # fmt: skip
    print(f"relative error of the layer's output against plain attention: largest {max(errors):.1e}")
    print(f"sets of packed weights: {mlaprolog.torch.num_cached_weights()}")
    return int(max(errors) > 1e-2 or mlaprolog.torch.num_cached_weights() != 1)


if __name__ == "__main__":
    sys.exit(main())
