"""The embedded fork's Metal, compiled for the host: every kernel, its operators and shared functions against torch."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_int64, c_uint32
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from aten_overlay.metal import build
from aten_overlay.metal.launch import Library
from porter.core.checkout import EMBEDDED_FORK
from porter.core.dtypes import BY_METAL
from porter.core.layout import KERNELS

OPTIONS = build.Options(include=(EMBEDDED_FORK,), optimization=build.QUICK)
FILES = tuple(sorted((EMBEDDED_FORK / KERNELS).glob("*.metal")))
FUNCTIONS = Path(__file__).with_name("functions.metal")
INTEGERS = ("long", "int", "short", "char", "uchar")
INTO_FLOAT = (*INTEGERS, "bool")
FLOATING = ("float", "half", "bfloat")
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -5.0, 4.0, 1e-20, 3e38, float("inf"), -float("inf"), float("nan"))

Tensor = Any


def torch_dtype(metal: str) -> Any:
    return getattr(torch, BY_METAL[metal].torch)


@lru_cache(maxsize=8)
def library(path: Path) -> Library:
    return Library(build.compile_kernels(path, build.host_names(path, OPTIONS), OPTIONS))


def uints(*values: int) -> Any:
    return (c_uint32 * 4)(*values)


def longs(values: list[int]) -> Any:
    return (c_int64 * len(values))(*values)


def byte_strides(t: Tensor) -> Any:
    """Strides in bytes with the fastest dimension first, as TensorIterator gives them."""
    return longs([s * t.element_size() for s in reversed(t.stride())])


def values(metal: str, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(len(metal))
    if BY_METAL[metal].kind.value == "complex":
        return torch.view_as_complex(torch.randn(*shape, 2, generator=generator)).to(torch_dtype(metal))
    drawn = torch.randn(*shape, generator=generator) * 4
    return (drawn.abs() if metal == "uchar" else drawn).to(torch_dtype(metal))


def ulps(actual: Tensor, exact: Tensor) -> float:
    """The largest error in units in the last place; NaN and infinities have to be where they belong."""
    rounded = exact.to(torch.float32)
    assert torch.equal(actual.isnan(), rounded.isnan())
    assert torch.equal(actual[rounded.isinf()], rounded[rounded.isinf()])
    finite = rounded.isfinite()
    size = rounded[finite].abs()
    step = (torch.nextafter(size, torch.full_like(size, float("inf"))) - size).double()
    return float(((actual[finite].double() - exact[finite]).abs() / step).max())


def test_every_kernel_compiles() -> None:
    assert {path.name: len(library(path).names) for path in FILES} == {
        "BinaryKernel.metal": 9 * 4 + 10 * 2,
        "UnaryKernel.metal": 10 * 5,
    }


@pytest.mark.parametrize("metal", [*FLOATING, *INTO_FLOAT, "float2"])
def test_unary_flavors(metal: str) -> None:
    kernels = library(FILES[1])
    out = metal if metal in (*FLOATING, "float2") else "float"
    x = values(metal, 7, 9)
    expected = torch.exp(x)
    flat = torch.empty_like(expected)
    kernels.run(f"exp_dense_{out}_{metal}", [flat, x, c_uint32(63)], [16])
    torch.testing.assert_close(flat, expected)
    kernels.run(f"exp_dense_scalar_{out}_{metal}", [flat.zero_(), x], [63])
    torch.testing.assert_close(flat, expected)

    view, turned = x.t(), torch.empty(9, 7, dtype=expected.dtype)
    sizes = longs([7, 9])
    kernels.run(
        f"exp_strided_{out}_{metal}",
        [turned, view, sizes, byte_strides(view), byte_strides(turned), c_uint32(2)],
        [7, 9],
    )
    torch.testing.assert_close(turned, expected.t())


@pytest.mark.parametrize("out", ["float", "half", "float2"])
def test_unary_castout(out: str) -> None:
    code = {"float": 6, "half": 5, "float2": 9}[out]
    x = values("float", 5, 6)
    expected = torch.exp(x).to(torch_dtype(out))
    flat = torch.empty_like(expected)
    library(FILES[1]).run("exp_dense_castout_float", [flat, x, uints(flat.element_size(), code)], [30])
    torch.testing.assert_close(flat, expected)

    view, turned = x.t(), torch.empty(6, 5, dtype=expected.dtype)
    library(FILES[1]).run(
        "exp_strided_castout_float",
        [turned, view, longs([5, 6]), byte_strides(view), byte_strides(turned), uints(2, code)],
        [5, 6],
    )
    torch.testing.assert_close(turned, expected.t())


@pytest.mark.parametrize("metal", [*FLOATING, *INTO_FLOAT])
def test_binary_flavors(metal: str) -> None:
    out = metal if metal in FLOATING else "float"
    a, b = values(metal, 6, 4), values(metal, 6, 4).flip(0).contiguous()
    expected = torch.copysign(a, b)
    flat = torch.empty_like(expected)
    library(FILES[0]).run(f"copysign_dense_{out}_{metal}", [flat, a, b], [24])
    torch.testing.assert_close(flat, expected)

    row = b[:1].expand(6, 4)
    strides = [byte_strides(t) for t in (flat, a, row)]
    arguments = [flat.zero_(), a, row, longs([4, 6]), *strides, uints(2)]
    library(FILES[0]).run(f"copysign_strided_{out}_{metal}", arguments, [24])
    torch.testing.assert_close(flat, torch.copysign(a, row))


def test_binary_cast() -> None:
    a, b = values("half", 12), values("long", 12)
    expected = torch.copysign(a.float(), b.float())
    out = torch.empty_like(expected)
    library(FILES[0]).run("copysign_dense_cast_float_float", [out, a, b, uints(2, 8, 5, 4)], [12])
    torch.testing.assert_close(out, expected)
    strides = [byte_strides(t) for t in (out, a, b)]
    arguments = [out.zero_(), a, b, longs([12]), *strides, uints(1, 5, 4, 6)]
    library(FILES[0]).run("copysign_strided_cast_float_float", arguments, [12])
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("metal", [*FLOATING, *INTEGERS, "float2"])
def test_alpha(metal: str) -> None:
    alpha_type = metal if metal in (*INTEGERS, "float2") else "float"
    a, b = values(metal, 12), values(metal, 12).flip(0).contiguous()
    alpha = torch.full((2,), 3, dtype=torch_dtype(alpha_type))
    out = torch.empty_like(a)
    library(FILES[0]).run(f"sub_alpha_dense_{metal}_{metal}_{alpha_type}", [out, a, b, alpha], [12])
    exact = torch.sub(a.double(), b.double(), alpha=3).to(a.dtype) if metal in FLOATING else torch.sub(a, b, alpha=3)
    torch.testing.assert_close(out, exact)


@pytest.mark.parametrize(("name", "limit"), [("erf", 2.5), ("expm1", 2.0), ("log1p", 1.5)])
def test_unary_functions(name: str, limit: float) -> None:
    kernel = "expm1f" if name == "expm1" else name
    generator = torch.Generator().manual_seed(0)
    spread = [torch.randn(20_000, generator=generator) * scale for scale in (1e-3, 0.1, 1, 3, 20)]
    x = torch.cat([*spread, torch.tensor(SPECIAL)])
    out = torch.empty_like(x)
    library(FUNCTIONS).run(f"{kernel}_dense_scalar_float_float", [out, x], [x.numel()])
    assert ulps(out, getattr(torch, name)(x.double())) < limit


def test_hypot() -> None:
    grid = torch.tensor(list(product(SPECIAL, SPECIAL)))
    generator = torch.Generator().manual_seed(0)
    spread = [torch.randn(20_000, 2, generator=generator) * scale for scale in (1, 1e30, 1e-30)]
    a, b = (t.contiguous() for t in torch.cat([*spread, grid]).unbind(1))
    out = torch.empty_like(a)
    library(FUNCTIONS).run("hypot_dense_float_float", [out, a, b], [a.numel()])
    assert ulps(out, torch.hypot(a.double(), b.double())) < 2.5


DIVIDING: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "floor_divide": torch.floor_divide,
    "fmod": torch.fmod,
    "remainder": torch.remainder,
    "max": torch.maximum,
    "min": torch.minimum,
}


@pytest.mark.parametrize("metal", ["float", *INTEGERS])
@pytest.mark.parametrize("name", DIVIDING)
def test_binary_functions(name: str, metal: str) -> None:
    dtype = torch_dtype(metal)
    generator = torch.Generator().manual_seed(0)
    if metal == "float":
        grid = torch.tensor(list(product(SPECIAL, SPECIAL)))
        a, b = (t.contiguous() for t in torch.cat([torch.randn(20_000, 2, generator=generator) * 9, grid]).unbind(1))
    else:
        limits = torch.iinfo(dtype)
        a = torch.randint(limits.min // 2, limits.max // 2, (20_000,), generator=generator).to(dtype)
        b = torch.randint(-20 if limits.min else 1, 20, (20_000,), generator=generator)
        b = torch.where(b == 0, 3, b).to(dtype)
    out = torch.empty_like(a)
    library(FUNCTIONS).run(f"{name}_dense_{metal}_{metal}", [out, a, b], [a.numel()])
    # torch's vectorised float fmod gives NaN for quotients above 2^128; in double the same remainder is exact
    wide = metal == "float" and name in ("fmod", "remainder")
    expected = DIVIDING[name](a.double(), b.double()).float() if wide else DIVIDING[name](a, b)
    torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", ["mul", "div"])
def test_complex_functions(name: str) -> None:
    a, b = values("float2", 500), values("float2", 500).flip(0).contiguous()
    out = torch.empty_like(a)
    library(FUNCTIONS).run(f"{name}_dense_float2_float2", [out, a, b], [500])
    torch.testing.assert_close(out, getattr(torch, name)(a, b))
