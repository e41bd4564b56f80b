"""What a call through torch.ops costs over the same call of the C library.

    PYTHONPATH=build/release/python python3 bench/torch_call_overhead.py

A tiny layer, so that the operator itself takes little. Both are timed in alternating short bursts in one thread, and the
best burst of each counts, which is what is left on a machine that does other things as well.
"""

import argparse
import sys
import time

import torch

import mlaprolog
import mlaprolog.torch
from mlaprolog import _native
from mlaprolog.torch import _kernels

TARGET_US = 30.0
HIDDEN, Q_RANK, HEADS, NOPE, ROPE, KV_RANK = 64, 32, 2, 16, 8, 32


def random_bf16(*shape):
    return (torch.randn(*shape) / 8).to(torch.bfloat16)


def make_call(tokens):
    arguments = (
        random_bf16(tokens, HIDDEN), random_bf16(HIDDEN, Q_RANK), random_bf16(Q_RANK, HEADS * (NOPE + ROPE)),
        random_bf16(HEADS, NOPE, KV_RANK), random_bf16(HIDDEN, KV_RANK + ROPE), random_bf16(Q_RANK),
        random_bf16(KV_RANK), random_bf16(tokens, ROPE), random_bf16(tokens, ROPE), random_bf16(2, 16, 1, KV_RANK),
        random_bf16(2, 16, 1, ROPE),
    )  # fmt: skip
    return arguments, {"cache_index": torch.arange(tokens)}


def recorded_arguments(arguments, keywords):
    """What the operator hands to the C library; `kept` holds the memory of it."""
    recorded = []
    run = _kernels.run_in_default
    _kernels.run_in_default = lambda *handed: (recorded.append(handed), run(*handed))
    try:
        kept = torch.ops.npu.npu_mla_prolog_v3(*arguments, **keywords)
    finally:
        _kernels.run_in_default = run
    return recorded[0], kept


def burst(function, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - begin) / calls * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bursts", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=20, help="calls of one burst")
    options = parser.parse_args()

    context = mlaprolog.Context(num_threads=1)
    mlaprolog.set_default_context(context)
    arguments, keywords = make_call(tokens=1)
    handed, kept = recorded_arguments(arguments, keywords)
    operator = torch.ops.npu.npu_mla_prolog_v3
    contenders = {
        "torch.ops.npu.npu_mla_prolog_v3": lambda: operator(*arguments, **keywords),
        "the same without torch's dispatcher": lambda: mlaprolog.torch._operators.v3(*arguments, **keywords),
        "the C call": lambda: _native.run(context.native, *handed),
    }
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(options.bursts):
        for name, function in contenders.items():
            best[name] = min(best[name], burst(function, options.calls))
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, {mlaprolog.cpu_name()}")
    for name, microseconds in best.items():
        print(f"{microseconds:8.2f} us  {name}")
    del kept
    overhead = best["torch.ops.npu.npu_mla_prolog_v3"] - best["the C call"]
    print(f"{overhead:8.2f} us  overhead of a call, at most {TARGET_US:.0f} us are wanted")
    return int(overhead > TARGET_US)


if __name__ == "__main__":
    sys.exit(main())
