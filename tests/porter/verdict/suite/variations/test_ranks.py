"""Samples of up to five dimensions: their shapes, and that kernels that know fewer, or go over another one, differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.ranks import (
    SLOPES_BY_RANKS,
    add_dimensions,
    find_dim,
    find_rank,
    list_raised,
    narrow_sizes,
)
from tests.porter.verdict.suite.variations.planted import find_op, list_different


def keep_last(most: int, right: Callable[..., Any]) -> Callable[..., Any]:
    """Computes the first of the dimensions before the last few, and repeats that for the others."""

    def compute(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        result = right(x, *args, **kwargs)
        return result if x.ndim <= most else result[:1].expand(result.shape)

    return compute


def count_from_first(right: Callable[..., Any]) -> Callable[..., Any]:
    """Takes -4 and -5 for the first dimension but one."""
    return lambda x, dim, *args, **kwargs: right(x, 1 if dim < -3 else dim, *args, **kwargs)


def swap_strides(right: Callable[..., Any]) -> Callable[..., Any]:
    """Reads four dimensions and more by the strides of the second before those of the third."""

    def compute(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.ndim < 4:
            return right(x, *args, **kwargs)
        strides = list(x.stride())
        strides[1], strides[2] = strides[2], strides[1]
        flat = torch.cat([x.flatten()] * 8)
        return right(flat.as_strided(x.shape, strides), *args, **kwargs)

    return compute


def pack_dims(right: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps dimensions in the bits of a number of four bits."""

    def compute(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        dims = kwargs.get("dim")
        several = dims if isinstance(dims, (tuple, list)) else [dims] if dims is not None else []
        if any(dim % max(x.ndim, 1) > 3 for dim in several):
            raise KeyError("a fifth bit")
        return right(x, *args, **kwargs)

    return compute


@pytest.mark.parametrize(
    ("base", "spoil"),
    [
        ("gather", lambda right: keep_last(4, right)),
        ("cumsum", lambda right: keep_last(4, right)),
        ("index_add", lambda right: keep_last(4, right)),
        ("triu", lambda right: keep_last(3, right)),
        ("cumprod", count_from_first),
        ("log_softmax", count_from_first),
        ("flip", swap_strides),
        ("softmax", swap_strides),
        ("amax", swap_strides),
        ("sum", pack_dims),
        ("var", pack_dims),
    ],
)
def test_a_kernel_of_fewer_dimensions_differs(base: str, spoil: Callable[..., Any]) -> None:
    opinfos, op = find_op(base)
    wrong = spoil(op)
    as_they_are = (("", each) for each in opinfos.samples(op, torch.float32) if find_rank(each) < 4)
    assert not list_different(wrong, op, as_they_are)
    assert list_different(wrong, op, list_raised(opinfos, op, torch.float32))


def test_tensors_of_as_many_dimensions_get_others_with_the_input() -> None:
    sample = SampleInput(torch.randn(3, 4), args=(0, torch.tensor([2, 0]), torch.ones(2, 4)))
    shapes = {
        before: [tuple(each.shape) for each in (raised.input, *raised.args[1:])]
        for before in (True, False)
        for raised in (add_dimensions(sample, 4, before),)
    }
    assert shapes == {True: [(5, 2, 3, 4), (2,), (5, 2, 2, 4)], False: [(3, 4, 2, 5), (2,), (2, 4, 2, 5)]}


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(4, 5), st.booleans())
def test_every_part_has_the_elements_in_other_places(shape: Sequence[int], most: int, before: bool) -> None:
    sample = SampleInput(torch.arange(torch.Size(shape).numel()).view(*shape))
    raised = add_dimensions(sample, most, before).input
    new = raised.shape[: most - len(shape)] if before else raised.shape[len(shape) :]
    assert raised.ndim == most and raised.is_contiguous()
    assert len({*new, *shape}) == len(new) + len(set(shape))
    parts = raised.flatten(0, most - len(shape) - 1) if before else raised.flatten(len(shape)).movedim(-1, 0)
    assert parts[0].equal(sample.input) and all(part.flatten().sort()[0].equal(parts[0].flatten()) for part in parts)


@given(st.lists(st.integers(1, 8), min_size=1, max_size=5), st.data())
def test_sizes_differ_but_for_the_named_dimension_which_is_kept(shape: list[int], data: st.DataObject) -> None:
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    narrow = narrow_sizes(SampleInput(torch.ones(shape), args=(dim,)), 0).input
    assert narrow.shape[dim] == shape[dim] and all(0 < new <= old for new, old in zip(narrow.shape, shape, strict=True))
    if len(shape) < min(shape):
        assert len(set(narrow.shape)) == len(shape)


@pytest.mark.parametrize(
    ("base", "sample", "place"),
    [
        ("gather", SampleInput(torch.ones(2, 2), args=(1, torch.zeros(2, 2))), 0),
        ("sum", SampleInput(torch.ones(2, 2), kwargs={"dim": (0, 1)}), "dim"),
        ("sum", SampleInput(torch.ones(2, 2), kwargs={"dim": None}), None),
        ("norm", SampleInput(torch.ones(2, 2), args=(2, 1)), 1),
        ("cat", SampleInput([torch.ones(2, 2)], kwargs={"dim": 1}), "dim"),
        ("triu", SampleInput(torch.ones(2, 2), args=(1,)), None),
    ],
)
def test_the_argument_that_names_dimensions(base: str, sample: SampleInput, place: int | str | None) -> None:
    assert find_dim(find_op(base)[1], sample) == place


def test_gradients_have_five_dimensions_too() -> None:
    _, op = find_op("softmax")
    opinfos = OpInfos(Context(bases=("_softmax_backward_data",), through_backward=("softmax",)))
    varied = list(SLOPES_BY_RANKS.list_samples(opinfos, op, torch.float32))
    assert {sample.input.ndim for _, sample in varied} >= {4, 5}
    assert all(sample.input.requires_grad for _, sample in varied)
