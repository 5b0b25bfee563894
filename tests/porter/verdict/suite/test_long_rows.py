"""Samples with long rows: their shapes, and which operators they are for."""

import math
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.context import Context
from porter.verdict.suite.long_rows import (
    SHORT,
    ignores_order,
    keeps,
    lengthen,
    list_long,
    makes_nan,
    put_ends,
    put_nan_last,
    reduces,
    repeat_rows,
    sums_rows,
)
from porter.verdict.suite.opinfos import OpInfos
from tests.porter.verdict.suite.variations.shown import find_op, shows


def test_each_end_of_a_long_row_has_elements_of_the_sample() -> None:
    sample = SampleInput(torch.tensor([[5.0, 6.0], [7.0, 8.0]]), args=(torch.ones(2, 2), torch.tensor(3.0)))
    found = dict(lengthen(sample, *SHORT))
    assert {label: tuple(each.input.shape) for label, each in found.items()} == {
        "a long first dimension, of 1s": (101, 1),
        "a long first dimension, of 0s": (101, 1),
        "a long last dimension, of 1s": (2, 101),
        "a long last dimension, of 0s": (2, 101),
        "long columns, of 1s": (67, 3),
        "long columns, of 0s": (67, 3),
    }
    row = found["a long first dimension, of 0s"]
    assert row.input[:, 0].nonzero().flatten().tolist() == [0, 1, 2, 3, 97, 98, 99, 100]
    assert row.input[-2:, 0].tolist() == [6.0, 5.0]
    assert [tuple(each.shape) for each in row.args] == [(101, 1), ()]


def test_tensors_whose_sizes_may_go_with_the_input_s_leave_a_sample_as_it_is() -> None:
    weighted = SampleInput(torch.ones(2, 3), kwargs={"weight": torch.ones(3)})
    assert not list(lengthen(weighted))


def test_what_has_no_dimension_has_no_long_one() -> None:
    assert not list(lengthen(SampleInput(torch.tensor(1.0))))
    assert not list(lengthen(SampleInput(torch.empty(0, 3))))
    assert [label for label, _ in lengthen(SampleInput(torch.ones(3)))] == [
        "a long first dimension, of 1s",
        "a long first dimension, of 0s",
    ]


def test_a_reduction_has_one_result_for_a_row() -> None:
    [(_, sample), *_] = lengthen(SampleInput(torch.ones(4)), *SHORT)
    assert reduces(sample.input.sum(), sample) and reduces((sample.input.max(0)), sample)
    assert not reduces(sample.input.cumsum(0), sample) and not reduces(torch.outer(sample.input, sample.input), sample)
    assert not reduces(sample.input.topk(3), sample) and not reduces(None, sample)


def combine_finite(x: torch.Tensor, *args: object, **named: object) -> torch.Tensor:
    """A variance of long rows that is infinite where one element is, and not NaN."""
    variance = torch.var(x, *args, **named)  # type: ignore[call-overload]
    return torch.where(variance.isnan() & (x.numel() > 100_000), torch.inf, variance)


def test_what_combines_a_long_row_knows_of_elements_that_are_not_finite() -> None:
    op = find_op("var")
    varied = list(list_long(OpInfos(Context(bases=("var",))), op, torch.float32))
    infinite = [sample for label, sample in varied if label.startswith("a long") and label.endswith("inf last")]
    assert infinite and all(shows(op, combine_finite, sample) for sample in infinite)


def forget_single(x: torch.Tensor, *args: object, **named: object) -> torch.Tensor:
    """A variance that is infinite, and not NaN, where an infinite element has one finite element beside it."""
    variance = torch.var(x, *args, **named)  # type: ignore[call-overload]
    return torch.full_like(variance, torch.inf) if int(x.isfinite().sum()) == 1 else variance


def test_a_row_has_one_finite_element_beside_an_infinite_one() -> None:
    op = find_op("var")
    varied = list(list_long(OpInfos(Context(bases=("var",))), op, torch.float32))
    assert any(shows(op, forget_single, sample) for _, sample in varied)


def test_the_first_or_the_last_element_is_not_finite() -> None:
    sample = SampleInput(torch.ones(2, 3).t(), args=(1,), kwargs={"keepdim": True})
    found = dict(put_ends(sample))
    ends = ["inf first", "inf last", "-inf first", "-inf last", "nan first", "nan last"]
    behind = ["inf last of zeros", "nan last of zeros"]
    assert list(found) == [*ends, "nan first and last", *behind, "inf alone", "-inf alone", "nan alone"]
    assert [found[label].input.flatten().isfinite().tolist() for label in behind] == [[True] * 5 + [False]] * 2
    assert all(found[label].input.flatten()[:-1].eq(0).all() for label in behind)
    assert found["nan first and last"].input.isnan().flatten().tolist() == [True, *[False] * 4, True]
    assert found["-inf alone"].input.eq(-torch.inf).all() and found["-inf alone"].input.shape == (3, 2)
    for label, each in ((label, found[label]) for label in ends):
        flat = each.input.flatten()
        end, rest = (flat[0], flat[1:]) if label.endswith("first") else (flat[-1], flat[:-1])
        assert str(end.item()) == label.split()[0] and rest.eq(1).all()
        assert each.input.shape == (3, 2) and each.args == (1,) and each.kwargs == {"keepdim": True}
    assert sample.input.eq(1).all() and not list(put_ends(SampleInput(torch.ones(3).long())))


def test_what_is_not_finite_by_order_alone_is_not_compared() -> None:
    sample = SampleInput(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, float("inf")]]))
    assert ignores_order(torch.var, sample) and ignores_order(torch.amax, sample)
    assert ignores_order(lambda x: x.sum(1), sample) and ignores_order(lambda x: x.argmax(), sample)
    assert not ignores_order(lambda x: x.flatten()[0] * x.sum(), SampleInput(sample.input - 1))
    assert not ignores_order(lambda x: x.cumsum(1), sample)


def test_rows_are_kept_by_what_has_no_more_elements() -> None:
    [(_, sample), *_] = lengthen(SampleInput(torch.ones(4)), *SHORT)
    assert (
        keeps(sample.input.cumsum(0), sample) and keeps(sample.input.sort(), sample) and keeps(sample.input[:3], sample)
    )
    assert not keeps(torch.outer(sample.input, sample.input), sample) and not keeps(None, sample)


def test_rows_are_repeated_with_those_of_tensors_beside_them() -> None:
    sample = SampleInput(torch.arange(6.0).view(3, 2), args=(torch.arange(3),), kwargs={"weight": torch.ones(2)})
    [(_, long)] = repeat_rows(sample, 7)
    assert long.input.shape == (7, 2) and long.input[3].tolist() == [0.0, 1.0]
    assert long.args[0].tolist() == [0, 1, 2, 0, 1, 2, 0] and long.kwargs["weight"].shape == (2,)
    image = SampleInput(torch.ones(3, 4, 5, requires_grad=True), args=(torch.ones(3, 5), 2))
    [(_, long)] = repeat_rows(image, 30)
    assert long.input.shape == (6, 4, 5) and long.input.requires_grad and long.args[0].shape == (6, 5)


@pytest.mark.parametrize("beside", [(3, 4), (4, 2), (3, 3), ()])
def test_rows_stay_where_results_may_have_their_square(beside: tuple[int, ...]) -> None:
    assert not list(repeat_rows(SampleInput(torch.ones(3, 4), args=(torch.ones(beside),))))
    assert not list(repeat_rows(SampleInput(torch.ones(3, 400), args=(torch.ones(400),))))


def test_a_gradient_sums_rows_for_a_tensor_that_has_none() -> None:
    rows, weight = torch.ones(5, 2, requires_grad=True), torch.ones(2, requires_grad=True)
    assert sums_rows(SampleInput(rows, kwargs={"weight": weight}))
    assert not sums_rows(SampleInput(rows, args=(rows, weight.detach(), 1)))


def test_the_last_part_of_a_long_row_has_a_nan() -> None:
    found = list(lengthen(SampleInput(torch.ones(2, 3)), *SHORT))
    [(label, long), (_, both)] = put_nan_last(found[2:3])
    assert both.input.flatten()[[0, -1]].isnan().all() and int(both.input.isnan().sum()) == 2
    assert label == "a long last dimension, of 1s, nan last"
    assert long.input[-1, -1].isnan() and long.input.isnan().sum() == 1 and not found[2][1].input.isnan().any()
    assert not list(put_nan_last([("whole", SampleInput(torch.tensor([1, 2])))]))


def test_nan_of_infinite_elements_alone_may_be_of_their_order() -> None:
    alone = SampleInput(torch.full((5,), math.inf))
    assert makes_nan(torch.var_mean, alone)
    assert not makes_nan(torch.sum, alone)
    assert not makes_nan(torch.var_mean, SampleInput(torch.tensor([math.inf, 1])))


def test_a_number_has_one_row() -> None:
    assert reduces(torch.zeros(1), SampleInput(torch.tensor(2.0)))
    assert not reduces(torch.zeros(7), SampleInput(torch.tensor(2.0)))


@pytest.mark.parametrize("name", ["sort", "cumsum"])
def test_rows_of_every_type_are_longer_than_a_threadgroup(name: str) -> None:
    """A kernel that joins parts of a row, which is registered for most types alone."""

    def forget_merge(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        return op(x if x.numel() < 2_000 else x[..., :1].expand_as(x), *args, **named)

    op = find_op(name)
    for dtype in (torch.int32, torch.int16, torch.bfloat16):
        varied = list_long(OpInfos(Context(bases=(name,))), op, dtype)
        assert any(shows(op, forget_merge, sample) for _, sample in varied)
