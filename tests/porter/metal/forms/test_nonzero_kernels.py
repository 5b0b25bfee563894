"""The kernels for coordinates of nonzero elements against torch, over several threadgroups and gaps in memory."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aten_overlay.metal.launch import Library
from porter.core.dtypes import BOOL, FLOAT, FLOAT2
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.unique import Nonzero
from tests.porter.metal.compiled import compile_soon


@cache
def library() -> Library:
    kernels = Nonzero("self").write_kernels("tested", (FLOAT, BOOL), KernelStyle(True, False))
    names = [f"{kernel}_{type_}_int" for kernel in ("tested_count", "tested") for type_ in ("float", "bool")]
    return compile_soon(f"using namespace metal;\n{kernels.source}", *names)


def longs(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def find(source: torch.Tensor, group_size: int) -> torch.Tensor:
    """What host code does; the result has gaps, which stay as they are."""
    type_ = "bool" if source.dtype == torch.bool else "float"
    groups = -(-source.numel() // group_size)
    shared = [source, longs(*source.shape), longs(*source.stride()), longs(source.ndim), longs(source.numel())]
    counts = torch.full((groups,), -1, dtype=torch.int32)
    threads = (groups * group_size,), (group_size,)
    library().run(f"tested_count_{type_}_int", [counts, *shared], *threads)
    ends = counts.cumsum(0, dtype=torch.int32)
    room = torch.full((int(ends[-1]), source.ndim, 2), -1)
    made = room[..., 0]
    if made.numel():
        library().run(f"tested_{type_}_int", [made, ends, *shared, longs(*made.stride())], *threads)
    assert bool((room[..., 1] == -1).all())
    return made


@pytest.mark.parametrize("group_size", [1, 8, 64])
@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 5), (2, 3, 4, 3)])
def test_coordinates_in_order(shape: tuple[int, ...], group_size: int) -> None:
    source = torch.randn(shape).relu()
    assert find(source, group_size).equal(source.nonzero())
    assert find(source.T if len(shape) == 2 else source.flip(0) > 0, group_size).equal(
        (source.T if len(shape) == 2 else source.flip(0) > 0).nonzero()
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([0.0, -0.0, 1e-45, -2.0, float("nan")]), min_size=1, max_size=70))
def test_what_is_not_zero(elements: list[float]) -> None:
    source = torch.tensor(elements)
    assert find(source, 16).equal(source.nonzero())


def test_types() -> None:
    types = Nonzero("self").list_types(tuple, False)
    assert {BOOL, FLOAT} <= set(types) and FLOAT2 not in types
