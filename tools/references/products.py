"""Matrix products, quantized ones, and attention of MLX and of ggml, with numpy's answers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from references.case import Array, Case, make_rng, scalar

_OUTER, _INNER = 64, 300
_GROUP = 64  # weights that share a scale
_FLAGS = ((10, False), (100, False), (110, False), (200, False), (201, False), (202, False))
_SIZES = ("ne00", "ne02", "nb01", "nb02", "nb03", "ne12", "nb10", "nb11", "nb12", "nb13", "ne0", "ne1", "r2", "r3")
_KINDS = {"b": np.uint64, "e": np.int32, "2": np.int16, "3": np.int16}


def products() -> Iterator[Case]:
    """Of vectors, matrices, weights of few bits, and of queries, keys and values."""
    yield from _vectors()
    yield from _matrices()
    yield from _quantized()
    yield from _attention()
    yield from _ggml()


def _vectors() -> Iterator[Case]:
    rng = make_rng()
    matrix: Array = rng.standard_normal((_OUTER, _INNER)).astype(np.float32)
    none = scalar(0, np.int64)
    tail = (scalar(1, np.float32), scalar(0, np.float32), scalar(1), scalar(1), none, none, none, scalar(0))
    # Those with several simdgroups to a row wait at barriers where not all threads come, which a shuffled run refuses.
    for name, group, rows in (
        ("gemv_float32_bm4_bn1_sm1_sn32_tm4_tn4_nc0_axpby0", (32, 1, 4), 16),
        ("gemv_float32_bm8_bn1_sm1_sn32_tm4_tn4_nc0_axpby0", (32, 1, 8), 32),
    ):
        vector = rng.standard_normal((_INNER,)).astype(np.float32)
        buffers = (
            matrix, vector, np.zeros(_OUTER, np.float32), np.empty(_OUTER, np.float32), scalar(_INNER), scalar(_OUTER),
            scalar(_INNER), *tail,
        )  # fmt: skip
        grid = (_OUTER // rows * group[0], *group[1:])
        yield Case("gemv.metal", name, buffers, 3, matrix.astype(np.float64) @ vector, grid, group, 4e-6)


def _matrices() -> Iterator[Case]:
    yield from _matrix_products("steel_gemm_fused.metal", "steel_gemm_fused", np.float32, (32, 32, 16), 4e-6)
    # With the matrix operations of Metal 4.
    yield from _matrix_products("steel_gemm_fused_nax.metal", "steel_gemm_fused_nax", np.float32, (64, 64, 256), 4e-6)
    yield from _matrix_products("steel_gemm_fused_nax.metal", "steel_gemm_fused_nax", np.float16, (64, 64, 256), 1e-3)


def _matrix_products(
    file: str, form: str, kind: type[np.generic], block: tuple[int, int, int], tolerance: float
) -> Iterator[Case]:
    rng, (bm, bn, bk) = make_rng(), block
    m, n, k = 2 * bm + 6, bn + 18, 2 * bk + 13
    for a_turned, b_turned in product((False, True), repeat=2):
        a = rng.standard_normal((k, m) if a_turned else (m, k)).astype(kind)
        b = rng.standard_normal((n, k) if b_turned else (k, n)).astype(kind)
        tiles = -(-n // bn), -(-m // bm)
        sizes = np.array([m, n, k, a.shape[1], b.shape[1], n, *tiles], np.int32)
        strides = np.array([a.size, b.size, m * n], np.int64)
        rest = np.array([0, k // bk, 1, 0], np.int32)
        parameters = np.frombuffer(sizes.tobytes() + strides.tobytes() + rest.tobytes(), np.uint8)
        expected = (a.T if a_turned else a).astype(np.float64) @ (b.T if b_turned else b).astype(np.float64)
        word = np.dtype(kind).name
        name = f"{form}_{'nt'[a_turned]}{'nt'[b_turned]}_{word}_{word}_bm{bm}_bn{bn}_bk{bk}_wm2_wn2"
        grid = (tiles[0] * 32, tiles[1] * 2, 2)
        buffers = (a, b, None, np.empty((m, n), kind), parameters)
        yield Case(file, name, buffers, 3, expected, grid, (32, 2, 2), tolerance, constants=_FLAGS)


def _quantized() -> Iterator[Case]:
    rng, (rows, columns) = make_rng(), (16, 512)
    x = rng.standard_normal((2, columns)).astype(np.float32)
    buffers: tuple[Array, ...]
    for bits in (2, 4, 8):
        q = rng.integers(0, 1 << bits, (rows, columns)).astype(np.uint8)
        scales, biases = (rng.standard_normal((rows, columns // _GROUP)).astype(np.float32) for _ in range(2))
        weights = q * np.repeat(scales.astype(np.float64), _GROUP, 1) + np.repeat(biases, _GROUP, 1)
        packed = _pack(q, bits)
        name = f"float_gs_{_GROUP}_b_{bits}"
        out = np.empty((rows, columns), np.float32)
        threads = packed.size
        buffers = (packed, scales, biases, out)
        yield Case("quantized.metal", f"affine_dequantize_{name}", buffers, 3, weights, (threads, 1), (64, 1))
        for form in ("qmv_fast", "qmv"):
            buffers = (packed, scales, biases, x, np.empty((2, rows), np.float32), scalar(columns), scalar(rows))
            grid, kernel = (2 * 32, rows // 8 * 2), f"affine_{form}_{name}_batch_0"
            yield Case(
                "quantized.metal", kernel, (*buffers, *_unbatched()), 4, x.astype(np.float64) @ weights.T, grid,
                (32, 2), 4e-6,
            )  # fmt: skip


def _unbatched() -> tuple[Array, ...]:
    one, none = scalar(1), scalar(0, np.int64)
    return one, one, none, one, one, none, none, none


def _pack(q: Array, bits: int) -> Array:
    """Several values to a byte, the first in its lowest bits."""
    many = 8 // bits
    shifts = np.arange(many, dtype=np.uint8) * bits
    packed: Array = (q.reshape(-1, many) << shifts).sum(1).astype(np.uint8)
    return packed


def _attention() -> Iterator[Case]:
    rng, (heads, keys) = make_rng(), (4, 70)
    flags = (*((20 + n, False) for n in range(6)), (26, 1))
    for width in (64, 128):
        q = rng.standard_normal((heads, 1, width)).astype(np.float32)
        k, v = (rng.standard_normal((heads // 2, keys, width)).astype(np.float32) for _ in range(2))
        scores = np.repeat(k, 2, 0).astype(np.float64) @ q.transpose(0, 2, 1) / np.sqrt(width)
        powers = np.exp(scores - scores.max(1, keepdims=True))
        expected = (powers / powers.sum(1, keepdims=True)).transpose(0, 2, 1) @ np.repeat(v, 2, 0)
        strides = [scalar(n, np.uint64) for n in (keys * width, width, keys * width, width)]
        scale = scalar(width**-0.5, np.float32)
        buffers = (q, k, v, np.empty_like(q), scalar(2), scalar(keys), *strides, scale)
        yield Case(
            "scaled_dot_product_attention.metal", f"sdpa_vector_float_{width}_{width}", buffers, 3, expected,
            (heads * 1024, 1), (1024, 1), 1e-5, constants=flags,
        )  # fmt: skip


def _ggml() -> Iterator[Case]:
    rng, (m, n, k) = make_rng(), (64, 32, 128)
    x = rng.standard_normal((n, k)).astype(np.float32)
    weights = rng.standard_normal((m, k)).astype(np.float32)
    blocks = weights.reshape(m, -1, 32)
    scale = (np.abs(blocks).max(2, keepdims=True) / 7).astype(np.float16)
    small = np.rint(blocks / scale.astype(np.float32)).clip(-8, 7).astype(np.int8)
    low, high = (small[:, :, :16] + 8).astype(np.uint8), (small[:, :, 16:] + 8).astype(np.uint8)
    four = np.concatenate([scale.view(np.uint8), low | high << 4], 2)
    eight = np.concatenate([scale.view(np.uint8), small.view(np.uint8)], 2)
    made = (small * scale.astype(np.float64)).reshape(m, k)
    forms: dict[str, tuple[Array, Array]] = {
        "f32": (weights, weights),
        "f16": (weights.astype(np.float16), weights),
        "q4_0": (four, made),
        "q8_0": (eight, made),
    }
    flags = tuple((f"FC_mul_mm_{name}", v) for name, v in
                  (("bc_inp", False), ("bc_out", False), ("ne12", 1), ("ne13", 1), ("r2", 1), ("r3", 1)))  # fmt: skip
    for name, (stored, meant) in forms.items():
        row = stored.nbytes // m
        values = (k, 1, row, m * row, m * row, 1, 4, 4 * k, 4 * n * k, 4 * n * k, m, n, 1, 1)
        kind = np.dtype([(f, _KINDS[f[1]]) for f in _SIZES], align=True)
        arguments = np.array([values], kind).view(np.uint8)
        buffers = (arguments, stored, x, np.empty((n, m), np.float32))
        # Products are of halves.
        expected = x.astype(np.float16).astype(np.float64) @ meant.astype(np.float16).astype(np.float64).T
        yield Case(
            "ggml-metal.metal", f"kernel_mul_mm_{name}_f32", buffers, 3, expected, (n // 32 * 128, m // 64, 1),
            (128, 1, 1), 1e-5, (8192,), flags,
        )  # fmt: skip
