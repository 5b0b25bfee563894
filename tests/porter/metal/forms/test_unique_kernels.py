"""The kernels for distinct values against torch, over several threadgroups, slices of any size, NaN and long integers."""

from __future__ import annotations

from functools import cache
from math import prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aten_overlay.metal.launch import Library
from porter.core.dtypes import BOOL, FLOAT, FLOAT2, LONG
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.unique import Unique
from porter.recording.forms.order import compute_unique
from tests.porter.metal.compiled import compile_soon

TYPES = {torch.float32: "float", torch.int64: "long", torch.bool: "bool"}
NAN = float("nan")
Found = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@cache
def library(is_sorted: bool) -> Library:
    found = Unique("self", is_sorted, "inverse", "counts")
    kernels = found.write_kernels("tested", (FLOAT, LONG, BOOL), KernelStyle(True, False))
    names = [f"{kernel}_{type_}_int" for kernel in ("tested_marks", "tested") for type_ in TYPES.values()]
    text = f"using namespace metal;\n{''.join(kernels.helpers)}{kernels.source}"
    return compile_soon(text, *names, "tested_ends", "tested_ranks")


def longs(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def find(source: torch.Tensor, dim: int | None, group_size: int, asked: bool = True, is_sorted: bool = False) -> Found:
    """What host code does; elements are sorted by torch."""
    run, type_ = library(is_sorted).run, TYPES[source.dtype]
    slices = source.numel() if dim is None else source.size(dim)
    slice_size = 1 if dim is None else prod(source.shape[dim + 1 :])
    elements, places = source.flatten().sort(stable=True) if is_sorted else (source, longs())
    groups = -(-slices // group_size)
    marks, group_counts = torch.zeros(slices, dtype=torch.int32), torch.zeros(groups, dtype=torch.int32)
    sizes, flag = [longs(slices), longs(slice_size)], torch.tensor([asked])
    each, all_ = ((elements.numel(),), (group_size,)), ((groups * group_size,), (group_size,))
    run(f"tested_marks_{type_}_int", [marks, group_counts, elements, *sizes, longs(group_size)], *each)
    group_ends, last = longs(*[-1] * groups), torch.full((1,), -1, dtype=torch.int32)
    run("tested_ends", [group_ends, last, group_counts, longs(groups)], (group_size,), (group_size,))
    starts, inverse = longs(*[-1] * slices), longs(*[-1] * slices)
    listed = [places] if is_sorted else []
    run("tested_ranks", [starts, inverse, marks, group_ends, *listed, longs(slices), flag], *all_)
    output, counts = torch.zeros_like(elements), longs(*[-1] * slices)
    run(f"tested_{type_}_int", [output, counts, elements, starts, last, *sizes, flag], *each)
    count = int(last) + 1
    values = output.flatten()[:count] if dim is None else output.narrow(dim, 0, count)
    return values, inverse.reshape(source.shape) if dim is None else inverse, counts[:count]


def check(source: torch.Tensor, dim: int | None, group_size: int, is_sorted: bool = False) -> None:
    """Against torch; sorted, as equal elements and NaN keep their order, which torch's sort does not promise."""
    made = find(source, dim, group_size, is_sorted=is_sorted)
    if is_sorted:
        wanted = compute_unique(Unique("self", True, "", ""), source, {})
    else:
        wanted = torch.unique_consecutive(source, return_inverse=True, return_counts=True, dim=dim)
    for found, want in zip(made, wanted, strict=True):
        torch.testing.assert_close(found, want, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("group_size", [1, 8, 64])
@pytest.mark.parametrize("dtype", list(TYPES))
@pytest.mark.parametrize("is_sorted", [False, True])
def test_elements(is_sorted: bool, dtype: torch.dtype, group_size: int) -> None:
    for shape in ((), (1,), (7,), (4, 5), (3, 4, 25)):
        check(torch.randint(3, shape).to(dtype), None, group_size, is_sorted)


@pytest.mark.parametrize("group_size", [1, 4, 32])
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", [(5, 4, 3), (1, 9, 2), (40, 41, 42)])
def test_slices(shape: tuple[int, ...], dim: int, group_size: int) -> None:
    values = torch.randint(2, (shape[dim],)) * (torch.randint(2, shape).movedim(dim, -1) if shape[dim] < 6 else 1)
    check(values.expand((*shape[:dim], *shape[dim + 1 :], shape[dim])).movedim(-1, dim).contiguous(), dim, group_size)


def test_slices_that_differ_in_one_element_alone() -> None:
    source = torch.zeros(3, 6, 5)
    source[2, 3, 4] = 1
    check(source, 1, 4)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([0.0, -0.0, 1e-45, -2.0, NAN]), min_size=1, max_size=70), st.booleans())
def test_a_nan_differs_from_all_elements(elements: list[float], is_sorted: bool) -> None:
    check(torch.tensor(elements), None, 16, is_sorted)


def test_integers_that_differ_beyond_32_bits() -> None:
    for is_sorted in (False, True):
        check(torch.tensor([1, 1 + 2**32, 1 + 2**32, 2**62, 2**62 + 1, -(2**63)]), None, 4, is_sorted)


def test_ends_of_more_groups_than_threads() -> None:
    check(torch.randint(2, (2000,)), None, 4)


def test_what_no_flag_asks_for_stays() -> None:
    source = torch.randint(2, (9,))
    values, inverse, counts = find(source, None, 4, asked=False)
    assert values.equal(torch.unique_consecutive(source))
    assert bool((inverse == -1).all()) and bool((counts == -1).all())


def test_types() -> None:
    types = Unique("self", True, "inverse", "counts").list_types(tuple, False)
    assert {BOOL, LONG, FLOAT} <= set(types) and FLOAT2 not in types
