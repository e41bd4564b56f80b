#!/usr/bin/env python3
"""Regenerate the golden files in cases/ and the case table of README.md.

  make_golden.py            write everything
  make_golden.py --check    write nothing; exit 1 if a stored file or the README table differs,
                            a hand-computed value is missed, the naive model disagrees, a wrong
                            rounding would go unseen, or the case table no longer covers what it
                            promises
"""
import sys

sys.dont_write_bytecode = True

import argparse                                             # noqa: E402
import collections                                              # noqa: E402
import itertools                                            # noqa: E402
import pathlib                                              # noqa: E402

import numpy as np                                          # noqa: E402

import hand_computed                                        # noqa: E402
import layouts                                              # noqa: E402
import mla_prolog_model as model                            # noqa: E402
import naive_model                                          # noqa: E402
import safetensors_file                                     # noqa: E402
from golden_cases import CASES, make_inputs                 # noqa: E402
from number_formats import E4M3, F32, HIF8, INT8, from_bf16     # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
CASE_DIR = HERE / "cases"
README = HERE / "README.md"
MARKERS = ("<!-- case table: begin -->", "<!-- case table: end -->")
MAX_FILE, MAX_TOTAL = 300_000, 6_700_000


def run(case, inputs, toggled=None):
    """The model's results for a case."""
    return model.mla_prolog(inputs, case.mode, case.dims, toggled)


def encode(case, inputs, results) -> bytes:
    """The golden file of a case."""
    mode = case.mode
    tensors = dict(inputs)
    for name, value in results.items():
        if case.query_norm or name not in ("query_norm", "dequant_scale_q_norm"):
            tensors["expected." + name] = value
    metadata = {"scenario": case.scenario, "cache_mode": case.cache_mode, "soc": case.soc,
                "weight_quant_mode": str(mode.weight_quant),
                "kv_cache_quant_mode": str(mode.kv_quant),
                "query_quant_mode": str(int(mode.kv_quant == 1)),
                "qc_qr_scale": case.factors[0], "kc_scale": case.factors[1],
                "rmsnorm_epsilon_cq": case.eps[0], "rmsnorm_epsilon_ckv": case.eps[1],
                "covers": case.covers}
    metadata.update({name: str(value) for name, value in case.dims._asdict().items()})
    e4m3 = [name for name, value in tensors.items() if mode.format is E4M3
            and value.dtype == np.uint8 and "dequant_scale" not in name]
    return safetensors_file.encode(tensors, metadata, e4m3)


def case_table() -> str:
    """The Markdown table of all cases."""
    lines = ["| file | scenario | soc | smooth | cache mode | token shape | He/Hcq/N/D/Dr/Hckv "
             "| BlockNum x BlockSize | eps cq, ckv | covers |", "|" + "---|" * 10]
    for case in CASES:
        covers = case.covers + (", query_norm" if case.query_norm else "")
        lines.append(
            f"| {case.name} | {case.scenario} | {case.soc[6:]} | {'yes' if case.smooth else 'no'} "
            f"| {case.cache_mode} | {'x'.join(map(str, case.shape))} "
            f"| {'/'.join(map(str, case.dims))} | {case.blocks[0]} x {case.blocks[1]} "
            f"| {case.eps[0]}, {case.eps[1]} | {covers} |")
    return "\n".join(lines)


def readme_with_table(text: str) -> str:
    """README text with the part between the markers replaced by the case table."""
    head, rest = text.split(MARKERS[0])
    _, tail = rest.split(MARKERS[1])
    return f"{head}{MARKERS[0]}\n{case_table()}\n{MARKERS[1]}{tail}"


# ---------------------------------------------------------------- checks

def legal_cache_modes(scenario: str):
    """The cache modes of a scenario: per-group rows have no NZ order and no page lists."""
    if scenario.endswith("per_group"):
        return ("PA_BSND", "BSND", "TND")
    return layouts.CACHE_MODES


def check_coverage():
    """Every scenario in every cache mode, token form, with and without the options it has."""
    for soc in model.SOCS:
        mine = [c for c in CASES if c.soc == soc]
        for scenario, (weight_quant, _) in model.SCENARIOS.items():
            if soc == "ascend910b" and weight_quant > 2:
                continue                                    # not a legal call
            rows = [c for c in mine if c.scenario == scenario]
            new = weight_quant > 2 or soc == "ascend910b"
            modes = {c.cache_mode for c in rows}
            wanted = legal_cache_modes(scenario) if new else ("PA_BSND",)
            assert modes >= set(wanted), f"{soc} {scenario}: {set(wanted) - modes} not covered"
            assert all(c.cache_mode in legal_cache_modes(scenario) for c in rows)
            assert {len(c.shape) for c in rows} == {1, 2}, f"{soc} {scenario}: token forms"
            assert {c.query_norm for c in rows} == {False, True}, f"{soc} {scenario}: query_norm"
            smooth = {False} if weight_quant in (0, model.MX) else {False, True}
            assert {c.smooth for c in rows} == smooth, f"{soc} {scenario}: smooth"
            for mode in {"PA_BLK_BSND", "PA_BLK_NZ"} & set(wanted):
                forms = {len(c.shape) for c in rows if c.cache_mode == mode}
                assert forms == {1, 2}, f"{scenario}: token forms of {mode}"
    tokens = {c.tokens for c in CASES}
    assert {0, 1, 2, 5, 17} <= tokens, "token counts"
    assert len({c.name for c in CASES}) == len({c.seed for c in CASES}) == len(CASES)


def widened(case, tensor) -> np.ndarray:
    """Any result as float64 [tokens, -1]."""
    values = tensor
    if tensor.dtype == np.uint16:
        values = from_bf16(tensor)
    elif tensor.dtype == np.uint8:
        values = case.mode.format.decode(tensor)
    return values.reshape(case.tokens, -1).astype(np.float64)


def check_behaviour(case, inputs, results):
    """Properties that must hold for every case, seen on the expected outputs."""
    if case.tokens:
        check_tokens(case, inputs, results)
    # Exactly the addressed rows lose the sentinel.
    slots = []
    if inputs["kv_cache"].size:
        slots = layouts.token_slots(case.cache_mode, case.shape, inputs.get("cache_index"),
                                    inputs.get("actual_seq_len"), inputs["kv_cache"].shape[1])
    used = len({slot for slot in slots if slot >= 0})
    for name in ("kv_cache", "kr_cache"):
        most = used * inputs[name].shape[-1] if inputs[name].size else 0
        changed = np.count_nonzero(results[name] != inputs[name])
        least = most if inputs[name].dtype == np.uint16 else 0.8 * most
        assert least <= changed <= most, f"{case.name}: {changed} elements of {name} changed"


def check_tokens(case, inputs, results):
    """Only the special tokens are non-finite; a token alone gives the bits it gives in company."""
    names = [name for name in ("query", "query_rope", "c_q", "q_c", "q_r", "c_kv", "k_r",
                               "query_norm", "dequant_scale_q_norm", "dequant_scale_q_nope")
             if name in results]
    watched = [name for name in names if not name.startswith(("dequant", "query_norm"))]
    finite = np.all([np.isfinite(widened(case, results[name])).all(axis=1) for name in watched],
                    axis=0)
    assert np.flatnonzero(~finite).tolist() == sorted(case.nonfinite), f"{case.name}: non-finite"
    blank = {name: np.zeros((1, 16, 1) + inputs[name].shape[3 - (case.cache_mode == "TND"):],
                            dtype=inputs[name].dtype)
             for name in ("kv_cache", "kr_cache") if inputs[name].ndim > 1}
    single_case = case._replace(cache_mode="PA_BSND")
    for t in sorted({0, case.tokens // 2, case.tokens - 1}):
        alone = {**inputs, **blank, "cache_index": np.array([-1])}
        for name in ("token_x", "rope_sin", "rope_cos", "dequant_scale_x"):
            if name in inputs:
                alone[name] = inputs[name].reshape(case.tokens, -1)[t:t + 1]
        single = run(single_case, alone)
        for name in names:
            assert (single[name].tobytes()
                    == results[name].reshape(case.tokens, -1)[t].tobytes()), name


def affected(case, point):
    """The outputs that a wrong rounding at `point` must change."""
    weight_quant, kv_quant = case.mode.weight_quant, case.mode.kv_quant
    return {
        "cq": ("query", "query_rope"),
        # MXFP8 takes c_q through bf16 anyway, bf16 caches take c_kv there.
        "norm_cq": () if weight_quant == model.MX else ("query", "query_rope"),
        "qc": ("query",), "qr": ("query_rope",),
        "qn": ("query", "query_rope") if kv_quant == 1 else (),
        "ckv_kr": ("kv_cache",) if kv_quant == 3 else ("kv_cache", "kr_cache"),
        "norm_ckv": () if kv_quant == 0 else ("kv_cache",),
        "rope": {1: ("query_rope",), 2: ("kr_cache",)}.get(kv_quant, ()),
    }[point]


# What an implementation may differ by: relF of bf16 outputs, share of the values of 8-bit outputs.
# A share of 8-bit floats is not part of the accepted errors; an eighth bit of mantissa moves few.
REL_F = {"query": 2e-3, "query_rope": 2e-3, "kv_cache": 1e-3, "kr_cache": 1e-3}
SHARE = {INT8: 0.005, E4M3: 0.002, HIF8: 0.0005}


def check_roundings(everything):
    """In each scenario one wrong rounding to bf16 exceeds the accepted error."""
    sums = collections.defaultdict(lambda: np.zeros(4))
    for case, inputs, results in everything:
        if (case.special or case.craft or not case.tokens or case.factors != ("1", "1")
                or case.eps not in (("1e-5", "1e-5"), ("1e-6", "1e-5"), ("1e-5", "1e-6"))):
            continue
        for point in model.POINTS:
            names = affected(case, point)
            wrong = run(case, inputs, point) if names else {}
            for name in names:
                right = results[name]
                if right.dtype == np.uint16:
                    touched = right != inputs[name] if name in inputs else ...
                    x, y = (from_bf16(v[touched]).astype(np.float64) for v in (right, wrong[name]))
                    more = (np.square(x - y).sum(), np.square(x).sum(), 0, 0)
                else:
                    count = (right != inputs[name]).sum() if name in inputs else right.size
                    more = (0, 0, (right != wrong[name]).sum(), count)
                sums[case.soc, case.scenario, case.mode.format, point, name] += more
    assert len(sums) > 150, f"{len(sums)} wrong roundings"
    for (soc, scenario, fmt, point, name), (error, norm, flips, count) in sums.items():
        what = f"{soc} {scenario}: {name} with a wrong rounding at {point}"
        if count:
            assert flips > SHARE[fmt] * count, f"{what}: {flips} of {count} values differ"
        if norm:
            assert error > REL_F[name] ** 2 * norm, f"{what}: relF {np.sqrt(error / norm):.1e}"


def check_crafted(everything):
    """The crafted cases tell apart the two families' rules and the directions of ties."""
    crafted = [(c, inputs, results) for c, inputs, results in everything if c.craft]
    for case, inputs, results in crafted:
        other = case._replace(soc="ascend910b" if case.mode.is_950 else "ascend950")
        wrong = run(other, inputs)
        if case.craft == "scale_order":
            assert np.isfinite(widened(case, results["query"])).all(), case.name
            assert not np.isfinite(widened(case, wrong["query"])).any(), case.name
            continue
        fmt, norm = case.mode.format, results["query_norm"]
        if case.mode.weight_quant == model.MX:
            # 273/256 in bf16 with ties away is 1.0703125, times 2^8 is nearer to 288 than to 256.
            assert np.isin(norm, (0x79, 0xF9)).all() and (
                results["dequant_scale_q_norm"] == 119).all(), case.name
        elif fmt is not HIF8:                               # 1/2^15 and its quotients are exact
            assert (norm != wrong["query_norm"]).mean() > 0.3, f"{case.name}: quotients"
        c_kv, slots = results["c_kv"].astype(np.float64), inputs["cache_index"]
        cached = results["kv_cache"].reshape(-1, case.dims.kv_rank)[slots]
        if fmt is HIF8:
            assert (np.abs(fmt.decode(cached)) > np.abs(c_kv)).all(), f"{case.name}: ties"
        else:
            assert (cached % 2 == 0).all(), f"{case.name}: ties"
            assert (fmt.decode(cached) != c_kv).all(), f"{case.name}: ties"


def check_formats():
    """All codes of the 8-bit floats, and casts of many values, in both models."""
    rng = np.random.RandomState(1)
    spread = rng.standard_normal(4000) * 2.0 ** rng.randint(-26, 18, 4000)
    for fmt, values, cast in ((E4M3, naive_model.E4M3_VALUES, naive_model.e4m3),
                              (HIF8, naive_model.HIF8_VALUES, naive_model.hif8)):
        decoded = fmt.decode(np.arange(256))
        assert np.array_equal(decoded, np.array(values, dtype=F32), equal_nan=True), fmt.name
        finite = np.unique(decoded[np.isfinite(decoded)])
        middles = (finite[:-1].astype(np.float64) + finite[1:]) / 2
        tried = np.concatenate([finite, middles, spread, [np.nan, np.inf, -np.inf, -0.0]])
        tried = tried.astype(F32)
        with np.errstate(over="ignore"):
            tried = np.concatenate([np.nextafter(tried, F32(-np.inf)), tried,
                                    np.nextafter(tried, F32(np.inf))])
        assert fmt.encode(tried).tolist() == [cast(float(v)) for v in tried], fmt.name


def check_discrimination(everything):
    """The goldens must tell apart casts that are easily confused."""
    flips = saturated = ties = 0
    for case, inputs, results in everything:
        if case.scenario == "partial_kv_per_channel":
            saturated += np.isin(results["kv_cache"], (-128, 127)).sum()
        if case.name == "partial_pc_kr_ties":
            key = [inputs[name].astype(np.float64) if name == "quant_scale_ckr"
                   else from_bf16(inputs[name]) for name in
                   ("rope_cos", "rope_sin", "quant_scale_ckr")]
            scaled = model.round_bf16(model.rope(results["k_r"], *key[:2])) * key[2]
            ties = np.count_nonzero(np.abs(scaled - np.trunc(scaled)) == 0.5)
        if case.scenario != "full_int8_kv_per_tensor" or case.soc != "ascend910b":
            continue
        q_c = from_bf16(results["q_c"])
        for head in range(case.dims.heads):
            query = model.round_bf16(model.matmul(q_c[:, head],
                                                  from_bf16(inputs["weight_uk"][head])))
            with np.errstate(all="ignore"):
                even, _ = model.dynamic_quant(query)
            stored = results["query"].reshape((-1,) + results["query"].shape[-2:])[:, head]
            assert np.abs(even.astype(int) - stored).max(initial=0) <= 1
            flips += np.count_nonzero(even != stored)
    assert flips > 10, f"only {flips} query values tell the two query casts apart"
    assert saturated > 10 and ties > 10, f"{saturated} saturated int8 values, {ties} ties"


def check_stored(name: str, data: bytes) -> list:
    """Compare a golden file with its stored copy; a list of complaints."""
    path = CASE_DIR / name
    if not path.is_file():
        return [f"{name}: missing"]
    stored = path.read_bytes()
    if stored == data:
        return []
    try:
        old, old_meta = safetensors_file.decode(stored)
    except (ValueError, KeyError, TypeError) as error:
        return [f"{name}: unreadable ({error})"]
    new, new_meta = safetensors_file.decode(data)
    bad = [key for key in sorted(set(old) | set(new))
           if key not in old or key not in new or old[key].dtype != new[key].dtype
           or old[key].shape != new[key].shape or old[key].tobytes() != new[key].tobytes()]
    if old_meta != new_meta:
        bad.append("__metadata__")
    return [f"{name}: differs in {', '.join(bad) or 'header layout'}"]


def main() -> int:
    """Command line entry."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    everything, files, complaints = [], {}, []
    for case in CASES:
        inputs = make_inputs(case)
        results = run(case, inputs)
        everything.append((case, inputs, results))
        files[case.name + ".safetensors"] = encode(case, inputs, results)
    largest, total = max(map(len, files.values())), sum(map(len, files.values()))
    assert largest < MAX_FILE and total < MAX_TOTAL, f"files too large: {largest}, {total}"
    readme = README.read_text(encoding="utf-8")
    stale = sorted(p.name for p in CASE_DIR.glob("*") if p.name not in files)

    if not check:
        CASE_DIR.mkdir(exist_ok=True)
        for name, data in files.items():
            (CASE_DIR / name).write_bytes(data)
        for name in stale:
            print(f"note: {name} is no longer a case", file=sys.stderr)
        README.write_text(readme_with_table(readme), encoding="utf-8")
        print(f"wrote {len(files)} files, {total} bytes, largest {largest}")
        return 0

    check_coverage()
    hand_computed.check_all()
    check_formats()
    check_discrimination(everything)
    check_crafted(everything)
    check_roundings(everything)
    for case, inputs, results in everything:
        check_behaviour(case, inputs, results)
        bad = naive_model.differences(inputs, case.mode, case.dims, results)
        if bad:
            complaints.append(f"{case.name}: naive model differs in {', '.join(bad)}")
        name = case.name + ".safetensors"
        complaints += check_stored(name, files[name])
    complaints += [f"{name}: not a case" for name in stale]
    if readme_with_table(readme) != readme:
        complaints.append("README.md: case table is out of date")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{len(files)} cases, {total} bytes: {'FAILED' if complaints else 'ok'}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
