"""PyTorch 2.7's fused optimizers: their tensors' addresses lie in a structure of rows of 32."""

from __future__ import annotations

from functools import partial

import torch

from replayed.cases import TYPES, Case, Table, make_values, pack
from replayed.family import Family, Match, named

_FILE = "FusedOptimizerOps.metal"
_ROW, _CHUNK, _GROUP = 32, 65536, 256
_LENGTHS = (1000, 70001, 17)  # of three tensors, of which one has two chunks
_CHUNKS = ((0, 0), (1, 0), (1, 1), (2, 0))  # the tensor of each threadgroup, and which of its chunks


def _make_rows(name: str, rows: list[tuple[str, torch.dtype, float, float]]) -> Table:
    """One row of addresses for each list of tensors, which have values of a range."""
    tensors, places = [], []
    for number, (row, dtype, low, high) in enumerate(rows):
        tensors += [make_values(f"{name} {row} {n}", dtype, length, low=low, high=high) for n, length in
                    enumerate((1, 1, 1) if row == "steps" else _LENGTHS)]  # fmt: skip
        first = number * len(_LENGTHS)
        places += [*range(first, first + len(_LENGTHS)), *[-1] * (_ROW - len(_LENGTHS))]
    return Table(tuple(tensors), tuple(places))


def _metadata() -> bytes:
    rows = (_LENGTHS, [tensor for tensor, _ in _CHUNKS], [chunk for _, chunk in _CHUNKS])
    return b"".join(pack(f"{_ROW}I", *row, *[0] * (_ROW - len(row))) for row in rows)


def _launch(table: Table, *numbers: bytes) -> Case:
    return Case((table, _metadata(), *numbers), (len(_CHUNKS) * _GROUP,), (_GROUP,))


def adam(match: Match, largest: bool) -> Case:
    dtype, steps = TYPES[match["types"]], TYPES[match["steps"]]
    rows = [("parameters", dtype, -1.0, 1.0), ("gradients", dtype, -1.0, 1.0), ("means", dtype, -1.0, 1.0),
            ("squares", dtype, 0.1, 1.0)]  # fmt: skip
    rows += [("largest", dtype, 0.1, 1.0)] if largest else []
    floats = [pack("f", value) for value in (1e-2, 0.9, 0.99, 0.05, 1e-8)]
    table = _make_rows(match[0], [*rows, ("steps", steps, 3.0, 9.0)])
    return _launch(table, *floats, pack("B", int("adamw" in match[0])))


def sgd(match: Match) -> Case:
    dtype = TYPES[match["types"]]
    table = _make_rows(match[0], [("parameters", dtype, -1.0, 1.0), ("gradients", dtype, -1.0, 1.0)])
    return _launch(table, pack("f", 0.05), pack("f", 1e-2), pack("B", 1))


def sgd_with_momentum(match: Match) -> Case:
    dtype = TYPES[match["types"]]
    rows = ("parameters", "gradients", "momenta")
    table = _make_rows(match[0], [(row, dtype, -1.0, 1.0) for row in rows])
    numbers = [pack("f", value) for value in (0.05, 0.9, 1e-2, 0.1)]
    return _launch(table, *numbers, pack("B", 1), pack("B", 0), pack("B", 0))


_TYPES = "(?P<types>float|half|bfloat)"
OPTIMIZERS: tuple[Family, ...] = (
    *(
        named(f"{name}{middle}", _FILE, f"{name}{middle}_{_TYPES}_(?P<steps>float|half|bfloat)",
              partial(adam, largest=bool(middle)), (0,))
        for name in ("fused_adam", "fused_adamw") for middle in ("", "_amsgrad")
    ),
    named("fused_sgd", _FILE, f"fused_sgd_{_TYPES}", sgd, (0,)),
    named("fused_sgd_momentum", _FILE, f"fused_sgd_momentum_{_TYPES}", sgd_with_momentum, (0,)),
)  # fmt: skip
