"""What current torch asks of an operator: torch.library.opcheck and torch.compile."""

import warnings

import pytest

torch = pytest.importorskip("torch")
if not hasattr(torch.library, "opcheck"):
    pytest.skip(f"torch {torch.__version__} has no torch.library.opcheck", allow_module_level=True)

from torch_calls import TorchCall, bytes_of, is_known  # noqa: E402

import mlaprolog.torch  # noqa: E402, F401

# opcheck compares by allclose, which torch lacks for 8-bit floats.
CHECKABLE = [("bf16", "bf16"), ("uq_qr_int8", "per_channel"), ("int8", "per_tensor"), ("int8", "per_group")]
SCENARIOS = [
    (weights, key)
    for weights, key in [
        *CHECKABLE, ("fp8", "per_tensor"), ("mxfp8", "per_tensor"), ("mxfp8", "bf16"),
    ]
    if is_known(weights)
]  # fmt: skip


@pytest.mark.parametrize("weights, key", CHECKABLE)
@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("name", ["npu_mla_prolog_v3", "npu_mla_prolog_v3_functional"])
def test_opcheck(name, weights, key, flag):
    call = TorchCall(weights, key)
    operator = getattr(torch.ops.npu, name).default
    # A cache full of NaN equals no other.
    for cache in call.caches():
        cache.zero_()
    checks = torch.library.opcheck(
        operator, (*call.arguments, *call.caches()), {**call.keywords, "query_norm_flag": flag}
    )
    assert set(checks.values()) == {"SUCCESS"} and len(checks) == 4


@pytest.mark.parametrize("name", ["npu_mla_prolog", "npu_mla_prolog_v2"])
def test_opcheck_minds_only_what_the_schemas_do_not_say(name):
    """The schemas of v1 and v2, which are torch_npu's, do not tell that the caches are written and returned."""
    call = TorchCall()
    arguments = (*call.arguments, call.keywords["cache_index"], *(cache.zero_() for cache in call.caches()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks = torch.library.opcheck(getattr(torch.ops.npu, name).default, arguments, raise_exception=False)
    failed = {check: str(outcome) for check, outcome in checks.items() if outcome != "SUCCESS"}
    assert list(failed) == ["test_schema"] and "kv_cache is not defined to" in failed["test_schema"]


@pytest.mark.parametrize("weights, key", SCENARIOS)
@pytest.mark.parametrize("functional", [False, True])
def test_compiled_code_gives_the_eager_result(weights, key, functional):
    eager, compiled = TorchCall(weights, key), TorchCall(weights, key)

    def step(call):
        def body(x, *arguments):
            x = x + 0 if x.dtype == torch.bfloat16 else x  # something to fuse
            function = torch.ops.npu.npu_mla_prolog_v3_functional if functional else torch.ops.npu.npu_mla_prolog_v3
            results = function(x, *arguments, **call.keywords, query_norm_flag=True)
            return (results[1] * 2, *results)

        return body

    expected = step(eager)(*eager.arguments, *eager.caches())
    torch._dynamo.reset()
    # Inductor (of torch 2.15) leaves mutations unfinished in graphs with float8_e8m0fnu inputs, whatever the operator.
    backend = "aot_eager" if weights == "mxfp8" and not functional else "inductor"
    actual = torch.compile(step(compiled), fullgraph=True, backend=backend)(*compiled.arguments, *compiled.caches())
    assert [bytes_of(result) for result in actual] == [bytes_of(result) for result in expected]
    assert [bytes_of(cache) for cache in compiled.caches()] == [bytes_of(cache) for cache in eager.caches()]
