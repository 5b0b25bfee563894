"""Samples of other sizes, and what goes with these."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite import results
from porter.verdict.suite.resizing import (
    Tie,
    Way,
    count_reduced,
    find_way,
    lengthen_dimensions,
    resize_along,
    shuffle_values,
    spread_values,
)
from tests.porter.verdict.suite.variations.shown import find_op


@pytest.mark.parametrize(
    ("tie", "shapes"),
    [
        (Tie.FIRST, [(7, 3), (7, 3), (3,), (7, 2)]),
        (Tie.LAST, [(7, 3), (7, 3), (3,), (7, 2)]),
        (Tie.EQUAL, [(7, 3), (7, 3), (3,), (7, 2)]),
        (Tie.NONE, [(7, 3), (7, 3), (3,), (5, 2)]),
    ],
)
def test_sizes_of_other_tensors_go_with_the_input_s(tie: Tie, shapes: list[tuple[int, ...]]) -> None:
    sample = SampleInput(torch.rand(5, 3), args=(torch.rand(5, 3), torch.rand(3)), kwargs={"other": torch.rand(5, 2)})
    resized = Way(tie, changes_lists=False, spreads_indices=False).resize(sample, {0: 7})
    tensors = [resized.input, *resized.args, resized.kwargs["other"]]
    assert [tuple(tensor.shape) for tensor in tensors] == shapes


def test_of_fewer_dimensions_the_first_or_the_last_go_with_the_input_s() -> None:
    sample = SampleInput(torch.rand(4, 4, 3), args=(torch.rand(4, 3), torch.rand(4)))
    shapes = {
        tie: [tuple(each.shape) for each in Way(tie, False, False).resize(sample, {0: 7}).args]
        for tie in (Tie.FIRST, Tie.LAST, Tie.EQUAL)
    }
    assert shapes == {Tie.FIRST: [(7, 3), (7,)], Tie.LAST: [(4, 3), (4,)], Tie.EQUAL: [(7, 3), (7,)]}


def test_a_list_of_the_last_sizes_goes_with_them() -> None:
    sample = SampleInput(torch.rand(2, 3, 5), args=((3, 5), [7]))
    resized = Way(Tie.LAST, changes_lists=True, spreads_indices=False).resize(sample, {2: 11})
    assert resized.args == ((3, 11), [7]) and resized.input.shape == (2, 3, 11)
    kept = Way(Tie.LAST, changes_lists=False, spreads_indices=False).resize(sample, {2: 11})
    assert kept.args == ((3, 5), [7])


def test_the_cpu_says_what_goes_with_a_size() -> None:
    op = find_op("nn.functional.layer_norm")
    sample = SampleInput(torch.rand(4, 4), args=((4,), torch.rand(4), torch.rand(4)))
    long = lengthen_dimensions(op, sample, {1: 1001})
    assert long is not None and long.input.shape == (3, 1004) and long.args[0] == (1004,)
    assert [tensor.shape for tensor in long.args[1:]] == [(1004,), (1004,)]
    rows = lengthen_dimensions(op, sample, {0: 1001})
    assert rows is not None and rows.input.shape == (1004, 3) and rows.args[0] == (3,)


def test_sizes_that_the_cpu_refuses_have_no_way() -> None:
    sample = SampleInput(torch.rand(4, 4))
    assert find_way(find_op("trace"), sample, [0]) is not None
    assert find_way(find_op("linalg.inv"), sample, [0]) is None
    assert lengthen_dimensions(find_op("outer"), SampleInput(torch.rand(4), args=(torch.rand(4),)), {0: 70_001}) is None


def test_indices_reach_as_far_as_a_long_dimension() -> None:
    op = find_op("gather")
    sample = SampleInput(torch.rand(4, 2), args=(0, torch.zeros(3, 2, dtype=torch.int64)))
    long = lengthen_dimensions(op, sample, {0: 70_001})
    assert long is not None and int(long.args[1].max()) >= 1 << 16
    assert all(len(column.unique()) == len(column) for column in long.args[1].t())


@given(st.integers(2, 3000), st.floats(-100, 100, width=32), st.floats(-100, 100, width=32))
@settings(max_examples=50)
def test_values_stay_in_their_range(count: int, one: float, other: float) -> None:
    source = torch.tensor([one, other])
    for values in (spread_values(source, (count,)), shuffle_values(torch.cat([source, source.mean().expand(count)]))):
        assert float(values.min()) >= min(one, other) and float(values.max()) <= max(one, other)
        assert values.dtype == torch.float32


def test_values_are_unlike_those_16_bits_before_them() -> None:
    values = spread_values(torch.tensor([-9.0, 9.0]), (70_001, 3))
    assert values[65_536:].ne(values[: 70_001 - 65_536]).all()
    assert float(values.double().sum()) == float(values.sum())
    numbers = spread_values(torch.tensor([0, 4]), (100,))
    assert numbers.unique().tolist() == [0, 1, 2, 3, 4]
    assert len(shuffle_values(torch.rand(4097)).unique()) == 4097


def test_a_reduction_tells_how_many_elements_are_left() -> None:
    sample = SampleInput(torch.rand(4, 2))
    assert count_reduced(find_op("sum"), sample, 1) == 1
    assert count_reduced(find_op("cumsum"), SampleInput(torch.rand(4, 2), args=(0,)), 0) is None
    rows = SampleInput(torch.rand(4, 2), args=(1,))
    assert count_reduced(find_op("amax"), rows, 1) == 4 and count_reduced(find_op("amax"), rows, 0) is None
    past = SampleInput(torch.rand(8, 2), args=(-1, torch.tensor([[5, 1]])))
    assert count_reduced(find_op("gather"), past, 0) is None


def test_other_dimensions_are_short_where_sizes_are_varied() -> None:
    sample = SampleInput(torch.rand(5, 4, 3), args=(1,))
    varied = dict(resize_along(find_op("softmax"), sample, 1, (31, 33), 2))
    assert {size: tuple(each.input.shape) for size, each in varied.items()} == {31: (2, 31, 2), 33: (2, 33, 2)}
    assert math.prod(varied[33].input.shape) == len(varied[33].input.unique())


def test_a_square_matrix_is_not_resized_to_more_elements_than_memory_has() -> None:
    sample = SampleInput(torch.rand(5, 3), args=(torch.rand(5, 5), torch.rand(5, 3)))
    assert [size for size, _ in resize_along(find_op("addmm"), sample, 0, (33, 32_769), 5)] == [33]
    remark = "left out, as a tensor would have more than 2,097,152 elements"
    assert list(results.take_remarks("test_resized")) == [remark] and not list(results.take_remarks("test_resized"))
