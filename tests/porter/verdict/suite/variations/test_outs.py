"""Results that are given: the rows that take them, their layouts, and that what writes by another layout differs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.overloads import WRITTEN_OVER, call_overload, name_row, record_calls
from porter.verdict.suite.samples import copy_sample, has_written_beside
from porter.verdict.suite.variations.outs import PLACES, find_outs, list_outs, share_memory
from tests.porter.verdict.suite.variations.planted import find_op, list_different

aten = torch.ops.aten


def list_results(args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    outs = getattr(aten, kwargs["overload"].split(".")[0])
    schema = getattr(outs, kwargs["overload"].split(".")[1])._schema
    places = kwargs.get(WRITTEN_OVER, {}).items()
    over = {name: args[place].view(-1)[: math.prod(shape)].view(shape) for name, (place, shape) in places}
    return [over[each.name] if each.name in over else kwargs[each.name] for each in schema.arguments if each.is_out]


def write_by(choose: Callable[[Sequence[torch.Tensor], int], torch.Tensor]) -> Callable[..., Any]:
    """Writes each result to the tensor that is chosen for it, and returns what it was given."""

    def compute(*args: Any, **kwargs: Any) -> Any:
        given = list_results(args, kwargs)
        right = call_overload(*args, **kwargs)
        computed = [each.clone() for each in (right if isinstance(right, tuple) else [right])]
        for at, result in enumerate(computed):
            given[at].fill_(0)
            target = choose(given, at)
            if target.shape == result.shape:
                target.copy_(result)
        return tuple(given) if len(given) > 1 else given[0]

    return compute


def from_the_start(given: Sequence[torch.Tensor], at: int) -> torch.Tensor:
    """Takes memory from its start, as if no tensor had an offset."""
    return given[at].as_strided(given[at].shape, given[at].stride(), 0)


def by_the_strides_of_the_first(given: Sequence[torch.Tensor], at: int) -> torch.Tensor:
    if any(each.stride() != given[0].stride() for each in given):
        return given[0]
    return given[at]


def as_dense(given: Sequence[torch.Tensor], at: int) -> torch.Tensor:
    strides = torch.empty(given[at].shape).stride()
    return given[at].as_strided(given[at].shape, strides)


@pytest.mark.parametrize(
    ("base", "choose"),
    [
        ("gather", from_the_start),
        ("avg_pool2d", as_dense),
        ("cat", as_dense),
        ("median", by_the_strides_of_the_first),
        ("sort", by_the_strides_of_the_first),
        ("topk", as_dense),
        ("max_pool2d_with_indices_backward", as_dense),
        ("arange", from_the_start),
    ],
)
def test_a_result_that_is_written_by_another_layout_differs(
    base: str, choose: Callable[[Sequence[torch.Tensor], int], torch.Tensor]
) -> None:
    opinfos, op = find_op(base)
    varied = list(list_outs(opinfos, op, torch.float32))
    assert not list_different(write_by(lambda given, at: given[at]), call_overload, varied)
    assert list_different(write_by(choose), call_overload, varied)


def test_each_of_several_results_has_another_layout() -> None:
    opinfos, op = find_op("sort")
    samples = [sample for _, sample in list_outs(opinfos, op, torch.float32)]
    results = [list_results((sample.input, *sample.args), sample.kwargs) for sample in samples]
    assert any(one.stride() != other.stride() for one, other in results)
    assert any(0 in each.shape for several in results for each in several)


def test_rows_that_write_what_an_overload_returns() -> None:
    assert [name_row(each) for each in find_outs(aten.median.dim)] == ["median.dim_values"]
    assert [name_row(each) for each in find_outs(aten.sum.dim_IntList)] == ["sum.IntList_out"]
    assert [name_row(each) for each in find_outs(aten.arange.start_step)] == ["arange.start_out"]
    assert [name_row(each) for each in find_outs(aten.nll_loss2d_backward.default)] == [
        "nll_loss2d_backward.grad_input"
    ]
    assert not list(find_outs(aten.median.dim, rows=("median.out", "median.dim")))
    assert not list(find_outs(aten.unbind.int))


def test_calls_of_a_backward_are_recorded_with_all_their_arguments() -> None:
    sample = SampleInput(torch.randn(2, 3, requires_grad=True), args=(1,))
    [forward, backward] = record_calls(find_op("softmax")[1], [sample], {"_softmax", "_softmax_backward_data"})
    assert (forward.name, backward.name) == ("_softmax", "_softmax_backward_data")
    made = backward.make_sample()
    slope, result = made.input, made.args[0]
    assert len(slope.unique()) == slope.numel()  # of equal gradients it makes no difference which is read
    expected = result * (slope - (slope * result).sum(1, keepdim=True))
    torch.testing.assert_close(call_overload(made.input, *made.args, **made.kwargs), expected)


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 4, 5)])
def test_a_place_has_the_shape_and_shows_what_is_written_beside_it(name: str, shape: tuple[int, ...]) -> None:
    out = PLACES[name](torch.ones(shape))
    assert out.shape == shape and not out.eq(1).any()
    before = copy_sample(SampleInput(out)).input
    out.fill_(1)
    assert not has_written_beside(before, out)
    whole = torch.full((out.untyped_storage().nbytes() // 4,), 2.0)
    whole.as_strided(out.shape, out.stride(), out.storage_offset()).copy_(out)
    changed = whole.as_strided(out.shape, out.stride(), out.storage_offset())
    assert has_written_beside(before, changed) == (len(whole) > out.numel())


def align(outs: Sequence[torch.Tensor], at: int) -> torch.Tensor:
    """Takes a dense result of whole vectors for one that begins with a vector."""
    out = outs[at]
    if not out.is_contiguous() or not out.ndim or out.shape[-1] % 4:
        return out
    return out.as_strided(out.shape, out.stride(), out.storage_offset() // 4 * 4)


@pytest.mark.parametrize("base", ["_softmax", "cumsum", "_log_softmax", "sort"])
def test_a_result_that_is_written_as_aligned_vectors_differs(base: str) -> None:
    opinfos, op = find_op({"_softmax": "softmax", "_log_softmax": "log_softmax"}.get(base, base))
    opinfos = OpInfos(Context(bases=(base,), through=(op.full_name,)))
    varied = list(list_outs(opinfos, op, torch.float32))
    assert any("alone with an offset" in label for label in list_different(write_by(align), call_overload, varied))


def clear_before(*args: Any, **kwargs: Any) -> Any:
    """Writes to results before all arguments are read."""
    for result in list_results(args, kwargs):
        result.zero_()
    return call_overload(*args, **kwargs)


@pytest.mark.parametrize(
    ("base", "over"), [("cumsum", 1), ("sort", 2), ("scatter_add", 1), ("cumprod", 1), ("mm", 0), ("polygamma", 1)]
)
def test_a_result_that_is_written_before_its_argument_is_read_differs(base: str, over: int) -> None:
    """In the memory of an argument alone. What the CPU itself computes in another way there, as a product, is not
    asked.
    """
    _, op = find_op(base)
    opinfos = OpInfos(Context(bases=(base,), through=(op.full_name,)))
    different = list_different(clear_before, call_overload, list_outs(opinfos, op, torch.float32))
    assert len(different) == over and all(" over " in label for label in different)


@pytest.mark.parametrize("base", ["sum", "median", "var", "norm"])
def test_a_result_over_the_first_element_of_an_argument_is_written_last(base: str) -> None:
    _, op = find_op(base)
    opinfos = OpInfos(Context(bases=(base,), through=(op.full_name,)))
    different = list_different(clear_before, call_overload, list_outs(opinfos, op, torch.float32))
    assert any(" over the first element of argument 0" in label for label in different)


def test_a_result_of_several_elements_overlaps_no_part_of_an_argument() -> None:
    _, op = find_op("var")
    call = next(iter(record_calls(op, [SampleInput(torch.rand(5, 5), args=(1,))], ("var",))))
    writing = next(find_outs(call.overload))
    assert not list(share_memory(call, writing, [torch.rand(5)]))
    assert list(share_memory(call, writing, [torch.rand(1)]))
