"""What prepares weights, tables and caches, against plain NumPy; comparisons and limits; the documentation's examples."""

import doctest
import importlib
import json
import math

import numpy as np
import pytest
from plain_layer import BF16, E4M3

import mlaprolog


def random_bytes(shape, dtype, seed=1):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8).view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype, c0", [(BF16, 16), (np.uint16, 16), (np.int8, 32), (np.uint8, 32), (E4M3, 32)])
@pytest.mark.parametrize("k, n", [(1, 1), (16, 32), (1, 24), (20, 1), (33, 70)])
def test_nz(dtype, c0, k, n):
    matrix = random_bytes((k, n), dtype)
    nz = mlaprolog.nz_pack(matrix)
    assert nz.shape == (-(-n // c0), -(-k // 16), 16, c0) and nz.dtype == matrix.dtype
    padded = np.zeros((nz.shape[1] * 16, nz.shape[0] * c0), dtype)
    padded[:k, :n] = matrix
    expected = padded.reshape(nz.shape[1], 16, nz.shape[0], c0).transpose(2, 0, 1, 3)
    assert nz.tobytes() == np.ascontiguousarray(expected).tobytes()
    assert mlaprolog.nz_unpack(nz, k, n).tobytes() == matrix.tobytes()
    assert mlaprolog.nz_pack(matrix.T, layout="out_in").tobytes() == nz.tobytes()
    if dtype != np.uint8:
        assert mlaprolog.nz_dims({BF16: "bfloat16", np.uint16: "bfloat16", E4M3: "float8_e4m3fn"}.get(dtype, "int8"),
                                 k, n) == nz.shape  # fmt: skip


def deepseek_frequencies(rope, base, factor, original, beta_fast, beta_slow):
    """DeepSeek's YaRN as its model code defines it."""
    exponents = np.arange(0, rope, 2) / rope
    plain = base**-exponents
    if factor == 1:
        return plain

    def dimension(rotations):
        return rope * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low = max(math.floor(dimension(beta_fast)), 0)
    high = min(math.ceil(dimension(beta_slow)), rope - 1)
    ramp = np.clip((np.arange(rope // 2) - low) / max(high - low, 0.001), 0, 1)
    return plain / factor * ramp + plain * (1 - ramp)


@pytest.mark.parametrize("factor", [1.0, 40.0])
@pytest.mark.parametrize("style", ["interleaved_to_half", "half", "interleaved"])
def test_rope_tables(style, factor):
    positions = np.array([[0, 1], [4095, 100000]])
    sin, cos = mlaprolog.rope_table(positions, 64, base=10000.0, factor=factor, rope_style=style, dtype="float32")
    angles = positions[..., None] * deepseek_frequencies(64, 10000.0, factor, 4096, 32, 1)
    angles = np.repeat(angles, 2, -1) if style == "interleaved" else np.concatenate([angles, angles], -1)
    np.testing.assert_allclose(sin, np.sin(angles), atol=1e-6)
    np.testing.assert_allclose(cos, np.cos(angles), atol=1e-6)
    rounded, _ = mlaprolog.rope_table(positions, 64, base=10000.0, factor=factor, rope_style=style)
    assert rounded.dtype == BF16
    np.testing.assert_allclose(rounded.astype(float), sin, rtol=2**-8, atol=1e-30)
    raw, _ = mlaprolog.rope_table(positions, 64, base=10000.0, factor=factor, rope_style=style, raw=True)
    assert raw.dtype == np.uint16 and raw.tobytes() == rounded.tobytes()


def test_rope_mscale():
    """The factor on sine and cosine is that of mscale over that of mscale_all_dim."""
    positions = np.array([5])
    one = mlaprolog.rope_table(positions, 8, factor=40.0, dtype="float32")[1]
    other = mlaprolog.rope_table(positions, 8, factor=40.0, mscale=1.0, mscale_all_dim=0.707, dtype="float32")[1]
    ratio = (0.1 * math.log(40) + 1) / (0.1 * 0.707 * math.log(40) + 1)
    np.testing.assert_allclose(other, one * ratio, rtol=1e-6)


@pytest.mark.parametrize("dtype", [BF16, np.int8, np.uint8])
def test_cache_orders(dtype):
    c0 = 32 // np.dtype(dtype).itemsize
    cache = random_bytes((3, 16, 1, 64), dtype)
    nz = mlaprolog.cache_convert(cache, "PA_BSND", "PA_NZ")
    expected = cache.reshape(3, 16, 64 // c0, c0).transpose(0, 2, 1, 3)
    assert nz.tobytes() == np.ascontiguousarray(expected).tobytes()
    assert mlaprolog.cache_convert(nz, "PA_NZ", "PA_BSND").tobytes() == cache.tobytes()


def test_cache_rows():
    rows = random_bytes((2, 3, 1, 656), np.int8)
    values, rope, scales = mlaprolog.cache_rows_split(rows)
    assert values.tobytes() == rows[..., :512].tobytes()
    assert rope.dtype == BF16 and rope.tobytes() == rows[..., 512:640].tobytes()
    assert scales.dtype == np.float32 and scales.tobytes() == rows[..., 640:].tobytes()
    assert mlaprolog.cache_rows_join(values, rope, scales).tobytes() == rows.tobytes()
    flash = mlaprolog.cache_rows_reorder(rows, "cann", "flashmla")
    assert flash.tobytes() == np.concatenate([rows[..., :512], rows[..., 640:], rows[..., 512:640]], -1).tobytes()
    assert mlaprolog.cache_rows_join(values, rope, scales, order="flashmla").tobytes() == flash.tobytes()
    assert mlaprolog.cache_rows_reorder(flash, "flashmla", "cann").tobytes() == rows.tobytes()


@pytest.mark.parametrize("layout", ["row_major", "out_in"])
def test_rope_columns(layout):
    half = np.arange(2 * 3 * 10, dtype=np.float32).reshape(2, 30)  # three groups of ten columns, six of them rope
    expected = half.copy()
    for group in range(3):
        for i in range(3):
            for place in range(2):
                expected[:, group * 10 + 4 + 2 * i + place] = half[:, group * 10 + 4 + i + 3 * place]
    turn = (lambda a: a) if layout == "row_major" else (lambda a: np.ascontiguousarray(a.T))
    reordered = mlaprolog.rope_reorder(turn(half), 10, 6, "half_to_interleaved", layout=layout)
    assert np.array_equal(reordered, turn(expected))
    assert np.array_equal(mlaprolog.rope_reorder(reordered, 10, 6, "interleaved_to_half", layout=layout), turn(half))


def test_bf16_without_ml_dtypes(monkeypatch):
    values = np.float32([0, -0.0, 1, 1.00390625, 1.01171875, 3.4e38, np.inf, -np.inf, np.nan, 1e-40])
    expected = values.astype(BF16).view(np.uint16)
    assert mlaprolog.to_bf16(values).view(np.uint16).tolist() == expected.tolist()
    monkeypatch.setattr(mlaprolog._arrays, "ml_dtypes", None)
    bits = mlaprolog.to_bf16(values)
    assert bits.dtype == np.uint16 and bits.tolist() == expected.tolist()
    assert np.array_equal(mlaprolog.from_bf16(bits), values.astype(BF16).astype(np.float32), equal_nan=True)


def test_compare():
    golden = np.linspace(1, 2, 64, dtype=np.float32).reshape(8, 8)
    assert set(mlaprolog.standards()) >= {"exact", "mixed-tolerance", "mere-mare", "half-percent", "dual-l0"}
    near = mlaprolog.compare(golden.astype(BF16), golden, standard="mixed-tolerance")
    assert near and near.passed and near["num_elements"] == 64 and near["relative_norm"] < 2**-8
    far = mlaprolog.compare((golden * 1.5).astype(BF16), golden, standard="mixed-tolerance")
    assert not far and "FAILED" in str(far) and far.verdict != "passed"
    assert mlaprolog.compare(golden, golden, standard="exact") and not mlaprolog.compare(golden, -golden, standard="exact")
    dual = mlaprolog.compare(golden.astype(BF16), golden, benchmark=golden.astype(BF16), standard="dual-l0")
    assert dual and dual["mere_ratio"] == 1
    table = mlaprolog.compare({"a": golden, "b": golden * 2}, {"a": golden, "b": golden}, standard="half-percent")
    assert not table and table["a"] and not table["b"]
    assert json.loads(table.to_json())["tensors"]["a"]["passed"] is True and "b  FAILED" in str(table)


def test_limits():
    v3 = mlaprolog.Dims(7168, 1536, 128, 128, 64, 512)
    assert mlaprolog.check_limits(v3) and mlaprolog.check_limits(v3, tokens=(4, 1), version=1)
    answer = mlaprolog.check_limits(v3._replace(heads=96, q_rank=768))
    assert not answer and len(answer.reasons) == 2 and "96" in "".join(answer.reasons)
    assert not mlaprolog.check_limits(v3, weight_quant="mxfp8")
    assert mlaprolog.check_limits(v3, weight_quant="mxfp8", soc="ascend950")


@pytest.mark.parametrize(
    "module", ["_arrays", "_comparison", "_context", "_limits", "_operator", "_preparation", "_weights"]
)
def test_examples_of_docstrings(module):
    results = doctest.testmod(importlib.import_module(f"mlaprolog.{module}"), extraglobs={"np": np, **vars(mlaprolog)})
    assert results.failed == 0
