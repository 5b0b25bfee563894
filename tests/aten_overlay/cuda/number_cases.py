"""Cases of mathematical functions, conversions and simdgroup matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from tests.aten_overlay.cuda.case import Array, Case
from tests.aten_overlay.cuda.lane_cases import LANES


def to_bfloat(x: Array) -> Array:
    """The bits of bfloats, rounded to nearest even."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat(bits: Array) -> Array:
    """The floats that bfloats are."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def matrix_cases() -> Iterator[Case]:
    generator = np.random.default_rng(3)
    a, b = (generator.integers(-9, 10, (8, 8)).astype(np.float32) for _ in range(2))
    whole = a @ b.T + 1
    forms: dict[str, Callable[[Array], Array]] = {
        "float": lambda x: x,
        "half": lambda x: x.astype(np.float16),
        "bfloat": to_bfloat,
    }
    out = np.zeros(64, np.float32)
    for metal, form in forms.items():
        buffers = (form(a).reshape(-1), form(b).reshape(-1), out)
        yield Case(
            f"product of {metal}", "matrices.metal", f"product_{metal}", buffers, {2: whole.reshape(-1)}, (32,), (32,)
        )
    buffers = (a.reshape(-1), b.reshape(-1), np.zeros(128, np.float32))
    twice = (2 * a) @ b
    both = np.concatenate([(twice @ twice).reshape(-1), twice.reshape(-1)])
    yield Case("changed", "matrices.metal", "changed", buffers, {2: both}, (32,), (32,))
    row = np.array([(k // 4 & 4) + k // 2 % 4 for k in range(LANES)])
    column = np.array([(k // 4 & 2) * 2 + k % 2 * 2 for k in range(LANES)])
    pairs = np.stack([a[row, column], a[row, column + 1]], 1).reshape(-1)
    yield Case("layout", "matrices.metal", "layout", (a.reshape(-1), out), {1: pairs}, (32,), (32,))
    yield Case(
        "diagonal",
        "matrices.metal",
        "diagonal",
        (out,),
        {0: (3 * np.eye(8, dtype=np.float32)).reshape(-1)},
        (32,),
        (32,),
    )
    a, b = (generator.integers(-9, 10, (32, 32)).astype(np.float32) for _ in range(2))
    buffers = (a.reshape(-1), b.reshape(-1), np.zeros(1024, np.float32))
    yield Case("tiled", "matrices.metal", "tiled", buffers, {2: (a @ b).reshape(-1)}, (128,), (128,))


_ALL = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        np.inf,
        -np.inf,
        np.nan,
        1e-40,
        1e-30,
        -1e30,
        3.4e38,
        88.0,
        -87.0,
        100.25,
    ]
)
_WIDE = (-80.0, 80.0)
_UNARY: dict[str, tuple[Callable[[Array], Array], tuple[float, float], float]] = {
    "exp": (np.exp, _WIDE, 2), "exp2": (np.exp2, _WIDE, 2), "exp10": (lambda x: 10.0**x, (-30, 30), 2),
    "log": (np.log, (0, 1e4), 2), "log2": (np.log2, (0, 1e4), 2), "log10": (np.log10, (0, 1e4), 3),
    "sin": (np.sin, (-1e4, 1e4), 2), "cos": (np.cos, (-1e4, 1e4), 2), "tan": (np.tan, (-100, 100), 4),
    "sinpi": (lambda x: np.where(np.isinf(x), np.nan, np.sin(np.pi * np.fmod(x, 2))), (-1.0, 1.0), 2),
    "cospi": (lambda x: np.where(np.isinf(x), np.nan, np.cos(np.pi * np.fmod(x, 2))), (-0.4, 0.4), 2),
    "asin": (np.arcsin, (-1, 1), 3), "acos": (np.arccos, (-1, 1), 3), "atan": (np.arctan, _WIDE, 2),
    "sinh": (np.sinh, _WIDE, 3), "cosh": (np.cosh, _WIDE, 3), "tanh": (np.tanh, (-9, 9), 2),
    "asinh": (np.arcsinh, _WIDE, 4), "acosh": (np.arccosh, (1, 100), 4), "atanh": (np.arctanh, (-1, 1), 4),
    "sqrt": (np.sqrt, (0, 1e4), 0), "rsqrt": (lambda x: 1 / np.sqrt(x), (1e-3, 1e4), 2),
    "fabs": (np.abs, _WIDE, 0), "floor": (np.floor, _WIDE, 0), "ceil": (np.ceil, _WIDE, 0), "trunc": (np.trunc, _WIDE, 0),
    "round": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), _WIDE, 0), "rint": (np.rint, _WIDE, 0), "sign": (lambda x: np.nan_to_num(np.sign(x), nan=0.0), _WIDE, 0),
    "fract": (lambda x: np.where(np.isinf(x), 0.0, np.minimum(x - np.floor(x), 1 - 2.0**-24)), _WIDE, 0),
}  # fmt: skip
# Multiples of pi/2 are no floats: at whole numbers these are exact.
_WITHOUT_SPECIAL = ("sinpi", "cospi", "fract")
_BINARY: dict[str, tuple[Callable[[Array, Array], Array], float]] = {
    "pow": (np.power, 8), "atan2": (np.arctan2, 3), "fmod": (np.fmod, 0), "fmin": (np.fmin, 0), "fmax": (np.fmax, 0),
    "copysign": (np.copysign, 0), "divide": (np.divide, 0),
    "fdim": (lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x > y, x - y, 0.0)), 0),
}  # fmt: skip


def number_cases() -> Iterator[Case]:
    generator = np.random.default_rng(4)
    file, count = "numbers.metal", 500
    with np.errstate(all="ignore"):
        for name, (f, (low, high), ulps) in _UNARY.items():
            special = np.array([]) if name in _WITHOUT_SPECIAL else _ALL
            x = np.concatenate([special, generator.uniform(low, high, count)]).astype(np.float32)
            expected = f(x.astype(np.float64)).astype(np.float32)
            yield Case(name, file, f"{name}_float", (x, np.zeros_like(x)), {1: expected}, (len(x),), (64,), ulps)
        for name, (g, ulps) in _BINARY.items():
            pairs = generator.uniform(-10, 10, (2, count))
            x, y = np.concatenate([np.array(list(product(_ALL[:12], _ALL[:12]))).T, pairs], 1).astype(np.float32)
            expected = g(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
            yield Case(name, file, f"{name}_float", (x, y, np.zeros_like(x)), {2: expected}, (len(x),), (64,), ulps)
        yield Case(
            "nextafter", file, "nextafter_float", (x, y, np.zeros_like(x)), {2: np.nextafter(x, y)}, (len(x),), (64,)
        )
        x = generator.uniform(-1e6, 1e6, count).astype(np.float32)
        parts = np.stack([x, x, np.frexp(x)[1], np.frexp(x)[1] - 1], 1).astype(np.float32).reshape(-1)
        yield Case("parts", file, "parts_float", (x, np.zeros_like(parts)), {1: parts}, (count,), (64,))
        yield from _conversions(generator, file, count)


def _conversions(generator: np.random.Generator, file: str, count: int) -> Iterator[Case]:
    x = np.concatenate([_ALL[~np.isnan(_ALL)], generator.uniform(-70000, 70000, count)]).astype(np.float32)
    half, small = generator.uniform(-100, 100, (2, count)).astype(np.float16)
    whole = generator.integers(-(2**31), 2**31, count).astype(np.int32)
    bits = to_bfloat(generator.uniform(-100, 100, count))
    others = to_bfloat(generator.uniform(-100, 100, count))
    unsigned = generator.integers(0, 2**63, count).astype(np.uint64)
    inside = generator.uniform(0, 255, count).astype(np.float32)
    fused = (half.astype(np.float64) * small + small).astype(np.float16)
    rows: list[tuple[str, tuple[Array, ...], Array]] = [
        ("float_to_half", (x,), x.astype(np.float16)),
        ("float_to_bfloat", (x,), to_bfloat(x)),
        ("half_to_float", (half,), half.astype(np.float32)),
        ("bfloat_to_float", (bits,), from_bfloat(bits)),
        ("int_to_half", (whole // 40000,), (whole // 40000).astype(np.float16)),
        ("int_to_bfloat", (whole,), to_bfloat(whole.astype(np.float32))),
        ("float_to_int", (inside * 1000,), (inside * 1000).astype(np.int32)),
        ("float_to_uchar", (inside,), inside.astype(np.uint8)),
        ("int_to_float", (whole,), whole.astype(np.float32)),
        ("ulong_to_float", (unsigned,), unsigned.astype(np.float32)),
        ("bfloat_sum", (bits, others), to_bfloat(from_bfloat(bits) + from_bfloat(others))),
        ("half_fused", (half, small), fused),
    ]
    for name, given, expected in rows:
        buffers = (*given, np.zeros_like(expected))
        yield Case(name, file, name, buffers, {len(given): expected}, (len(expected),), (96,))
