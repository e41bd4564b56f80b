"""Weights given anew with every call: packed once, dropped with their storage, and never stale."""

import gc

import pytest

torch = pytest.importorskip("torch")

from plain_layer import KV_RANK, Call  # noqa: E402
from torch_calls import TorchCall, bytes_of, to_torch  # noqa: E402

import mlaprolog  # noqa: E402
import mlaprolog.torch as operators  # noqa: E402
from mlaprolog.torch import _weights_cache  # noqa: E402


@pytest.fixture(autouse=True)
def empty_cache():
    gc.collect()
    operators.clear_weights_cache()
    yield
    operators.clear_weights_cache()


@pytest.fixture
def packings(monkeypatch):
    """The handles that were made."""
    made = []
    make = _weights_cache._make
    monkeypatch.setattr(_weights_cache, "_make", lambda *arguments: made.append(make(*arguments)) or made[-1])
    return made


def results(call):
    return [bytes_of(result) for result in call.v3()]


def fresh_results(call):
    """Those of the same tensors with nothing remembered."""
    operators.clear_weights_cache()
    return results(call)


def test_weights_are_packed_once(packings):
    call = TorchCall()
    first = results(call)
    for _ in range(5):
        assert results(call) == first
    # Other objects for the same memory, as module.weight.T is with every call.
    views = TorchCall()
    views.arguments = call.arguments
    view = call.arguments[1].t()
    call.arguments = (call.arguments[0], view.t(), *call.arguments[2:])
    assert results(call) == first
    assert len(packings) == 1 and operators.num_cached_weights() == 1
    assert operators.cached_weights_bytes() > 0


@pytest.mark.parametrize("place", range(1, 7), ids=["dq", "uq_qr", "uk", "dkv_kr", "gamma_cq", "gamma_ckv"])
def test_weights_are_dropped_with_any_of_their_tensors(place):
    call = TorchCall()
    results(call)
    assert operators.num_cached_weights() == 1
    arguments = list(call.arguments)
    call.arguments = None
    view = arguments[place][:1]
    arguments[place] = None
    assert operators.num_cached_weights() == 1  # the view keeps the storage
    del view
    gc.collect()
    assert operators.num_cached_weights() == 0


def test_a_layer_can_be_replaced_many_times():
    for seed in range(20):
        call = TorchCall(seed=seed)
        results(call)
        del call
    gc.collect()
    assert operators.num_cached_weights() == 0


@pytest.mark.parametrize("place", range(1, 7), ids=["dq", "uq_qr", "uk", "dkv_kr", "gamma_cq", "gamma_ckv"])
@pytest.mark.parametrize("is_nz", [False, True])
def test_changes_in_place_are_noticed(place, is_nz):
    call = TorchCall()
    if is_nz:
        call.arguments = nz_arguments(call)
    before = results(call)
    call.arguments[place].mul_(-3)
    after = results(call)
    assert after == fresh_results(call)
    changed = bytes_of(call.kv_cache), *after
    call.arguments[place][0].copy_(call.arguments[place][0] * 2)  # through a view
    assert results(call) == fresh_results(call)
    assert after != before or place in (4, 6)  # those that only the key sees
    assert len(changed) == 6 and operators.num_cached_weights() == 1


def test_other_storage_under_the_same_tensor_is_noticed():
    call, other = TorchCall(), TorchCall(seed=9)
    results(call)
    weight = call.arguments[1]
    weight.data = other.arguments[1].clone()
    assert results(call) == fresh_results(call)
    # Freed and, as likely as not, made again at the same address.
    for seed in range(20):
        weight.data = torch.empty(0, dtype=torch.bfloat16)
        weight.data = to_torch(Call(seed=seed).layer["weight_dq"].array)
        assert results(call) == fresh_results(call)


def test_the_same_memory_in_another_shape_is_noticed():
    """Same address, same version, other strides."""
    call = TorchCall()
    square = torch.randn(64, 64).to(torch.bfloat16)
    x, _, uq_qr, uk, _, gamma_cq, gamma_ckv, sin, cos = call.arguments
    dkv_kr = torch.randn(64, KV_RANK + sin.shape[-1]).to(torch.bfloat16)
    call.arguments = (x[:, :64].contiguous(), square, uq_qr, uk, dkv_kr, gamma_cq, gamma_ckv, sin, cos)
    straight = results(call)
    call.arguments = (call.arguments[0], square.t(), *call.arguments[2:])
    assert results(call) != straight and results(call) == fresh_results(call)


def test_what_torch_does_not_count_is_forgotten_on_request():
    call = TorchCall()
    results(call)
    call.arguments[1].data.mul_(-2)
    operators.clear_weights_cache()
    assert results(call) == fresh_results(call)


def nz_arguments(call):
    matrices = {1: "weight_dq", 2: "weight_uq_qr", 4: "weight_dkv_kr"}
    return tuple(
        to_torch(mlaprolog.nz_pack(call.call.layer[matrices[place]].array)) if place in matrices else tensor
        for place, tensor in enumerate(call.arguments)
    )


@pytest.mark.parametrize("kind", ["bf16", "uq_qr_int8", "int8"])
def test_4d_weights_are_read_in_place(kind, packings):
    call, packed = TorchCall(kind), TorchCall(kind)
    packed.arguments = nz_arguments(packed)
    assert results(packed) == results(call)
    operators.clear_weights_cache()
    results(packed)
    assert operators.num_cached_weights() == 1 and operators.cached_weights_bytes() == 0
    # Written through NumPy, which nobody counts: what is read in place is up to date all the same.
    packed.arguments[1].view(torch.int8).numpy()[...] = 0
    assert results(packed) == fresh_results(packed)


def test_2d_and_4d_weights_together():
    call, mixed = TorchCall(), TorchCall()
    mixed.arguments = (*mixed.arguments[:2], nz_arguments(mixed)[2], *mixed.arguments[3:])
    assert results(mixed) == results(call)


def test_transposed_linear_weights():
    """module.weight.T, the commonest of all, is not read as if it were contiguous."""
    call, transposed = TorchCall(), TorchCall()
    linear = torch.nn.Parameter(call.arguments[1].t().contiguous())
    transposed.arguments = (transposed.arguments[0], linear.T, *transposed.arguments[2:])
    expected = results(call)
    for _ in range(3):
        transposed.arguments = (transposed.arguments[0], linear.T, *transposed.arguments[2:])
        assert results(transposed) == expected
    assert operators.num_cached_weights() == 2


def test_inference_mode(packings):
    with torch.inference_mode():
        call = TorchCall()
        first = results(call)
        assert results(call) == first
    assert len(packings) == 1
    assert first == results(TorchCall())
