"""Weights: layouts, copies and borrowed arrays, Hugging Face's tensors, lifetimes."""

import gc
import weakref

import numpy as np
import pytest
from plain_layer import BF16, HEADS, HIDDEN, KV_RANK, NOPE, Q_RANK, ROPE, Call, results_of

import mlaprolog

MATRICES = ("weight_dq", "weight_uq_qr", "weight_dkv_kr")


def run(call, weights):
    arguments, keywords = call.arguments()
    return results_of(call, mlaprolog.prolog(weights, *arguments, **keywords))


def in_layout(arrays, layout):
    change = {
        "row_major": lambda matrix: matrix,
        "out_in": lambda matrix: np.ascontiguousarray(matrix.T),
        "nz": mlaprolog.nz_pack,
    }[layout]
    return {name: change(array) if name in MATRICES else array for name, array in arrays.items()}


@pytest.mark.parametrize("kind", ["bf16", "uq_qr_int8", "int8"])
@pytest.mark.parametrize("layout, copy", [("out_in", True), ("nz", True), ("nz", False), ("row_major", False)])
def test_every_layout_gives_the_same_bits(kind, layout, copy):
    expected = run(Call(kind), Call(kind).weights())
    call = Call(kind)
    weights = mlaprolog.Weights(**in_layout(call.weight_arrays(), layout), layout=layout, copy=copy)
    assert run(call, weights) == expected
    assert weights.is_borrowed is not copy and (weights.owned_bytes == 0) is not copy


def test_4d_arrays_are_nz_without_being_told():
    call = Call()
    arrays = call.weight_arrays()
    arrays["weight_dq"] = mlaprolog.nz_pack(arrays["weight_dq"])
    assert run(call, mlaprolog.Weights(**arrays)) == run(Call(), Call().weights())
    mixed = {**call.weight_arrays(), "weight_uq_qr": np.ascontiguousarray(call.weight_arrays()["weight_uq_qr"].T)}
    assert run(Call(), mlaprolog.Weights(**mixed, layout={"weight_uq_qr": "out_in"})) == run(Call(), Call().weights())


def test_facts():
    weights = Call("uq_qr_int8").weights()
    assert weights.dims == mlaprolog.Dims(HIDDEN, Q_RANK, HEADS, NOPE, ROPE, KV_RANK)
    assert weights.weight_quant == "uq_qr_int8"
    assert weights.owned_bytes >= HIDDEN * Q_RANK * 2


def test_a_copy_does_not_need_its_source():
    call = Call()
    arrays = {name: array.copy() for name, array in call.weight_arrays().items()}
    weights = mlaprolog.Weights(**arrays)
    for array in arrays.values():
        array.view(np.uint8).fill(0xFF)  # NaNs
    assert run(call, weights) == run(Call(), Call().weights())


def test_borrowed_arrays_live_as_long_as_the_weights():
    call = Call()
    expected = run(Call(), Call().weights())
    arrays = {name: array.copy() for name, array in call.weight_arrays().items()}
    alive = {name: weakref.ref(array) for name, array in arrays.items()}
    weights = mlaprolog.Weights(**arrays, copy=False)
    arrays.clear()
    gc.collect()
    assert all(reference() is not None for reference in alive.values())
    assert run(call, weights) == expected
    del weights
    gc.collect()
    assert all(reference() is None for reference in alive.values())


def hugging_face_layer(random, value_columns=24):
    def normal(*shape):
        return (random.normal(size=shape) / shape[-1] ** 0.5).astype(BF16)

    return {
        "q_a_proj": normal(Q_RANK, HIDDEN),
        "q_a_layernorm": random.uniform(0.5, 1.5, Q_RANK).astype(BF16),
        "q_b_proj": normal(HEADS * (NOPE + ROPE), Q_RANK),
        "kv_a_proj_with_mqa": normal(KV_RANK + ROPE, HIDDEN),
        "kv_a_layernorm": random.uniform(0.5, 1.5, KV_RANK).astype(BF16),
        "kv_b_proj": normal(HEADS * (NOPE + value_columns), KV_RANK),
    }


def test_from_hugging_face():
    layer = hugging_face_layer(np.random.default_rng(3))
    weights, weight_uv = mlaprolog.Weights.from_hugging_face(**layer, heads=HEADS, nope=NOPE)
    per_head = layer["kv_b_proj"].reshape(HEADS, NOPE + 24, KV_RANK)
    assert weight_uv.tobytes() == np.ascontiguousarray(per_head[:, NOPE:].transpose(0, 2, 1)).tobytes()
    plain = mlaprolog.Weights(
        weight_dq=layer["q_a_proj"].T,
        weight_uq_qr=layer["q_b_proj"].T,
        weight_uk=per_head[:, :NOPE],
        weight_dkv_kr=layer["kv_a_proj_with_mqa"].T,
        rmsnorm_gamma_cq=layer["q_a_layernorm"],
        rmsnorm_gamma_ckv=layer["kv_a_layernorm"],
    )
    assert run(Call(), weights) == run(Call(), plain)


def test_half_style_checkpoints_are_reordered():
    layer = hugging_face_layer(np.random.default_rng(4))
    weights, _ = mlaprolog.Weights.from_hugging_face(**layer, heads=HEADS, nope=NOPE)
    half = dict(layer)
    half["q_b_proj"] = mlaprolog.rope_reorder(
        layer["q_b_proj"], NOPE + ROPE, ROPE, "interleaved_to_half", layout="out_in"
    )
    half["kv_a_proj_with_mqa"] = mlaprolog.rope_reorder(
        layer["kv_a_proj_with_mqa"], KV_RANK + ROPE, ROPE, "interleaved_to_half", layout="out_in"
    )
    reordered, _ = mlaprolog.Weights.from_hugging_face(**half, heads=HEADS, nope=NOPE, rope_order="half")
    assert run(Call(), weights) == run(Call(), reordered)
