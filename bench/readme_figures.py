#!/usr/bin/env python3
"""Prints README's figures from the published results; scripts/readme_block.py puts them there.

Usage: readme_figures.py <results.json>
"""

import sys

import bench_results

HEADS = 128
HEADER = ["T", "bf16", "bound", "bound / bf16", "oneDNN composed", "oneDNN / bf16", "partial", "int8 full"]


def figures(results):
    machine = results["machine"]
    points = {(point["tokens"], point["scenario"]): point for point in results["points"] if point["heads"] == HEADS}
    lines = [
        f"One layer of DeepSeek-V3 (N = {HEADS}) on {machine['threads']} threads of {machine['cpu']} (`{machine['isa']}`), weights "
        "from memory and not",
        "from a cache, medians in milliseconds. The bound is what reading the weights, or the arithmetic, takes by the machine's",
        "own limits in the same run.",
        "",
        "| " + " | ".join(HEADER) + " |",
        "|" + "---:|" * len(HEADER),
    ]
    for tokens in sorted({tokens for tokens, _ in points}):
        bf16 = points[tokens, "non-quant"]
        bound = max(bf16["memory_bound_seconds"], bf16["compute_bound_seconds"])
        peer = bf16["peers"][0] if bf16["peers"] else None
        row = [
            str(tokens), milliseconds(bf16["ours"]["median_seconds"]), milliseconds(bound), f"{bf16['efficiency']:.2f}",
            milliseconds(peer["median_seconds"]) if peer else "", f"{bf16['against_peer']:.2f}" if peer else ""
        ]
        for scenario in ("partial", "full-int8"):
            point = points.get((tokens, scenario))
            row.append(milliseconds(point["ours"]["median_seconds"]) if point else "")
        lines.append("| " + " | ".join(row) + " |")
    met = sum(target["met"] for target in results["targets"])
    lines += ["", f"That run meets {met} of the project's {len(results['targets'])} targets." + missed_text(results["targets"])]
    return "\n".join(lines) + "\n"


def missed_text(targets):
    """The missed targets, those of one kind together: their names end with ", N = ..., T = ..."."""
    tokens = {}
    for target in targets:
        if not target["met"]:
            kind, _, point = target["what"].partition(", N = ")
            tokens.setdefault(kind, set()).update(int(t) for _, _, t in [point.partition(", T = ")] if t)
    if not tokens:
        return ""
    kinds = [f"{kind} (T = {', '.join(map(str, sorted(of_kind)))})" if of_kind else kind for kind, of_kind in tokens.items()]
    return " Missed: " + "; ".join(kinds) + "."


def milliseconds(seconds):
    return f"{1e3 * seconds:.2f}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(figures(bench_results.load(sys.argv[1])))
