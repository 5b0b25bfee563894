"""The complex form of a power rounds where the CPU's does: what both are off by is the same."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
import torch

from aten_overlay.metal import build
from aten_overlay.metal.launch import Library
from porter.core.checkout import EMBEDDED_FORK
from porter.core.dtypes import Kind
from porter.mpsgraph.operations import find_written_form, helpers

COUNT = 20_000


@lru_cache(maxsize=1)
def library() -> Library:
    written = find_written_form("pow", Kind.COMPLEX)
    assert written is not None
    text = "\n".join((
        "#include <metal_stdlib>\n#include <c10/metal/utils.h>\nusing namespace metal;",
        *(helpers()[name] for name in written.helpers),
        "kernel void powers(device float2* out [[buffer(0)]], constant float2* z [[buffer(1)]],",
        "  constant float2* w [[buffer(2)]], uint i [[thread_position_in_grid]]) { out[i] = complex_pow(z[i], w[i]); }\n",
    ))  # fmt: skip
    return Library(build.compile_kernels(text, ["powers"], build.Options(include=(EMBEDDED_FORK,))))


def power(z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = np.zeros((z.numel(), 2), np.float32)
    library().run("powers", [out, *(torch.view_as_real(each).numpy() for each in (z, w))], [z.numel()])
    return torch.view_as_complex(torch.from_numpy(out))


def draw(least: float, most: float, seed: int) -> torch.Tensor:
    """Complex numbers of all directions whose magnitudes have exponents of 10 between two."""
    drawn = torch.Generator().manual_seed(seed)
    size = 10 ** torch.empty(COUNT).uniform_(least, most, generator=drawn)
    return torch.polar(size, torch.empty(COUNT).uniform_(-3.14, 3.14, generator=drawn))


@pytest.mark.parametrize(
    ("least", "most"),
    [(-1.0, 1.0), (-37.0, -19.0), (19.0, 38.0), (-0.1, 0.1)],
    ids=["usual", "small", "large", "near 1"],
)
def test_powers_match_the_cpu_and_float64(least: float, most: float) -> None:
    z, w = draw(least, most, 1), draw(-1.0, 0.3, 2)
    got, cpu = power(z, w), torch.pow(z, w)
    exact = torch.pow(z.to(torch.complex128), w.to(torch.complex128))
    inside = (exact.abs() < 1e37) & (exact.abs() > 1e-30)
    size = exact.abs()[inside]
    mine, theirs = ((each.to(torch.complex128) - exact).abs()[inside] / size for each in (got, cpu))
    assert float(mine.max()) <= 2 * float(theirs.max())
    close = torch.isclose(got, cpu, rtol=1.3e-6, atol=1e-5) | ~inside
    assert float((~close).double().mean()) < 2e-3


def test_zeros_infinities_and_nan_are_those_of_the_cpu() -> None:
    parts = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, torch.inf, -torch.inf, torch.nan])
    values = torch.complex(*(each.flatten() for each in torch.meshgrid(parts, parts, indexing="ij")))
    z, w = (each.flatten() for each in torch.meshgrid(values, values, indexing="ij"))
    got, cpu = power(z.contiguous(), w.contiguous()), torch.pow(z, w)
    nan = got.isnan() == cpu.isnan()
    finite = torch.isclose(got, cpu, rtol=1.3e-6, atol=1e-5) | ~(cpu.isfinite() & got.isfinite())
    assert float(nan.double().mean()) > 0.99
    assert bool(finite.all())
