"""Python's lock is free while the library works; contexts, threads, forks; nothing is leaked."""

import gc
import os
import sys
import threading
import time

import numpy as np
import pytest
from plain_layer import BF16, Call, results_of

import mlaprolog


def small_layer_call(tokens):
    random = np.random.default_rng(1)

    def normal(*shape):
        return (random.normal(size=shape) / 8).astype(BF16)

    hidden, rank, heads, nope, rope, kv_rank = 512, 256, 8, 64, 32, 256
    weights = mlaprolog.Weights(
        weight_dq=normal(hidden, rank), weight_uq_qr=normal(rank, heads * (nope + rope)),
        weight_uk=normal(heads, nope, kv_rank), weight_dkv_kr=normal(hidden, kv_rank + rope),
        rmsnorm_gamma_cq=normal(rank), rmsnorm_gamma_ckv=normal(kv_rank),
    )  # fmt: skip
    sin, cos = mlaprolog.rope_table(np.arange(tokens), rope)
    caches = np.zeros((tokens, 1, 1, kv_rank), BF16), np.zeros((tokens, 1, 1, rope), BF16)
    x = normal(tokens, hidden)
    return lambda function, **options: function(weights, x, sin, cos, *caches, np.arange(tokens), **options)


def test_python_goes_on_while_the_library_works():
    call = small_layer_call(tokens=2000)  # long enough, in the reference, to look at a clock meanwhile
    span = []

    def work():
        begin = time.perf_counter()
        call(mlaprolog.reference)
        span.extend((begin, time.perf_counter()))

    worker = threading.Thread(target=work)
    ticks = []
    worker.start()
    while worker.is_alive():
        time.sleep(0.001)
        ticks.append(time.perf_counter())
    worker.join()
    inside = [tick for tick in ticks if span[0] < tick < span[1]]
    assert len(inside) >= 10, f"{len(inside)} ticks in {span[1] - span[0]:.3f} s"


def test_two_contexts_work_at_the_same_time():
    """Each of two threads begins its next call only after the other has begun one: with Python's lock held during calls
    or one context for both, their calls would never overlap."""
    call = small_layer_call(tokens=24)
    inside, overlaps = set(), []
    lock = threading.Lock()

    def work(me):
        with mlaprolog.Context(num_threads=1) as context:
            for _ in range(200):
                with lock:
                    inside.add(me)
                call(mlaprolog.prolog, context=context)
                with lock:
                    inside.discard(me)
                    overlaps.append(bool(inside))

    threads = [threading.Thread(target=work, args=(me,)) for me in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(overlaps) == 400 and sum(overlaps) >= 10


def test_threads_take_turns_in_the_default_context():
    expected = results_of_default(Call())
    failures = []

    def work():
        for _ in range(30):
            if results_of_default(Call()) != expected:
                failures.append("other results")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def results_of_default(call):
    arguments, keywords = call.arguments()
    return results_of(call, mlaprolog.prolog(call.weights(), *arguments, **keywords))


def test_a_busy_context_refuses():
    call = small_layer_call(tokens=24)
    context = mlaprolog.Context(num_threads=1)
    outcomes = []

    def work():
        for _ in range(300):
            try:
                call(mlaprolog.prolog, context=context)
                outcomes.append("ran")
            except RuntimeError as error:
                outcomes.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 600 and "ran" in outcomes
    assert all(outcome == "ran" or "context" in outcome for outcome in outcomes)


def test_the_default_context_can_be_set():
    mine = mlaprolog.Context(num_threads=1)
    try:
        mlaprolog.set_default_context(mine)
        assert mlaprolog.default_context() is mine
        results_of_default(Call())
        assert mine.facts.workspace_bytes > 0
    finally:
        mlaprolog.set_default_context(None)
    assert mlaprolog.default_context() is not mine


def test_a_forked_child_has_its_own_default_context():
    expected = results_of_default(Call())
    child = os.fork()
    if child == 0:
        same = False
        try:
            same = results_of_default(Call()) == expected
        finally:
            os._exit(0 if same else 1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def one_of_everything():
    """All that allocates, successes and refusals."""
    call = Call("uq_qr_int8", "per_channel")
    arguments, keywords = call.arguments()
    weights = call.weights()
    mlaprolog.prolog(weights, *arguments, **keywords, query_norm=True)
    mlaprolog.reference(weights, *arguments, **keywords)
    mlaprolog.Weights(**call.weight_arrays(), copy=False)
    with pytest.raises(ValueError):
        mlaprolog.prolog(weights, *arguments, **{**keywords, "qc_qr_scale": 0.0})
    with pytest.raises(TypeError):
        mlaprolog.Weights(**{**call.weight_arrays(), "weight_dq": np.zeros(3, np.complex64)})
    mlaprolog.compare(call.weight_uk, call.weight_uk, standard="exact")
    mlaprolog.nz_unpack(mlaprolog.nz_pack(call.weight_uk[0]), *call.weight_uk[0].shape)
    mlaprolog.check_limits(mlaprolog.Dims(1, 1, 1, 1, 2, 1))
    mlaprolog.isas()
    mlaprolog.kernels()


def growth(function, rounds=200):
    """How many bytes of the process, and objects of Python, are more after the rounds than before."""
    for _ in range(30):
        function()
    gc.collect()
    before, blocks = resident_bytes(), sys.getallocatedblocks()
    for _ in range(rounds):
        function()
    gc.collect()
    return resident_bytes() - before, sys.getallocatedblocks() - blocks


def is_leaking(grown):
    """One layer alone is 150 KB; one object a round would be 200."""
    num_bytes, num_blocks = grown
    return num_bytes > 8 << 20 or num_blocks >= 200


# What finds leaks is tried on some first. A sanitizer keeps freed memory for a while.
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer keeps freed memory")
def test_nothing_is_leaked():
    kept = []
    assert is_leaking(growth(lambda: kept.append(Call().weights().native)))
    assert is_leaking(growth(lambda: kept.append(object())))
    kept.clear()
    assert not is_leaking(growth(one_of_everything))


def test_contexts_are_not_leaked():
    call = Call()
    arguments, keywords = call.arguments()
    weights = call.weights()

    def use():
        context = mlaprolog.Context(num_threads=3)
        mlaprolog.prolog(weights, *arguments, **keywords, context=context)

    use()
    gc.collect()
    threads = len(os.listdir("/proc/self/task"))
    for _ in range(20):
        use()
    gc.collect()
    assert len(os.listdir("/proc/self/task")) <= threads


def test_arguments_are_not_kept():
    call = Call()
    arguments, keywords = call.arguments()
    weights = call.weights()
    mlaprolog.prolog(weights, *arguments, **keywords)
    counts = [sys.getrefcount(argument) for argument in (*arguments, weights)]
    result = mlaprolog.prolog(weights, *arguments, **keywords)
    assert [sys.getrefcount(argument) for argument in (*arguments, weights)] == counts
    references = sys.getrefcount(result.query)
    assert references == 2
