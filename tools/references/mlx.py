"""Elementwise kernels of MLX with numpy's and torch's answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from references.case import Array, Case, Reference, make_rng, scalar

_SIZE = 1000
# Each with the range of what it is given.
_UNARY: dict[str, tuple[Reference, float, float]] = {
    "Abs": (np.abs, -4, 4),
    "ArcCos": (np.arccos, -1, 1),
    "ArcCosh": (np.arccosh, 1, 9),
    "ArcSin": (np.arcsin, -1, 1),
    "ArcSinh": (np.arcsinh, -4, 4),
    "ArcTan": (np.arctan, -4, 4),
    "ArcTanh": (np.arctanh, -0.9, 0.9),
    "Ceil": (np.ceil, -4, 4),
    "Cos": (np.cos, -4, 4),
    "Cosh": (np.cosh, -4, 4),
    "Erf": (lambda x: torch.erf(torch.from_numpy(x)).numpy(), -3, 3),
    "ErfInv": (lambda x: torch.erfinv(torch.from_numpy(x)).numpy(), -0.9, 0.9),
    "Exp": (np.exp, -4, 4),
    "Expm1": (np.expm1, -4, 4),
    "Floor": (np.floor, -4, 4),
    "Log": (np.log, 0.1, 9),
    "Log10": (np.log10, 0.1, 9),
    "Log1p": (np.log1p, -0.5, 9),
    "Log2": (np.log2, 0.1, 9),
    "Negative": (np.negative, -4, 4),
    "Round": (np.rint, -4, 4),
    "Rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 9),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -4, 4),
    "Sign": (np.sign, -4, 4),
    "Sin": (np.sin, -4, 4),
    "Sinh": (np.sinh, -4, 4),
    "Sqrt": (np.sqrt, 0, 9),
    "Square": (np.square, -4, 4),
    "Tan": (np.tan, -1.2, 1.2),
    "Tanh": (np.tanh, -4, 4),
}
# MLX reduces this one's argument with one of two terms of log(2).
_LIMITS = {"Expm1": 1e-5}
_BINARY: dict[str, Reference] = {
    "Add": np.add,
    "ArcTan2": np.arctan2,
    "Divide": np.divide,
    "LogAddExp": np.logaddexp,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Multiply": np.multiply,
    "Power": lambda a, b: np.power(a, b),
    "Remainder": np.remainder,
    "Subtract": np.subtract,
}
_COMPARISONS: dict[str, Reference] = {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "NotEqual": np.not_equal,
}
_COPIES = (
    ("float32", "float16"), ("float16", "float32"), ("float32", "int32"), ("int32", "float32"), ("int64", "int32"),
    ("uint8", "float32"), ("float32", "uint8"), ("int16", "int64"), ("bool_", "float32"),
)  # fmt: skip


def elementwise() -> Iterator[Case]:
    """Unary and binary functions, comparisons, conversions, and a choice."""
    rng = make_rng()
    size = scalar(_SIZE, np.uint32)
    buffers: tuple[Array, ...]
    for name, (function, low, high) in _UNARY.items():
        x = rng.uniform(low, high, _SIZE).astype(np.float32)
        buffers = (x, np.empty(_SIZE, np.float32), size)
        case = _make("unary", f"v_{name}float32float32", buffers, 1, function(x.astype(np.float64)))
        yield replace(case, tolerance=_LIMITS.get(name, case.tolerance))
    a, b = (rng.uniform(0.5, 4, _SIZE).astype(np.float32) for _ in range(2))
    b[::3] = a[::3]
    wide = (a.astype(np.float64), b.astype(np.float64))
    for name, function in _BINARY.items():
        buffers = (a, b, np.empty(_SIZE, np.float32), size)
        yield _make("binary", f"vv_{name}float32", buffers, 2, function(*wide))
    for name, function in _COMPARISONS.items():
        buffers = (a, b, np.empty(_SIZE, np.uint8), size)
        yield _make("binary", f"vv_{name}float32", buffers, 2, function(*wide))
    for source, target in _COPIES:
        x = rng.integers(0, 2 if source == "bool_" else 100, _SIZE).astype(source.rstrip("_"))
        buffers = (x, np.empty(_SIZE, target), size)
        yield _make("copy", f"v_copy{source}{target}", buffers, 1, x.astype(np.float64))
    chosen = rng.integers(0, 2, _SIZE).astype(np.bool_)
    yield _make(
        "ternary", "v_Selectfloat32", (chosen, a, b, np.empty(_SIZE, np.float32), size), 3, np.where(chosen, *wide)
    )
    for name, kind in (("int32", np.int32), ("float32", np.float32), ("uint8", np.uint8)):
        buffers = (scalar(3, kind), scalar(2, kind), np.empty(100, kind))
        yield Case("arange.metal", f"arange{name}", buffers, 2, 3 + 2.0 * np.arange(100), (100,), (32,))


def _make(file: str, kernel: str, buffers: tuple[Array, ...], output: int, expected: Array) -> Case:
    return Case(f"{file}.metal", kernel, buffers, output, expected, (_SIZE,), (128,), 2e-6)
