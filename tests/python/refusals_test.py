"""What does not fit is refused with a text that names it, and nothing is written."""

import numpy as np
import pytest
from plain_layer import BF16, Call

import mlaprolog


def swapped(array):
    return array.astype(array.dtype.newbyteorder(">"))


def misaligned(array):
    raw = np.empty(array.nbytes + 1, np.uint8)[1:]
    moved = raw.view(array.dtype).reshape(array.shape)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


def read_only(array):
    copy = array.copy()
    copy.flags.writeable = False
    return copy


# place or keyword, new value made from the old one, exception, words of its text
CALL_FAULTS = [
    ("token_x", lambda a: a.astype(np.float32), ValueError, "token_x: expected BF16, found FLOAT32"),
    ("token_x", lambda a: a.astype(np.float64), ValueError, "token_x: expected BF16, found FLOAT64"),
    ("token_x", lambda a: a.astype(np.complex64), TypeError, "token_x: an array of complex64"),
    ("token_x", lambda a: a.astype(np.float32).tolist(), TypeError, "token_x: expected a numpy.ndarray, found list"),
    ("token_x", lambda a: None, TypeError, "token_x: expected a numpy.ndarray, found None"),
    ("token_x", lambda a: a[:, :-1], ValueError, "token_x: expected shape"),
    ("token_x", lambda a: a[0], ValueError, "token_x"),
    ("token_x", lambda a: misaligned(a), ValueError, "token_x: expected aligned elements"),
    ("token_x", lambda a: np.broadcast_to(a[0, 0], a.shape), ValueError, "token_x: expected elements side by side"),
    ("token_x", lambda a: a.reshape(1, 1, 2, 3, -1), ValueError, "4 dimensions"),
    ("rope_sin", lambda a: a[:-1], ValueError, "rope_sin: expected shape"),
    ("rope_sin", lambda a: None, ValueError, "rope_sin"),
    ("kv_cache", read_only, ValueError, "kv_cache: expected an array that can be written"),
    ("kv_cache", lambda a: np.zeros(a.shape, np.int8), ValueError, "kv_cache: expected BF16, found INT8"),
    ("kv_cache", lambda a: np.zeros(a.shape, np.uint8), TypeError, "kv_cache: an array of uint8"),
    ("kv_cache", lambda a: np.lib.stride_tricks.as_strided(a, a.shape, (a.strides[1], *a.strides[1:])), ValueError,
     "kv_cache: expected strides that give each element a place of its own"),
    ("kr_cache", lambda a: None, ValueError, "kr_cache"),
    ("cache_index", lambda a: a.astype(np.int32), ValueError, "cache_index: expected INT64, found INT32"),
    ("cache_index", swapped, TypeError, "bytes are in the other order"),
    ("cache_index", lambda a: a + 64, mlaprolog.CacheIndexError, "but the cache holds 64 slots"),
    ("cache_index", lambda a: None, ValueError, "cache_index"),
    ("cache_mode", lambda _: "BNSD", ValueError, "cache_mode: expected one of PA_BSND"),
    ("cache_mode", lambda _: 17, ValueError, "cache_mode"),
    ("cache_mode", lambda _: None, TypeError, "cache_mode: expected a str"),
    ("kv_quant", lambda _: "per_tensor", ValueError, 'kv_quant: expected "bf16".*found "per_tensor"; choose'),
    ("quant_scale_ckv", lambda _: 1.0, TypeError, "quant_scale_ckv: expected a numpy.ndarray, found float"),
    ("quant_scale_ckv", lambda _: np.ones(1, np.float32), ValueError, "quant_scale_ckv: expected no tensor"),
    ("qc_qr_scale", lambda _: 0.0, ValueError, "qc_qr_scale: expected a factor"),
    ("qc_qr_scale", lambda _: "much", ValueError, "could not convert"),
    ("context", lambda _: 3, TypeError, "context: expected a mlaprolog.Context, found int"),
    ("out", lambda _: (1, 2), TypeError, "out: expected a mlaprolog.PrologResult, found tuple"),
    ("wrong_word", lambda _: 1, TypeError, "wrong_word"),
]  # fmt: skip


@pytest.mark.parametrize("name, change, error, text", CALL_FAULTS, ids=lambda value: None)
def test_a_call_is_refused(name, change, error, text):
    call = Call()
    weights = call.weights()
    arguments, keywords = call.arguments()
    places = ["token_x", "rope_sin", "rope_cos", "kv_cache", "kr_cache", "cache_index"]
    arguments = list(arguments)
    if name in places:
        arguments[places.index(name)] = change(arguments[places.index(name)])
    else:
        keywords[name] = change(keywords.get(name))
    kv, kr = call.kv_cache.tobytes(), call.kr_cache.tobytes()
    with pytest.raises(error, match="(?s).*" + text.replace("(", r"\(")):
        mlaprolog.prolog(weights, *arguments, **keywords)
    assert (call.kv_cache.tobytes(), call.kr_cache.tobytes()) == (kv, kr)


def test_a_cache_index_error_is_both_an_index_error_and_a_value_error():
    assert issubclass(mlaprolog.CacheIndexError, IndexError) and issubclass(mlaprolog.CacheIndexError, ValueError)


WEIGHT_FAULTS = [
    ("weight_dq", lambda a: a.astype(np.float32), {}, ValueError, "weight_dq: expected BF16, found FLOAT32"),
    ("weight_dq", lambda a: a.T, {}, ValueError,
     r"weight_dq: expected \(He, Hcq\).*; \(out, in\) tensors need layout=\"out_in\" or a transposed view$"),
    ("weight_dq", lambda a: mlaprolog.nz_pack(a), {"layout": "row_major"}, ValueError, "weight_dq"),
    ("weight_uk", lambda a: a[0], {}, ValueError, "weight_uk: expected 3 dimensions"),
    ("weight_uk", lambda a: None, {}, ValueError, "weight_uk"),
    ("weight_uq_qr", lambda a: a.view(np.uint8), {}, TypeError, "weight_uq_qr: an array of uint8"),
    ("weight_uq_qr", lambda a: a, {"layout": "fractal"}, ValueError, "layout of weight_dq: expected one of row_major"),
    ("weight_uq_qr", lambda a: a, {"layout": {"weight_uk": "nz"}}, ValueError, "layout: expected names among weight_dq"),
    ("weight_uq_qr", lambda a: a, {"layout": "out_in", "copy": False}, ValueError, "weight_"),
    ("weight_uq_qr", lambda a: a, {"dims": mlaprolog.Dims(heads=4)}, ValueError, "heads|weight_u"),
    ("smooth_scales_cq", lambda a: np.ones(64, np.float32), {}, ValueError, "smooth_scales_cq: expected no tensor"),
]  # fmt: skip


@pytest.mark.parametrize("name, change, options, error, text", WEIGHT_FAULTS, ids=lambda value: None)
def test_weights_are_refused(name, change, options, error, text):
    arrays = Call().weight_arrays()
    arrays[name] = change(arrays.get(name))
    with pytest.raises(error, match=text):
        mlaprolog.Weights(**arrays, **options)


def test_what_is_not_weights_is_refused():
    call = Call()
    arguments, keywords = call.arguments()
    with pytest.raises(TypeError, match="weights: expected mlaprolog.Weights, found dict"):
        mlaprolog.prolog(call.weight_arrays(), *arguments, **keywords)


def test_typed_tells_formats_of_raw_bits_only():
    with pytest.raises(TypeError, match="expected raw bits of hifloat8 as uint8, found float32"):
        mlaprolog.typed(np.zeros(3, np.float32), "hifloat8")
    with pytest.raises(ValueError, match="dtype: expected one of bfloat16"):
        mlaprolog.typed(np.zeros(3, np.uint8), "fp4")
    call = Call("hifloat8", "per_tensor")
    call.token_x = mlaprolog.typed(call.token_x.array, "float8_e4m3fn")
    arguments, keywords = call.arguments()
    with pytest.raises(ValueError, match="token_x: expected HIFLOAT8, found FLOAT8_E4M3"):
        mlaprolog.prolog(call.weights(), *arguments, **keywords)


def test_contexts():
    with pytest.raises(ValueError, match="max_isa"):
        mlaprolog.Context(max_isa="z80")
    with pytest.raises(ValueError, match="num_threads"):
        mlaprolog.Context(num_threads=-1)
    call = Call()
    arguments, keywords = call.arguments()
    context = mlaprolog.Context(num_threads=1, max_isa="scalar")
    assert (context.num_threads, context.isa) == (1, "scalar")
    mlaprolog.prolog(call.weights(), *arguments, **keywords, context=context)
    context.close()
    for use in (lambda: context.facts, lambda: mlaprolog.prolog(call.weights(), *arguments, **keywords, context=context)):
        with pytest.raises(ValueError, match="context"):
            use()


PREPARATION_FAULTS = [
    (lambda: mlaprolog.nz_pack(np.zeros((2, 3, 4), BF16)), ValueError, "matrix: expected 2 dimensions"),
    (lambda: mlaprolog.nz_pack([1.0]), TypeError, "matrix: expected a numpy.ndarray"),
    (lambda: mlaprolog.nz_unpack(np.zeros((1, 1, 16, 16), BF16), 20, 16), ValueError, "nz"),
    (lambda: mlaprolog.split_kv_b_proj(np.zeros((10, 4), BF16), 3, 2), ValueError, "kv_b_proj: expected heads"),
    (lambda: mlaprolog.rope_table(np.array([0.5]), 8), (ValueError, TypeError), "positions"),
    (lambda: mlaprolog.rope_table(np.array([-1]), 8), ValueError, "positions"),
    (lambda: mlaprolog.rope_table(np.array([1]), 7), ValueError, "rope"),
    (lambda: mlaprolog.cache_convert(np.zeros((1, 16, 1, 17), BF16), "PA_BSND", "PA_NZ"), ValueError, "multiple of 16"),
    (lambda: mlaprolog.cache_rows_split(np.zeros((2, 655), np.int8)), ValueError, "656"),
    (lambda: mlaprolog.rope_reorder(np.zeros((2, 10), BF16), 4, 2, "half_to_interleaved"), ValueError, "group|10"),
    (lambda: mlaprolog.compare(np.zeros(3, np.float32), np.zeros(4, np.float32)), ValueError, "golden|actual"),
    (lambda: mlaprolog.compare(np.zeros(3), np.zeros(3), standard="good"), ValueError, "standard: expected one of exact"),
    (lambda: mlaprolog.compare({"a": np.zeros(3)}, {"b": np.zeros(3)}), ValueError, "found only in one: a, b"),
    (lambda: mlaprolog.check_limits(mlaprolog.Dims(), soc="h100"), ValueError, "soc"),
]  # fmt: skip


@pytest.mark.parametrize("use, error, text", PREPARATION_FAULTS, ids=lambda value: None)
def test_helpers_refuse(use, error, text):
    with pytest.raises(error, match=text):
        use()
