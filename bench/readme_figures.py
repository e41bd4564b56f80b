#!/usr/bin/env python3
"""Checks that README's figures are those of the published run.

Usage: readme_figures.py <results.json> <README.md> [--write]     --write puts them there instead
"""

import pathlib
import sys

import bench_results

BEGIN = "<!-- What bench/readme_figures.py makes of docs/performance.json -->\n"
END = "<!-- End of the figures -->\n"
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
    lines += ["", f"That run meets {met} of the project's {len(results['targets'])} targets."]
    return "\n".join(lines) + "\n"


def milliseconds(seconds):
    return f"{1e3 * seconds:.2f}"


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["--write"]):
        sys.exit(__doc__.strip())
    readme = pathlib.Path(sys.argv[2])
    text = readme.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        print(f"{readme}: expected the markers of the figures once")
        return 1
    before, rest = text.split(BEGIN)
    found, after = rest.split(END)
    wanted = figures(bench_results.load(sys.argv[1]))
    if sys.argv[3:] == ["--write"]:
        readme.write_text(before + BEGIN + wanted + END + after, encoding="utf-8")
    elif found != wanted:
        print(f"{readme}: the figures are not those of {sys.argv[1]}; run this with --write. Expected:\n{wanted}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
