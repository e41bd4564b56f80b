"""torch_npu's operators on CPU tensors: schemas, results in every scenario and cache mode, what comes back, refusals."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from plain_layer import CASES, HEADS, KV_RANK, NOPE, Q_RANK, ROPE, Call, case_name  # noqa: E402
from torch_calls import HAS_E8M0, TorchCall, bytes_of, is_known, numpy_results, to_torch  # noqa: E402

import mlaprolog  # noqa: E402
import mlaprolog.torch  # noqa: E402

KNOWN_CASES = [case for case in CASES if is_known(case[0])]
SHAPES = [case for case in KNOWN_CASES if case[2] == "PA_BSND"]

HEAD = (
    "(Tensor token_x, Tensor weight_dq, Tensor weight_uq_qr, Tensor weight_uk, Tensor weight_dkv_kr, "
    "Tensor rmsnorm_gamma_cq, Tensor rmsnorm_gamma_ckv, Tensor rope_sin, Tensor rope_cos, "
)
V2_TAIL = (
    "Tensor cache_index, Tensor kv_cache, Tensor kr_cache, *, Tensor? dequant_scale_x=None, "
    "Tensor? dequant_scale_w_dq=None, Tensor? dequant_scale_w_uq_qr=None, Tensor? dequant_scale_w_dkv_kr=None, "
    "Tensor? quant_scale_ckv=None, Tensor? quant_scale_ckr=None, Tensor? smooth_scales_cq=None, "
    'float rmsnorm_epsilon_cq=1e-05, float rmsnorm_epsilon_ckv=1e-05, str cache_mode="PA_BSND") -> '
)
V3_TAIL = (
    "*, Tensor? cache_index=None, Tensor? dequant_scale_x=None, Tensor? dequant_scale_w_dq=None, "
    "Tensor? dequant_scale_w_uq_qr=None, Tensor? dequant_scale_w_dkv_kr=None, Tensor? quant_scale_ckv=None, "
    "Tensor? quant_scale_ckr=None, Tensor? smooth_scales_cq=None, Tensor? actual_seq_len=None, "
    "Tensor? k_nope_clip_alpha=None, float rmsnorm_epsilon_cq=1e-05, float rmsnorm_epsilon_ckv=1e-05, "
    'str cache_mode="PA_BSND", bool query_norm_flag=False, int weight_quant_mode=0, int kv_cache_quant_mode=0, '
    "int query_quant_mode=0, int ckvkr_repo_mode=0, int quant_scale_repo_mode=0, int tile_size=128, "
    "float qc_qr_scale=1.0, float kc_scale=1.0, int? token_x_dtype=None, int? weight_dq_dtype=None, "
    "int? weight_uq_qr_dtype=None, int? weight_dkv_kr_dtype=None, int? kv_cache_dtype=None) -> "
)
SCHEMAS = {
    "npu_mla_prolog": HEAD + V2_TAIL + "(Tensor, Tensor, Tensor, Tensor)",
    "npu_mla_prolog_v2": HEAD + V2_TAIL + "(Tensor, Tensor, Tensor, Tensor, Tensor)",
    "npu_mla_prolog_v3": HEAD + "Tensor(a!) kv_cache, Tensor(b!) kr_cache, " + V3_TAIL
    + "(Tensor, Tensor, Tensor, Tensor, Tensor)",
    "npu_mla_prolog_v3_functional": HEAD + "Tensor kv_cache, Tensor kr_cache, " + V3_TAIL
    + "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_those_of_torch_npu(name):
    schema = getattr(torch.ops.npu, name).default._schema
    assert str(schema) == str(torch._C.parse_schema(f"npu::{name}{SCHEMAS[name]}"))


@pytest.mark.parametrize("case", KNOWN_CASES, ids=case_name)
def test_v3_is_what_numpy_gives(case):
    call = TorchCall(*case)
    results = call.v3(query_norm_flag=True)
    expected, kv_cache, kr_cache = numpy_results(case, query_norm=True)
    for result, value in zip(results, expected):
        if value is None:
            assert result.dtype == torch.float32 and list(result.shape) == [0]
        else:
            assert list(result.shape) == list(value.shape) and bytes_of(result) == value.tobytes()
    assert bytes_of(call.kv_cache) == kv_cache.tobytes()
    assert kr_cache is None or bytes_of(call.kr_cache) == kr_cache.tobytes()


@pytest.mark.parametrize("case", SHAPES, ids=case_name)
@pytest.mark.parametrize("with_norm", [False, True])
def test_meta_tensors_have_the_same_shapes_and_types(case, with_norm):
    call = TorchCall(*case)
    real = call.v3_functional(query_norm_flag=with_norm)

    def to_meta(value):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta") if (
            isinstance(value, torch.Tensor)) else value  # fmt: skip

    arguments = [to_meta(argument) for argument in (*call.arguments, *call.caches())]
    keywords = {name: to_meta(value) for name, value in call.keywords.items()}
    for function in (torch.ops.npu.npu_mla_prolog_v3_functional, torch.ops.npu.npu_mla_prolog_v3):
        metas = function(*arguments, **{**keywords, "query_norm_flag": with_norm})
        assert len(metas) == (7 if "functional" in str(function) else 5)
        for meta, tensor in zip(metas, real):
            assert meta.device.type == "meta"
            assert (meta.shape, meta.dtype, meta.stride()) == (tensor.shape, tensor.dtype, tensor.stride())


def plain_torch(call):
    """The formula in plain torch operations, in binary64."""
    x, dq, uq_qr, uk, dkv_kr, gamma_cq, gamma_ckv, sin, cos = (tensor.double() for tensor in call.arguments)

    def norm(values, gamma, epsilon):
        return values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + epsilon) * gamma

    def rope(values, sine, cosine):
        values = torch.cat([values[..., 0::2], values[..., 1::2]], -1)
        first, second = values.chunk(2, -1)
        return values * cosine + torch.cat([-second, first], -1) * sine

    q = (norm(x @ dq, gamma_cq, 1e-6) * 1.5 @ uq_qr).view(*x.shape[:-1], HEADS, NOPE + ROPE)
    key = x @ dkv_kr
    query = torch.einsum("...nd,ndk->...nk", q[..., :NOPE], uk)
    query_rope = rope(q[..., NOPE:], sin.unsqueeze(-2), cos.unsqueeze(-2))
    return query, query_rope, norm(key[..., :KV_RANK], gamma_ckv, 1e-5) * 0.75, rope(key[..., KV_RANK:], sin, cos)


@pytest.mark.parametrize("has_sequences", [False, True])
def test_v3_is_what_plain_torch_gives(has_sequences):
    call = TorchCall("bf16", "bf16", "PA_BSND", has_sequences)
    query, query_rope, _, _, _ = call.v3()
    slots = call.keywords["cache_index"].reshape(-1)
    rows = (cache.reshape(-1, cache.shape[-1])[slots] for cache in call.caches())
    for actual, expected in zip((query, query_rope, *rows), plain_torch(call)):
        expected = expected.reshape(actual.shape)
        assert (actual.double() - expected).norm() <= 0.01 * expected.norm()


def test_v3_returns_and_mutates():
    call = TorchCall()
    kv_cache, kr_cache = (cache.clone() for cache in call.caches())
    results = call.v3()
    assert [list(result.shape) for result in results] == [[6, HEADS, KV_RANK], [6, HEADS, ROPE], [0], [0], [0]]
    assert [result.dtype for result in results[2:]] == [torch.float32, torch.bfloat16, torch.float32]
    assert not torch.equal(kv_cache.float(), call.kv_cache.float())
    assert not torch.equal(kr_cache.float(), call.kr_cache.float())


@pytest.mark.skipif(not hasattr(torch.autograd.graph, "increment_version"), reason="torch 1 has no function to tell it")
def test_torch_knows_that_the_caches_were_written():
    call = TorchCall()
    versions = [cache._version for cache in call.caches()]
    call.v3_functional()
    assert [cache._version for cache in call.caches()] == versions
    call.v3()
    assert all(cache._version > version for cache, version in zip(call.caches(), versions))
    with torch.inference_mode():
        TorchCall().v3()


def test_v3_functional_leaves_its_caches_alone():
    call, mutated = TorchCall(), TorchCall()
    before = [bytes_of(cache) for cache in call.caches()]
    results = call.v3_functional()
    assert [bytes_of(cache) for cache in call.caches()] == before
    expected = (*mutated.v3(), *mutated.caches())
    assert [bytes_of(result) for result in results] == [bytes_of(result) for result in expected]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("mode", ["PA_BSND", "PA_NZ"])
@pytest.mark.parametrize("has_sequences", [False, True])
@pytest.mark.parametrize(
    "weights, key",
    [("bf16", "bf16"), ("uq_qr_int8", "bf16"), ("uq_qr_int8", "per_channel"), ("int8", "bf16"), ("int8", "per_tensor")],
)
def test_v1_and_v2(version, mode, has_sequences, weights, key):
    call, expected = TorchCall(weights, key, mode, has_sequences), TorchCall(weights, key, mode, has_sequences)
    function = torch.ops.npu.npu_mla_prolog if version == 1 else torch.ops.npu.npu_mla_prolog_v2
    changes = {}
    if key == "per_tensor":  # [1, Hckv], of which the first counts
        scale = torch.full((1, KV_RANK), 7.0)
        scale[0, 0] = call.keywords["quant_scale_ckv"][0]
        changes["quant_scale_ckv"] = scale
    if version == 1 and weights == "int8":
        with pytest.raises(ValueError, match="token_x: expected bfloat16 in npu_mla_prolog, found int8"):
            call.v2(function, **changes)
        return
    results = call.v2(function, **changes)
    query, query_rope, scale, _, _ = expected.v3(qc_qr_scale=1.0, kc_scale=1.0)
    assert results[2] is call.kv_cache and results[3] is call.kr_cache
    values = [query, query_rope, *expected.caches()]
    assert [bytes_of(result) for result in results[:4]] == [bytes_of(value) for value in values]
    if version == 2:
        absent = torch.zeros(1)
        assert torch.equal(results[4], scale if key == "per_tensor" else absent) and results[4].dtype == torch.float32
    assert len(results) == 3 + version


def test_v2_meta():
    call = TorchCall()
    arguments = [tensor.to("meta") for tensor in (*call.arguments, call.keywords["cache_index"], *call.caches())]
    for name, count in (("npu_mla_prolog", 4), ("npu_mla_prolog_v2", 5)):
        metas = getattr(torch.ops.npu, name)(*arguments)
        real = call.v2(getattr(torch.ops.npu, name))
        assert len(metas) == count
        assert [(meta.shape, meta.dtype) for meta in metas] == [(tensor.shape, tensor.dtype) for tensor in real]


def test_strided_caches_and_inputs():
    plain, strided = TorchCall(), TorchCall()
    results = plain.v3()
    holes = torch.full((4, 16, 2, KV_RANK), 3.0, dtype=torch.bfloat16)
    holes[:, :, :1] = strided.kv_cache
    strided.kv_cache = holes[:, :, :1]
    x, *rest, sin, cos = strided.arguments
    strided.arguments = (x.t().contiguous().t(), *rest, torch.stack([sin, sin], 1)[:, 1], cos)
    assert [bytes_of(result) for result in strided.v3()] == [bytes_of(result) for result in results]
    assert bytes_of(strided.kv_cache) == bytes_of(plain.kv_cache) and bool((holes[:, :, 1:] == 3).all())
    functional = TorchCall()
    functional.kv_cache = holes[:, :, :1]
    before = bytes_of(holes)
    caches = functional.v3_functional()[5:]
    assert all(cache.is_contiguous() for cache in caches) and bytes_of(holes) == before


def test_expanded_inputs():
    """A tensor whose strides are all zero is read as what it is."""
    call, expected = TorchCall(), TorchCall()
    one = torch.tensor(0.5, dtype=torch.bfloat16)
    shape = call.arguments[7].shape
    call.arguments = (*call.arguments[:7], one.expand(shape), one.expand(shape))
    expected.arguments = (*expected.arguments[:7], one.expand(shape).clone(), one.expand(shape).clone())
    assert [bytes_of(result) for result in call.v3()] == [bytes_of(result) for result in expected.v3()]


LEGAL_MODES = {(0, 0), (1, 0), (1, 2), (1, 3)} | {(w, kv) for w in (2, 3, 4, 5) for kv in (0, 1, 3)}


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("modes", list(itertools.product(range(-1, 7), range(4), range(2))))
def test_illegal_modes_are_refused(modes, device):
    weight, kv, query = modes
    if (weight, kv) in LEGAL_MODES and query == int(kv == 1):
        return
    call = TorchCall()
    tensors = [tensor.to(device) for tensor in (*call.arguments, *call.caches())]
    repo = int(kv == 3)
    with pytest.raises(ValueError, match="_mode: expected"):
        torch.ops.npu.npu_mla_prolog_v3(
            *tensors, cache_index=call.keywords["cache_index"].to(device), weight_quant_mode=weight,
            kv_cache_quant_mode=kv, query_quant_mode=query, ckvkr_repo_mode=repo, quant_scale_repo_mode=repo,
        )  # fmt: skip


def test_sixteen_modes_are_legal():
    cases = {case[:2]: case for case in KNOWN_CASES}
    for case in cases.values():
        TorchCall(*case).v3()
    assert len(LEGAL_MODES) == 16 and (len(cases) == 16 or not HAS_E8M0)


FAULTS = [
    ({"cache_mode": "BNSD"}, ValueError, "cache_mode: expected one of PA_BSND"),
    ({"tile_size": 64}, ValueError, "tile_size: expected 128, found 64"),
    ({"weight_quant_mode": 1}, ValueError, "weight_quant_mode: expected 0 with weights of these types, found 1"),
    ({"cache_index": torch.tensor([1, 2, 3, 4, 5, 99])}, IndexError, "cache holds 64 slots"),
    ({"cache_index": torch.arange(6, dtype=torch.int32)}, ValueError, "cache_index: expected INT64, found INT32"),
    ({"cache_index": None}, ValueError, "cache_index"),
    ({"quant_scale_ckv": torch.ones(1)}, ValueError, "quant_scale_ckv: expected no tensor"),
    ({"token_x_dtype": 290}, TypeError, "token_x: expected torch.uint8 with token_x_dtype=290"),
    ({"weight_dq_dtype": 290}, TypeError, "weight_dq: expected torch.uint8"),
    ({"smooth_scales_cq": torch.ones(1, Q_RANK)}, ValueError, "smooth_scales_cq: expected no tensor"),
]


@pytest.mark.parametrize("changes, error, text", FAULTS, ids=lambda value: None)
def test_refusals(changes, error, text):
    call = TorchCall()
    before = [bytes_of(cache) for cache in call.caches()]
    with pytest.raises(error, match=text):
        call.v3(**changes)
    assert [bytes_of(cache) for cache in call.caches()] == before


TENSOR_FAULTS = [
    (0, lambda t: t[0], ValueError, "token_x: expected .T, He."),
    (0, lambda t: t.float(), ValueError, "token_x: expected BF16, found FLOAT32"),
    (0, lambda t: t.half(), ValueError, "token_x: expected BF16, found FLOAT16"),
    (3, lambda t: t.half(), ValueError, "weight_uk: expected BF16, found FLOAT16"),
    (0, lambda t: t.double(), ValueError, "token_x: expected BF16, found FLOAT64"),
    (0, lambda t: t.view(torch.int16).to(torch.uint8), TypeError, "token_x: torch.uint8 holds the bits of several types"),
    (1, lambda t: t.t(), ValueError, "weight_dq"),
    (1, lambda t: t.double(), ValueError, "weight_dq: expected BF16, found FLOAT64"),
    (3, lambda t: t[0], ValueError, "weight_uk: expected .N, D, Hckv."),
    (5, lambda t: t[None], ValueError, "rmsnorm_gamma_cq"),
    (7, lambda t: t[None], ValueError, "rope_sin: expected 2 dimensions as token_x"),
    (8, lambda t: t[:, :-2], ValueError, "rope_cos"),
]


@pytest.mark.parametrize("place, change, error, text", TENSOR_FAULTS, ids=lambda value: None)
def test_tensors_are_refused(place, change, error, text):
    call = TorchCall()
    before = [bytes_of(cache) for cache in call.caches()]
    arguments = list(call.arguments)
    arguments[place] = change(arguments[place])
    call.arguments = tuple(arguments)
    with pytest.raises(error, match=text):
        call.v3()
    assert [bytes_of(cache) for cache in call.caches()] == before


def test_a_number_is_no_tensor():
    with pytest.raises((TypeError, RuntimeError), match="quant_scale_ckv"):
        TorchCall().v3(quant_scale_ckv=1.0)


def test_hifloat8_does_not_stick():
    TorchCall("hifloat8", "per_tensor").v3()
    assert TorchCall("int8", "per_tensor").v3()[0].dtype == torch.int8


def test_per_group_takes_any_empty_kr_cache():
    expected = TorchCall("int8", "per_group")
    expected.v3()
    for empty in (torch.empty(0, dtype=torch.bfloat16), torch.empty((1, 2, 1, 0), dtype=torch.int8)):
        call = TorchCall("int8", "per_group")
        call.kr_cache = empty
        call.v3()
        assert bytes_of(call.kv_cache) == bytes_of(expected.kv_cache)
    call.kr_cache = torch.zeros((4, 16, 1, ROPE), dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="kr_cache: expected an empty tensor"):
        call.v3()


def test_no_tokens():
    call = TorchCall()
    x, *rest = call.arguments
    call.arguments = (x[:0], *rest[:-2], rest[-2][:0], rest[-1][:0])
    assert call.v3(cache_index=torch.empty(0, dtype=torch.int64))[0].shape == (0, HEADS, KV_RANK)


def test_threads_share_the_operator():
    from concurrent.futures import ThreadPoolExecutor

    expected = [bytes_of(result) for result in TorchCall().v3()]
    with ThreadPoolExecutor(4) as pool:
        for results in pool.map(lambda _: TorchCall().v3(), range(40)):
            assert [bytes_of(result) for result in results] == expected


PROGRAM = """
import mlaprolog.torch_npu_shim, torch, torch_npu
torch.npu.config.allow_internal_format = True
w = torch.ones(64, 32, dtype=torch.bfloat16)
nz = torch_npu.npu_format_cast(w, 29)
assert torch_npu.get_npu_format(nz) == 29 and torch_npu.get_npu_format(w) == 2
assert nz.shape == w.shape and torch.equal(nz, w) and nz.data_ptr() != w.data_ptr()
assert torch_npu.npu_format_cast(nz, 29) is nz and torch_npu.npu_format_cast(w, 2) is w
for name in ("npu_mla_prolog", "npu_mla_prolog_v2", "npu_mla_prolog_v3", "npu_mla_prolog_v3_functional"):
    assert getattr(torch_npu, name) == getattr(torch.ops.npu, name)
assert torch_npu.hifloat8 == 290
import mlaprolog.torch
assert mlaprolog.torch.install_torch_npu() is torch_npu
print("fine")
"""


def test_the_stand_in_for_torch_npu():
    output = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert output.stdout == "fine\n", output.stderr


def test_no_stand_in_beside_torch_npu(tmp_path):
    (tmp_path / "torch_npu.py").write_text("")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import mlaprolog.torch_npu_shim"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert output.returncode != 0 and "torch_npu is installed" in output.stderr


def test_operators_of_torch_npu_get_the_cpu():
    """Where another library has defined them, only the CPU's kernels are added."""
    program = (
        "import torch\n"
        "library = torch.library.Library('npu', 'DEF')\n"
        f"for name, schema in {SCHEMAS!r}.items(): library.define(name + schema)\n"
        "import mlaprolog.torch\n"
        "assert mlaprolog.torch.npu_mla_prolog_v3 is torch.ops.npu.npu_mla_prolog_v3\n"
        "assert 'CPU' in torch._C._dispatch_dump('npu::npu_mla_prolog_v3')\n"
        "print('fine')\n"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert output.stdout == "fine\n", output.stderr


def test_smooth_scales():
    scales = np.random.default_rng(2).uniform(0.5, 2, (1, Q_RANK)).astype(np.float32)
    call = TorchCall("uq_qr_int8", "bf16")
    results = call.v3(smooth_scales_cq=to_torch(scales))
    plain = Call("uq_qr_int8", "bf16")
    arguments, keywords = plain.arguments()
    weights = mlaprolog.Weights(**plain.weight_arrays(), smooth_scales_cq=scales)
    expected = mlaprolog.prolog(weights, *arguments, **keywords)
    assert bytes_of(results[0]) == expected.query.tobytes()
