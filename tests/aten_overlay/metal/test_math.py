"""Elementary functions against float64: within half an ulp and a little, at special values too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mpmath
import numpy as np
import pytest

from aten_overlay.metal.build import QUICK, Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library

SOURCE = Path(__file__).with_name("math.metal")
Function = Callable[..., np.ndarray]
_RANDOM = np.random.default_rng(0)
_BITS = _RANDOM.integers(0, 2**32, 1 << 15, dtype=np.uint32).view(np.float32)
_SPECIAL = np.array(
    """0 -0.0 1 -1 2 0.5 -0.5 inf -inf nan 1e-45 -1e-45 1.2e-38 3.4e38 88.7 89 -87.4 -103.9 -104 128 -150 3.1415927
    1.5707964 1e10 1e22 6.8e36 2147483648 8388608.5 1e-3 20""".split(),  # noqa: SIM905
    np.float32,
)


def _by_mpmath(function: Callable[[mpmath.mpf], mpmath.mpf]) -> Function:
    return np.vectorize(lambda v: float(function(mpmath.mpf(float(v)))) if np.isfinite(v) else np.nan)


UNARY: dict[str, tuple[Function, float, float]] = {
    "exp": (np.exp, -105, 90),
    "exp2": (np.exp2, -150, 130),
    "exp10": (lambda x: np.power(10.0, x), -46, 39),
    "log": (np.log, 0, 4),
    "log2": (np.log2, 0, 4),
    "log10": (np.log10, 0, 4),
    "sin": (np.sin, -100, 100),
    "cos": (np.cos, -100, 100),
    "tan": (np.tan, -100, 100),
    "sinpi": (_by_mpmath(mpmath.sinpi), -5, 5),
    "cospi": (_by_mpmath(mpmath.cospi), -5, 5),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -4, 4),
    "sinh": (np.sinh, -90, 90),
    "cosh": (np.cosh, -90, 90),
    "tanh": (np.tanh, -10, 10),
    "asinh": (np.arcsinh, -4, 4),
    "acosh": (np.arccosh, 1, 5),
    "atanh": (np.arctanh, -1, 1),
    "sqrt": (np.sqrt, 0, 10),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 10),
    "floor": (np.floor, -5, 5),
    "ceil": (np.ceil, -5, 5),
    "trunc": (np.trunc, -5, 5),
    "rint": (np.rint, -5, 5),
    "fabs": (np.abs, -5, 5),
}
BINARY: dict[str, Function] = {
    "atan2": np.arctan2,
    "pow": np.power,
    "fmod": np.fmod,
    "copysign": np.copysign,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "divide": np.divide,
}


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(compile_kernels(SOURCE, host_names(SOURCE)))


def _ulps(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest distance in units of the last place of float32; infinite where one is a NaN and the other is not."""
    rounded = expected.astype(np.float32)
    assert (np.isnan(got) == np.isnan(rounded)).all()
    assert (np.isinf(got) == np.isinf(rounded)).all()
    finite = np.isfinite(rounded)
    unit = np.maximum(np.spacing(np.abs(rounded[finite])).astype(np.float64), 2.0**-149)
    return float((np.abs(got[finite].astype(np.float64) - expected[finite]) / unit).max())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", UNARY)
def test_unary(library: Library, name: str) -> None:
    function, low, high = UNARY[name]
    count = 1 << (8 if name.endswith("pi") else 15)
    x = np.concatenate([_BITS[:count], _SPECIAL, np.linspace(low, high, count).astype(np.float32)])
    out = np.empty_like(x)
    library.run(f"{name}_float", [x, out], [x.size])
    assert _ulps(out, function(x.astype(np.float64))) < 0.501


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["exp", "tanh"])
def test_what_many_lanes_share_is_as_exact_for_one(name: str) -> None:
    function, low, high = UNARY[name]
    x = np.concatenate([_BITS, _SPECIAL, np.linspace(low, high, 1 << 15).astype(np.float32)])
    out = np.empty_like(x)
    quick = Options(optimization=QUICK)
    Library(compile_kernels(SOURCE, [f"{name}_float"], quick)).run(f"{name}_float", [x, out], [x.size])
    assert _ulps(out, function(x.astype(np.float64))) < 0.501
    assert np.array_equal(np.signbit(out[x == 0]), np.signbit(function(x[x == 0])))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_fast_exp_is_within_an_ulp(library: Library) -> None:
    x = np.concatenate([_BITS, _SPECIAL, np.linspace(-105, 90, 1 << 16).astype(np.float32)])
    out = np.empty_like(x)
    library.run("fast_exp_float", [x, out], [x.size])
    assert _ulps(out, np.exp(x.astype(np.float64))) < 1


def test_fast_exp_takes_what_exp_takes(library: Library) -> None:
    x, out = np.array([0.5, -1, 2], np.float32), np.empty(4, np.float32)
    library.run("fast_exp_forms", [x, out], [1])
    assert np.allclose(out, np.exp([0.5, -1, 2, 0.5]) * 2, rtol=1e-2)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BINARY)
def test_binary(library: Library, name: str) -> None:
    x = np.concatenate(
        [_BITS, np.repeat(_SPECIAL, _SPECIAL.size), np.abs(_RANDOM.normal(size=4096)).astype(np.float32)]
    )
    y = np.concatenate(
        [_BITS[::-1], np.tile(_SPECIAL, _SPECIAL.size), (_RANDOM.normal(size=4096) * 20).astype(np.float32)]
    )
    out = np.empty_like(x)
    library.run(f"{name}_float", [x, y, out], [x.size])
    assert _ulps(out, BINARY[name](x.astype(np.float64), y.astype(np.float64))) < 0.501


@pytest.mark.parametrize(("name", "function"), [("round", np.trunc), ("sign", np.sign)])
def test_functions_with_rules_of_their_own(library: Library, name: str, function: Function) -> None:
    x = np.array([-2.5, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, 1e30], np.float32)
    out = np.empty_like(x)
    library.run(f"{name}_float", [x, out], [x.size])
    expected = function(x + np.copysign(0.5, x).astype(np.float32)) if name == "round" else function(x)
    assert out.tolist() == expected.tolist()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "sqrt", "asin"])
def test_every_half_is_the_rounded_float(library: Library, name: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    out = np.empty_like(x)
    library.run(f"{name}_half", [x, out], [x.size])
    expected = UNARY[name][0](x.astype(np.float64)).astype(np.float32).astype(np.float16)
    assert np.array_equal(out, expected, equal_nan=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("target", [-np.inf, np.inf])
def test_nextafter_steps_in_the_types_own_precision(library: Library, target: float) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    x = x[np.isfinite(x)]
    out, towards = np.empty_like(x), np.full_like(x, target)
    library.run("nextafter_half", [x, towards, out], [x.size])
    assert np.array_equal(out, np.nextafter(x, towards))
