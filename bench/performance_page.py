#!/usr/bin/env python3
"""Writes docs/performance.md from the results of mlaprolog_bench.

Usage: performance_page.py <results.json> <page.md> [<further results.json>...]
"""

import bench_results

MEBIBYTE = 1024.0 * 1024.0


def table(header, rows, left=()):
    """Columns are aligned to the right but for those of the given indices."""
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "|".join("---" if i in left else "---:" for i in range(len(header))) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def introduction(results):
    machine = results["machine"]
    peer = results["peer"]
    against = f" and against a prologue composed of {peer}'s matrix products" if peer else ""
    return f"""# Performance

Measured on {results['date']} with mlaprolog {results['version']} on {machine['cpu']}, {machine['threads']} threads, instruction
set `{machine['isa']}`: the operator through its two steps, against the limits of the machine{against},
all in one process and in interleaved rounds.

![time over tokens, with the machine's bounds](performance.svg)

Repeat it with `scripts/bench.sh --full`. This page is written by `scripts/bench.sh --publish`, which also keeps all
numbers in [performance.json](performance.json). The command of this run:

    {results['command']}"""


def machine_block(results):
    machine = results["machine"]
    cache = f"{machine['last_level_cache_bytes'] / MEBIBYTE:.0f} MiB, {machine['last_level_cache_source']}"
    rows = [
        ["CPU", machine["cpu"]],
        ["instruction sets", machine["flags"]],
        ["used by the operator", f"`{machine['isa']}`"],
        ["threads", f"{machine['threads']} of {machine['cpus']} CPUs, not pinned; load {machine['load_at_start']:.1f} at the start"],
        ["last-level cache", cache],
        ["memory", f"{machine['memory_bytes'] / 2**30:.1f} GiB; {100 * machine['huge_page_share']:.0f} % of the process on huge pages "
                   f"(kernel setting `{machine['huge_pages']}`)"],
        ["system", f"{machine['kernel']}, {machine['compiler']}"],
    ]
    limits = []
    bounding = ("read", results["bf16_limit"], results["int8_limit"])
    for limit in results["limits"]:
        is_read = limit["key"] == "read"
        digits = 1 if is_read else 0
        name = limit["what"] if is_read else f"`{limit['what']}`"
        limits.append([f"**{name}**" if limit["key"] in bounding else name,
                       f"{limit['median_per_second'] / 1e9:.{digits}f}", f"{limit['best_per_second'] / 1e9:.{digits}f}",
                       "GB/s" if is_read else "Gop/s"])
    return f"""## The machine

{table(['', ''], rows, left=(0, 1))}

Its own limits, with the same threads and pages; those in bold bound the operator here:

{table(['loop', 'median', 'best', ''], limits, left=(0, 3))}"""


def result_block(results):
    return f"""## Results

`bound` is max(bytes / read bandwidth, operations / peak) with the medians of the same rounds. The bytes are the weights once, the
inputs and the outputs; int8 operations count against the int8 peak. `efficiency` is bound / median. `ratio` is oneDNN's
median over ours.

{result_tables(results, '###')}"""


def result_tables(results, heading):
    parts = []
    for heads in sorted({point["heads"] for point in results["points"]}):
        rows = []
        for point in results["points"]:
            if point["heads"] != heads:
                continue
            ours = point["ours"]
            size = point["weight_bytes"] + point["other_bytes"]
            operations = point["bf16_flops"] + point["int8_ops"]
            bound = max(point["memory_bound_seconds"], point["compute_bound_seconds"])
            peer = point["peers"][0] if point["peers"] else None
            rows.append([
                str(point["tokens"]), point["scenario"], f"{1e3 * ours['median_seconds']:.3f}",
                f"{1e3 * ours['min_seconds']:.3f}", f"{1e3 * bound:.3f}", point["bound"], f"{point['efficiency']:.2f}",
                f"{size / ours['median_seconds'] / 1e9:.1f}", f"{operations / ours['median_seconds'] / 1e9:.0f}",
                f"{1e3 * peer['median_seconds']:.3f}" if peer else "", f"{point['against_peer']:.2f}" if peer else ""
            ])
        header = ["T", "scenario", "median ms", "min ms", "bound ms", "by", "efficiency", "GB/s", "Gop/s", "oneDNN ms",
                  "ratio"]
        parts.append(f"{heading} N = {heads}\n\n" + table(header, rows, left=(1, 5)))
    return "\n\n".join(parts)


def further_block(results):
    machine = results["machine"]
    limits = {limit["key"]: limit for limit in results["limits"]}
    bf16 = limits[results["bf16_limit"]]
    return f"""## `{machine['isa']}`, {machine['threads']} thread{'s' if machine['threads'] != 1 else ''}

    {results['command']}

Reading: {limits['read']['median_per_second'] / 1e9:.1f} GB/s. `{bf16['what']}`: {bf16['median_per_second'] / 1e9:.0f} Gop/s.

{result_tables(results, '####')}

{target_table(results)}"""


def target_block(results):
    return f"## Targets\n\n{target_table(results)}"


def target_table(results):
    rows = []
    for target in results["targets"]:
        sign = "≤" if target["relation"] == "at most" else "≥"
        unit = f" {target['unit']}" if target["unit"] else ""
        rows.append([target["what"], f"{sign} {target['wanted']:.2f}{unit}", f"{target['found']:.2f}{unit}",
                     "met" if target["met"] else "**missed**"])
    met = sum(target["met"] for target in results["targets"])
    return f"""{met} of {len(rows)} are met.

{table(['target', 'wanted', 'found', ''], rows, left=(0, 3))}"""


def notes(results):
    machine = results["machine"]
    items = [
        "A call's time is from the second step to the end of the stream's synchronisation, with a repeatable executor. The first "
        "step is timed separately.",
        f"Consecutive calls use different copies of the weights, so that the last-level cache cannot hold them. Reading is measured "
        f"over {results['read_buffer_bytes'] / MEBIBYTE:.0f} MiB. A virtual machine may report a larger cache than it gets.",
        "A call that took more than three times its contender's median is rejected: a thread was preempted. "
        + rejection_text(results),
        "Inputs and outputs are the same memory in every call and may lie in a cache; the weights do not.",
        "A turn begins with a pass over all of the contender's memory that does not count: in a virtual machine, what was used "
        "last is faster.",
    ]
    items += tile_note(results)
    if results["peer"]:
        names = sorted({peer["name"] for point in results["points"] for peer in point["peers"][:1]})
        items.append(
            f"The peer is {results['peer']} as Debian builds it: two products of x, RMSNorm, RoPE and cache rows in loops the compiler "
            "vectorises for AVX-512, the up-projection, RoPE, and a product batched over heads; the same roundings, results "
            "compared with ours before timing. Its weights are repacked beforehand, which the operator never does. Several "
            f"compositions run; the fastest at each point counts. Among the fastest were: {'; '.join(names)}.")
        items.append("The peer computes the non-quantised scenario only; nothing public composes the quantised ones.")
    else:
        items.append(f"There is no peer in this run: {results['why_no_peer']}.")
    if not results["steady"]:
        items.append("**The machine was not steady**: at some points its limits were below 80 % of the best ones of the run. "
                     "Efficiencies there mean little.")
    if machine["huge_page_share"] < 0.8:
        items.append(f"Only {100 * machine['huge_page_share']:.0f} % of the memory was on huge pages.")
    above = [point for point in results["points"] if point["efficiency"] > 1.0]
    if above:
        items.append(f"{len(above)} efficiencies are above 1. No call is faster than the machine: the limit of those rounds was "
                     "measured low, or the cache held part of the weights.")
    missed = [target["what"] for target in results["targets"] if not target["met"]]
    if missed:
        items.append("Missed targets: " + "; ".join(missed) + ".")
    return "## Notes\n\n" + "\n".join(f"* {item}" for item in items)


def rejection_text(results):
    timings = [point["ours"] for point in results["points"]]
    timings += [peer for point in results["points"] for peer in point["peers"]]
    calls = sum(timing["calls"] for timing in timings)
    rejected = sum(timing["rejected"] for timing in timings)
    return f"Here {rejected} of {calls}."


def tile_note(results):
    rates = {limit["key"]: limit["median_per_second"] / 1e9 for limit in results["limits"]}
    if results["bf16_limit"] != "bf16_amx" or "bf16_amx_flow" not in rates:
        return []
    peak, flow = rates["bf16_amx"], rates["bf16_amx_flow"]
    reached = [
        point["bf16_flops"] / point["ours"]["median_seconds"] / 1e9
        for point in results["points"]
        if point["tokens"] == 256 and point["scenario"] == "non-quant"
    ]
    note = (
        f"The bound of AMX is that of tiles which multiply what they hold: {peak:.0f} Gop/s. With every operand loaded, as "
        f"a product of matrices needs it, four sums for two tiles of rows and two of columns, the same instructions reach "
        f"{rates['bf16_amx_l1']:.0f} from the first-level cache and {rates['bf16_amx_l2']:.0f} from the second-level one. "
        f"A product of 256 tokens also has to bring the weight from memory into the tiles' order and to exchange sums, 8 steps at a "
        f"time: a loop that does all this and nothing else ([tile_flow.cc](../bench/tile_flow.cc)) reaches {flow:.0f}, "
        f"{flow / peak:.2f} of the bound."
    )
    if reached:
        note += f" The operator does {min(reached):.0f} to {max(reached):.0f} with 256 tokens."
    return [note]


def page(results, *further):
    blocks = [introduction(results), result_block(results), target_block(results)]
    blocks += [further_block(more) for more in further]
    blocks += [machine_block(results), notes(results)]
    return "\n\n".join(blocks) + "\n"


if __name__ == "__main__":
    bench_results.convert(page, __doc__, takes_more=True)
