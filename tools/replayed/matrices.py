"""PyTorch 2.7's kernels of factorizations and of quantized matrices."""

from __future__ import annotations

import torch

from replayed.cases import TYPES, Case, make_output, make_values, pack
from replayed.family import Family, Match, named

_LINEAR, _QUANTIZED = "LinearAlgebra.metal", "Quantized.metal"
_BATCH, _SIDE, _BLOCK = 2, 96, 32
_NOTHING = bytes(4)  # at an index that the kernel does not have
_GROUP = (32, 8)


def _make_symmetric(name: str) -> torch.Tensor:
    """Matrices that Cholesky's factorization takes."""
    x = make_values(name, torch.float32, _BATCH, _SIDE, _SIDE, low=-1, high=1)
    return (x @ x.mT / _SIDE + 2 * torch.eye(_SIDE)).contiguous()


def _numbers(block: int = 0) -> tuple[bytes, ...]:
    return pack("I", _SIDE), pack("I", _BLOCK), pack("I", block)


def factor(match: Match) -> Case:
    info = torch.zeros(_BATCH, dtype=torch.int32)
    return Case((_make_symmetric(match[0]), info, *_numbers(1)), (_BATCH * 32, 8), _GROUP)


def solve(match: Match) -> Case:
    return Case((_make_symmetric(match[0]), _NOTHING, *_numbers()), (_BATCH * 32, 2 * 8), _GROUP)


def update(match: Match) -> Case:
    return Case((_make_symmetric(match[0]), _NOTHING, *_numbers()), (_BATCH * 32, 3 * 8), _GROUP)


def swap(match: Match) -> Case:
    x = make_values(match[0], torch.float32, _BATCH, _SIDE, _SIDE)
    pivots = make_values("pivots", torch.int32, _BATCH, _SIDE, low=0, high=_SIDE - 1)
    return Case((x, pivots, pack("I", _SIDE), pack("I", _SIDE)), (_BATCH * 256, 1), (256, 1))


def pack_weights(match: Match) -> Case:
    rows, columns = 48, 24
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-(1 << 31), (1 << 31) - 1, (rows, columns), generator=generator).to(torch.int32)
    args = (x, make_output(torch.uint8, rows, 4 * columns), pack("2I", rows, columns))
    return Case(args, (rows, columns), (64, 1))


def multiply_packed(match: Match) -> Case:
    """Weights of 4 bits, in groups that share a scale and a zero."""
    dtype, group = TYPES[match["types"]], int(match["group"])
    m, k, n = 3, 512, 32
    x = make_values(match[0], dtype, m, k, low=0, high=1)
    weights = make_values("weights", torch.uint8, n, k // 2, low=0, high=255)
    scales = make_values("scales", dtype, k // group, n, 2, low=0, high=0.01)
    args = (x, weights, scales, make_output(dtype, m, n), pack("4I", m, k, n, 0))
    return Case(args, (n // 4 * 32, 1, m), (64, 1, 1))


def _multiply_bytes(match: Match, m: int, k: int, n: int) -> tuple[torch.Tensor | bytes, ...]:
    dtype = TYPES[match["types"]]
    x = make_values(match[0], dtype, m, k, low=0, high=1)
    weights = make_values("weights", torch.int8, n, k, low=-127, high=127)
    scales = make_values("scales", dtype, n, low=0.001, high=0.002)
    return x, weights, scales, make_output(dtype, m, n), pack("4I", m, k, n, 0)


def multiply_vector(match: Match) -> Case:
    m, n = 2, 40
    return Case(_multiply_bytes(match, m, 256, n), (n // 8 * 64, m, 1), (64, 1, 1), shared=32)


def multiply_matrix(match: Match) -> Case:
    m, n = 64, 128
    return Case(_multiply_bytes(match, m, 64, n), (m // 32 * 128, n // 64, 1), (128, 1, 1), shared=12288)


_FLOATS = "(?P<types>float|half|bfloat)"
MATRICES: tuple[Family, ...] = (
    named("factorDiagonalBlock", _LINEAR, "factorDiagonalBlock", factor),
    named("applyTRSM", _LINEAR, "applyTRSM", solve),
    named("applySYRK", _LINEAR, "applySYRK", update),
    named("applyPivots", _LINEAR, "applyPivots", swap),
    named("weight_to_int4pack", _QUANTIZED, "weight_to_int4pack", pack_weights),
    named("int4pack_mm", _QUANTIZED, rf"int4pack_mm_(?P<group>\d+)_{_FLOATS}", multiply_packed),
    named("int8pack_mv", _QUANTIZED, f"int8pack_mv_{_FLOATS}", multiply_vector),
    named("large_m_int8pack_mm", _QUANTIZED, f"large_m_int8pack_mm_{_FLOATS}", multiply_matrix),
)
