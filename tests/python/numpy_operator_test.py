"""The operator on NumPy arrays: every scenario and cache mode against the definition and the plain formula."""

import numpy as np
import pytest
from plain_layer import (
    CASES, HEADS, KV_RANK, Q_RANK, ROPE, SCENARIOS, Call, case_name, results_of, values_of,
)  # fmt: skip

import mlaprolog


def run(call, function=mlaprolog.prolog, **options):
    arguments, keywords = call.arguments()
    return function(call.weights(), *arguments, **keywords, **options)


def relative_norm(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_is_what_the_definition_says(case):
    fast, defined = Call(*case), Call(*case)
    result = run(fast, query_norm=True)
    expected, _ = run(defined, mlaprolog.reference, query_norm=True)
    for name, value in expected._asdict().items():
        actual = getattr(result, name)
        if value is None:
            assert actual is None
        elif value.dtype.itemsize == 1:
            # An 8-bit code is the neighbour at most, and seldom that.
            steps = np.abs(actual.view(np.uint8).astype(int) - value.view(np.uint8).astype(int))
            assert (np.minimum(steps, 256 - steps) > 1).mean() <= 0.001 and (steps != 0).mean() <= 0.02, name
        else:
            standard = "scales" if value.dtype == np.float32 else "staged"
            verdict = mlaprolog.compare(actual, value, standard=standard)
            assert verdict, f"{name}: {verdict}"
    for actual, value in zip(fast.stored_key(), defined.stored_key()):
        assert relative_norm(actual, value) <= 1e-3


# What one quantisation costs, as a share of the values' norm: half of a step's width over sqrt(3). int8: steps of 1/127 of
# a row's largest, some three times its RMS. E4M3: three bits of mantissa. HiFloat8: one bit where a row's largest is.
QUANTISATION = {"int8": 0.011, "uq_qr_int8": 0.011, "fp8": 0.03, "mxfp8": 0.03, "hifloat8": 0.115, "bf16": 0.0}
ROUNDINGS = 0.006  # to bf16, all together


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_is_what_the_plain_formula_says(case):
    """Within what the scenario's roundings and quantisations cost."""
    call = Call(*case)
    before = [None if rows is None else rows.copy() for rows in call.rows()]
    result = run(call)
    query, query_rope, c_kv, k_r = call.plain_formula()
    weights, key = case[:2]
    if key == "per_tensor":
        scale = result.dequant_scale_q_nope.reshape(-1, HEADS, 1).astype(np.float64)
        codes = result.query if weights != "hifloat8" else mlaprolog.typed(result.query, "hifloat8")
        actual_query = values_of(codes).reshape(query.shape) * scale
        # query_rope comes with the factor that lets attention use one scale for both.
        actual_rope = result.query_rope.astype(np.float64).reshape(query_rope.shape) * scale / call.quant_scale_ckv
    else:
        actual_query = result.query.astype(np.float64).reshape(query.shape)
        actual_rope = result.query_rope.astype(np.float64).reshape(query_rope.shape)
    cost = QUANTISATION[weights]  # of cQ
    assert relative_norm(actual_rope, query_rope) <= ROUNDINGS + cost
    assert relative_norm(actual_query, query) <= ROUNDINGS + cost * (2**0.5 if key == "per_tensor" else 1)
    stored_c_kv, stored_k_r = call.stored_key()
    if call.alpha is not None:
        cost = 0.05  # the clip of k_nope_clip_alpha cuts the largest values of a group
    elif call.quant_scale_ckv is not None and call.kv_cache.dtype == np.int8:
        cost = 1.1 / call.quant_scale_ckv.min() / 12**0.5 / np.sqrt((c_kv**2).mean())
    assert relative_norm(stored_c_kv, c_kv) <= ROUNDINGS + (0 if key == "bf16" else cost)
    assert relative_norm(stored_k_r, k_r) <= ROUNDINGS + (cost if key == "per_channel" else 0)

    others = np.setdiff1d(np.arange(len(before[0])), call.slots)
    for rows, old in zip(call.rows(), before):
        if rows is not None:
            assert rows[others].tobytes() == old[others].tobytes()


@pytest.mark.parametrize("weights, key", SCENARIOS)
def test_exact_is_the_plain_formula(weights, key):
    call = Call(weights, key)
    arguments, keywords = call.arguments()
    keywords = {name: value for name, value in keywords.items() if name != "cache_mode"}
    exact = mlaprolog.exact(call.weights(), *arguments[:3], **keywords)
    for actual, expected in zip(exact, call.plain_formula()):
        assert relative_norm(actual, expected) <= 1e-6


def test_raw_bits_give_the_same_bits():
    typed, raw = Call(), Call()
    result = run(typed)
    raw.token_x, raw.sin, raw.cos, raw.kv_cache, raw.kr_cache = (
        array.view(np.uint16) for array in (raw.token_x, raw.sin, raw.cos, raw.kv_cache, raw.kr_cache)
    )
    raw_weights = {name: array.view(np.uint16) for name, array in raw.weight_arrays().items()}
    arguments, keywords = raw.arguments()
    raw_result = mlaprolog.prolog(mlaprolog.Weights(**raw_weights), *arguments, **keywords)
    assert raw_result.query.dtype == np.uint16 and raw_result.query_rope.dtype == np.uint16
    assert results_of(typed, result) == results_of(raw, raw_result)


@pytest.mark.parametrize("weights", ["fp8", "mxfp8"])
def test_raw_float8_give_the_same_bits(weights):
    typed, raw = Call(weights, "per_tensor"), Call(weights, "per_tensor")
    result = run(typed, query_norm=True)

    def declared(array):
        names = {"float8_e4m3fn": np.uint8, "float8_e8m0fnu": np.uint8}
        if array is None or array.dtype.name not in names:
            return array
        return mlaprolog.typed(array.view(np.uint8), array.dtype.name)

    layer = mlaprolog.Weights(**{name: declared(array) for name, array in raw.weight_arrays().items()})
    arguments, keywords = raw.arguments()
    keywords = {name: declared(value) if isinstance(value, np.ndarray) else value for name, value in keywords.items()}
    raw_result = mlaprolog.prolog(layer, *map(declared, arguments), **keywords, query_norm=True)
    assert results_of(typed, result) == results_of(raw, raw_result)


def test_a_token_does_not_see_its_batch():
    batch = Call(tokens=6)
    result = run(batch)
    for token in range(6):
        alone = Call(tokens=6)
        alone.token_x, alone.sin, alone.cos = (a[token : token + 1] for a in (alone.token_x, alone.sin, alone.cos))
        alone.cache_index = alone.cache_index[token : token + 1]
        one = run(alone)
        assert one.query.tobytes() == result.query[token].tobytes()
        assert one.query_rope.tobytes() == result.query_rope[token].tobytes()


def test_negative_and_equal_slots():
    call = Call(tokens=6)
    call.cache_index = np.int64([-1, 7, 7, -5, 9, 7])
    before = call.rows()[0].copy()
    run(call)
    last = Call(tokens=6)
    last.cache_index = np.int64([-1, -1, -1, -1, 9, 7])
    run(last)
    assert call.kv_cache.tobytes() == last.kv_cache.tobytes() and call.kr_cache.tobytes() == last.kr_cache.tobytes()
    changed = np.flatnonzero((call.rows()[0].view(np.uint16) != before.view(np.uint16)).any(1))
    assert changed.tolist() == [7, 9]


def test_strided_arrays_are_read_through_their_strides():
    plain, strided = Call(), Call()
    result = run(plain)
    strided.token_x = np.repeat(strided.token_x, 2, axis=0)[::2]
    strided.sin, strided.cos = np.asfortranarray(strided.sin), np.asfortranarray(strided.cos)
    holes = np.full((4, 16, 3, KV_RANK), 9, strided.kv_cache.dtype)
    holes[:, :, :1] = strided.kv_cache
    strided.kv_cache = holes[:, :, :1]
    out = mlaprolog.PrologResult(
        np.empty((6, KV_RANK, HEADS), result.query.dtype).transpose(0, 2, 1), np.empty((6, HEADS, ROPE), result.query.dtype)
    )
    arguments, keywords = strided.arguments()
    arrays = strided.weight_arrays()
    arrays["weight_dq"] = np.asfortranarray(arrays["weight_dq"])
    assert mlaprolog.prolog(mlaprolog.Weights(**arrays), *arguments, **keywords, out=out) is out
    assert results_of(plain, result) == results_of(strided, out)
    assert (holes[:, :, 1:].astype(np.float32) == 9).all()


@pytest.mark.parametrize("style", ["half", "interleaved", "none"])
def test_rope_styles(style):
    """A style is the operator's own with its columns in another order; "none" leaves the columns alone."""
    call, own = Call(), Call()
    arguments, keywords = call.arguments()
    arrays = call.weight_arrays()
    if style == "half":
        reorder = lambda a, group: mlaprolog.rope_reorder(a, group, ROPE, "interleaved_to_half")  # noqa: E731
        arrays["weight_uq_qr"] = reorder(arrays["weight_uq_qr"], 32 + ROPE)
        arrays["weight_dkv_kr"] = reorder(arrays["weight_dkv_kr"], KV_RANK + ROPE)
    elif style == "interleaved":
        call.sin, call.cos = mlaprolog.rope_table(np.arange(6) * 7, ROPE, rope_style="interleaved")
        arguments, keywords = call.arguments()
    else:
        arguments = (arguments[0], None, None, *arguments[3:])
        ones, zeros = np.ones_like(own.cos), np.zeros_like(own.sin)
        own.sin, own.cos = zeros, ones
    result = mlaprolog.prolog(mlaprolog.Weights(**arrays), *arguments, **keywords, rope_style=style)
    expected = run(own)
    order = np.arange(ROPE) if style == "half" else np.r_[0:ROPE:2, 1:ROPE:2]
    assert result.query_rope[..., order].tobytes() == expected.query_rope.tobytes()
    assert call.kr_cache.reshape(-1, ROPE)[call.slots][:, order].tobytes() == own.rows()[1][own.slots].tobytes()
    assert result.query.tobytes() == expected.query.tobytes()


def test_a_query_without_low_rank():
    call = Call()
    arrays = call.weight_arrays()
    combined = (values_of(arrays.pop("weight_dq")) @ values_of(arrays["weight_uq_qr"])).astype(arrays["weight_uk"].dtype)
    del arrays["rmsnorm_gamma_cq"]
    arrays["weight_uq_qr"] = combined
    weights = mlaprolog.Weights(**arrays)
    assert weights.dims.q_rank == 0
    arguments, keywords = call.arguments()
    keywords["qc_qr_scale"] = 1.0
    result = mlaprolog.prolog(weights, *arguments, **keywords)
    q = (call.x_values @ values_of(combined)).reshape(6, HEADS, -1)
    query = np.einsum("tnd,ndk->tnk", q[..., :32], values_of(call.weight_uk))
    assert relative_norm(result.query.astype(np.float64), query) <= 0.01


def test_intermediates_of_the_reference():
    call = Call("uq_qr_int8")
    _, steps = run(call, mlaprolog.reference)
    assert set(steps) == {"c_q", "c_q_quantized", "c_q_scale", "q_c", "q_r", "c_kv", "k_r"}
    assert steps["c_q"].shape == (6, Q_RANK)
    restored = steps["c_q_quantized"] * steps["c_q_scale"][:, None]
    assert relative_norm(restored, steps["c_q"].astype(np.float64)) <= 0.01
    assert relative_norm(steps["c_kv"].astype(np.float64), call.plain_formula()[2]) <= 0.01


def test_no_tokens():
    call = Call()
    call.token_x, call.sin, call.cos, call.cache_index = (
        array[:0] for array in (call.token_x, call.sin, call.cos, call.cache_index)
    )
    before = call.kv_cache.tobytes()
    assert run(call).query.shape == (0, HEADS, KV_RANK)
    assert call.kv_cache.tobytes() == before
