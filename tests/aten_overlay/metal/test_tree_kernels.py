"""Kernels as a PyTorch checkout has them, run: those with barriers, simdgroup functions, threadgroup arguments, argument
buffers and atomics, against numpy. They are those of tree/, which have the arguments of PyTorch's; where
`PORTER_TEST_FORK` names a checkout (a 2.7 development tree), its own run instead.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels
from aten_overlay.metal.launch import Library
from aten_overlay.metal.sanitizer.checks import NAMES

FORK = Path(os.environ.get("PORTER_TEST_FORK") or Path(__file__).with_name("tree"))
KERNELS = FORK / "aten/src/ATen/native/mps/kernels"
rng = np.random.default_rng(11)
# As one, one lane after the other, and in two other orders of lanes.
ORDERS: tuple[dict[str, Any], ...] = ({}, {"fibers": True}, {"shuffle": 1}, {"shuffle": 2})


@cache
def _library(file: str, name: str, checked: bool = False, sanitize: tuple[str, ...] = ()) -> Library:
    options = Options(include=(FORK,), checked=checked, sanitize=sanitize)
    return Library(compile_kernels(KERNELS / file, [name], options))


def _everyway(file: str, name: str, out: np.ndarray, buffers: list[Any], *launch: Any, **more: Any) -> list[np.ndarray]:
    """What `out`, one of `buffers`, holds after a run in each order of lanes, in one with checked bounds, and in two
    that the sanitizer watches."""
    results = []
    plain = [(False, (), order) for order in ORDERS]
    for checked, sanitize, order in [*plain, (True, (), {}), (False, NAMES, {}), (False, NAMES, {"shuffle": 3})]:
        before = out.copy()
        run: Any = _library(file, name, checked, sanitize).run
        run(name, buffers, *launch, **more, **order)
        results.append(out.copy())
        out[...] = before
    return results


def _uint(*values: int) -> np.ndarray:
    return np.array(values, np.uint32)


@pytest.mark.parametrize(("name", "size"), [("rms_norm", 1024), ("rms_norm", 1001), ("rms_norm_looped", 5000)])
@pytest.mark.parametrize("dtype", ["float", "half"])
def test_rms_norm(name: str, size: int, dtype: str) -> None:
    kind, tolerance = (np.float32, 1e-5) if dtype == "float" else (np.float16, 1e-2)
    x, w = rng.normal(size=(3, size)).astype(kind), rng.normal(size=size).astype(kind)
    out = np.zeros_like(x)
    threads = 256 if name == "rms_norm_looped" else (size + 127) // 128 * 32
    buffers = [x, w, out, np.array([1e-5], np.float32), _uint(size), _uint(1)]
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * w
    for result in _everyway("RMSNorm.metal", f"{name}_{dtype}", out, buffers, [3 * threads], [threads]):
        assert np.abs(result - expected).max() < tolerance


def test_tiled_matrix_product() -> None:
    a, b, out = (
        rng.normal(size=(37, 45)).astype(np.float32),
        rng.normal(size=(45, 20)).astype(np.float32),
        np.zeros((37, 20), np.float32),
    )
    strides = np.array([45, 1, 20, 1, 20, 1], np.uint64)
    sizes = np.array([37, 45, 20, 0], np.uint32)
    for result in _everyway(
        "LinearAlgebra.metal", "matmul_float", out, [a, b, out, strides, sizes], [32, 48], [16, 16]
    ):
        assert np.abs(result - a @ b).max() < 1e-4


def test_batched_integer_matrix_product() -> None:
    a = rng.integers(-(2**40), 2**40, (3, 18, 5))
    b, out = rng.integers(-9, 9, (3, 5, 17)), np.zeros((3, 18, 17), np.int64)
    # Of each tensor: its columns, rows and batches, as the host passes them.
    strides = np.array([1, 5, 90, 1, 17, 85, 1, 17, 306], np.uint64)
    sizes = np.array([18, 5, 17, 3], np.uint32)
    buffers = [a, b, out, strides, sizes]
    for result in _everyway("LinearAlgebra.metal", "naive_bmm_long", out, buffers, [32, 32, 3], [16, 16, 1]):
        assert (result == a @ b).all()


def _cholesky(matrices: np.ndarray, **order: Any) -> tuple[np.ndarray, np.ndarray]:
    """The dispatches of the host code: diagonal blocks, the blocks below them, then what is left."""
    out, count, n = matrices.copy(), len(matrices), matrices.shape[1]
    info, block = np.zeros(count, np.int32), min(32, n)
    blocks = (n + block - 1) // block
    for k in range(blocks):
        buffers = [out, info, _uint(n), _uint(block), _uint(k)]
        rest = blocks - 1 - k
        for name, width in (("factorDiagonalBlock", 1), ("applyTRSM", rest), ("applySYRK", rest * (rest + 1) // 2)):
            if width:
                library = _library("LinearAlgebra.metal", name)
                library.run(name, buffers, [32 * count, 8 * width, 1], [32, 8, 1], **order)
    return np.tril(out), info


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [7, 32, 75])
def test_cholesky(n: int, order: dict[str, Any]) -> None:
    roots = rng.normal(size=(2, n, n))
    matrices = roots @ roots.swapaxes(1, 2) + n * np.eye(n)
    factors, info = _cholesky(matrices.astype(np.float32), **order)
    assert not info.any()
    assert np.abs(factors - np.linalg.cholesky(matrices)).max() < 1e-3


def test_pivots() -> None:
    n = 9
    p = np.stack([np.eye(n, dtype=np.float32)] * 2)
    pivots = np.array([[4, 1, 8, 8, 5, 5, 6, 8, 8], list(range(n))], np.int32)
    expected = p.copy()
    for batch, row in enumerate(pivots):
        for i in range(n - 1, -1, -1):
            expected[batch, [i, row[i]]] = expected[batch, [row[i], i]]
    for result in _everyway("LinearAlgebra.metal", "applyPivots", p, [p, pivots, _uint(n), _uint(n)], [512], [256]):
        assert (result == expected).all()


def test_four_bit_weights() -> None:
    m, k, n, group = 2, 256, 8, 32
    a = rng.normal(size=(m, k)).astype(np.float32)
    codes = rng.integers(0, 16, (n, k)).astype(np.uint8)
    packed = codes[:, ::2] | codes[:, 1::2] << 4
    scales = rng.normal(size=(k // group, n, 2)).astype(np.float32)
    out, sizes = np.zeros((m, n), np.float32), _uint(m, k, n, 0)
    weight = (codes.T.reshape(k // group, group, n) - 8.0) * scales[:, None, :, 0] + scales[:, None, :, 1]
    launch = [n // 4 * 32, 1, m], [64, 1, 1]
    for result in _everyway("Quantized.metal", "int4pack_mm_32_float", out, [a, packed, scales, out, sizes], *launch):
        assert np.abs(result - a @ weight.reshape(k, n)).max() < 1e-3


def test_eight_bit_weights() -> None:
    m, k, n = 3, 64, 64
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.integers(-128, 128, (n, k)).astype(np.int8)
    scales, out = rng.uniform(0.01, 0.1, n).astype(np.float32), np.zeros((m, n), np.float32)
    expected = a.astype(np.float64) @ b.T * scales
    buffers, launch = [a, b, scales, out, _uint(m, k, n, 0)], ([n // 8 * 64, m, 1], [64, 1, 1])
    for result in _everyway("Quantized.metal", "int8pack_mv_float", out, buffers, *launch, threadgroup_bytes=[32]):
        assert np.abs(result - expected).max() < 1e-3 * np.abs(expected).max()


@pytest.mark.parametrize("m", [32, 40])
def test_tiles_of_eight_bit_weights(m: int) -> None:
    """A defect of these kernels: no barrier keeps the scales from being written where other simdgroups still read weights,
    so the result depends on how simdgroups advance."""
    name, k, n = "large_m_int8pack_mm_float", 64, 64
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.integers(-128, 128, (n, k)).astype(np.int8)
    scales, out = rng.uniform(0.01, 0.1, n).astype(np.float32), np.zeros((m, n), np.float32)
    expected = a.astype(np.float64) @ b.T * scales
    buffers, grid = [a, b, scales, out, _uint(m, k, n, 0)], [(m + 31) // 32 * 128, 1, 1]
    launch = (name, buffers, grid, [128, 1, 1])
    for checked in (False, True):
        _library("Quantized.metal", name, checked).run(*launch, threadgroup_bytes=[12288])
        assert np.abs(out - expected).max() < 1e-3 * np.abs(expected).max()
    _library("Quantized.metal", name).run(*launch, threadgroup_bytes=[12288], shuffle=1)
    assert not np.abs(out - expected).max() < 1e-3 * np.abs(expected).max()


def test_scales_of_half_a_tile_are_read_beyond_their_end() -> None:
    """A defect of these kernels: the tiled product reads 64 scales though its host code allows any multiple of 32."""
    m, k, n = 32, 32, 32
    a, b, scales, out = (np.ones(s, t) for s, t in (((m, k), "f4"), ((n, k), "i1"), (n, "f4"), ((m, n), "f4")))
    library = _library("Quantized.metal", "large_m_int8pack_mm_float", True)
    with pytest.raises(OverlayError, match=r"reads 4 bytes out of bounds; .*`scalesAndZeros` .*at byte 128") as error:
        buffers = [a, b, scales, out, _uint(m, k, n, 0)]
        library.run("large_m_int8pack_mm_float", buffers, [128, 1, 1], [128, 1, 1], threadgroup_bytes=[12288])
    assert error.value.code == "PTR107"


def test_arrays_of_buffers() -> None:
    """The fused optimizer: an argument buffer with the addresses of 32 tensors of each kind."""
    sizes = [5, 70_000, 300]
    tensors = [[rng.normal(size=s).astype(np.float32) for s in sizes] for _ in range(2)]
    addresses = np.zeros((2, 32), np.uint64)
    for row, kind in zip(addresses, tensors, strict=True):
        row[: len(sizes)] = [t.ctypes.data for t in kind]

    class Metadata(ctypes.Structure):
        _fields_ = [
            ("numels", ctypes.c_uint32 * 32),
            ("tensor", ctypes.c_uint32 * 32),
            ("chunk", ctypes.c_uint32 * 32),
        ]

    chunks = [(i, c) for i, s in enumerate(sizes) for c in range((s + 65535) // 65536)]
    metadata = Metadata()
    metadata.numels[: len(sizes)] = sizes
    metadata.tensor[: len(chunks)], metadata.chunk[: len(chunks)] = [c[0] for c in chunks], [c[1] for c in chunks]
    before = [t.copy() for t in tensors[0]]
    buffers = [addresses, metadata, np.array([0.1], np.float32), np.array([0.5], np.float32), np.array([1], np.uint8)]
    resident = [t for kind in tensors for t in kind]
    for checked in (False, True):
        for new, old in zip(tensors[0], before, strict=True):
            new[:] = old
        library = _library("FusedOptimizerOps.metal", "fused_sgd_float", checked)
        library.run("fused_sgd_float", buffers, [len(chunks) * 64], [64], resident=resident)
        for new, old, gradient in zip(tensors[0], before, tensors[1], strict=True):
            assert np.abs(new - (old - 0.5 * (0.1 * old - gradient))).max() < 1e-5


def test_atomic_accumulation() -> None:
    index = rng.integers(-10, 10, 5000)
    values, out = rng.integers(-5, 5, 5000).astype(np.float32), np.zeros(10, np.float32)
    offsets = np.zeros((5000, 4), np.uint32)
    offsets[:, 1], offsets[:, 2] = np.arange(5000) * 4, np.arange(5000) * 8
    table = np.array([index.ctypes.data], np.uint64)
    buffers = [table, np.array([10], np.int64), np.array([4], np.int64), offsets, values, out, _uint(1)]
    name = "index_put_accumulate_32bit_float_idx32"
    _library("Indexing.metal", name).run(name, buffers, [5000], [64], resident=[index])
    expected = np.zeros(10)
    np.add.at(expected, index, values)
    assert out.tolist() == expected.tolist()


def test_searching() -> None:
    x, edges = rng.normal(size=700).astype(np.float32), np.sort(rng.normal(size=50)).astype(np.float32)
    out = np.zeros(700, np.int32)
    scalars = [np.array([v], np.int64) for v in (700, 50, 700, 1, 1)]
    name = "searchsorted_float_int"
    _library("Bucketization.metal", name).run(name, [x, edges, out, *scalars], [128, 1], [128, 1])
    assert out.tolist() == np.searchsorted(edges, x, side="right").tolist()
