"""How operators pool windows is found from what calls return, by results alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from porter.core.dtypes import FLOAT
from porter.metal.forms.pooling import Pooled, Pooling
from porter.recording.calls import OpCall
from porter.recording.forms.windows import find_pooling
from porter.recording.runs import RecordedRun

aten = torch.ops.aten
SHAPES = ((2, 3, 9, 7), (3, 8, 10), (2, 2, 10, 6), (1, 3, 7, 11), (2, 7, 9), (2, 3, 11, 8))
LISTS = ("kernel_size", "stride", "padding")
AVERAGE = ("count_include_pad", "divisor_override")


def run(call: OpCall) -> RecordedRun:
    made = pytree.tree_leaves(call.run())
    given = call.tensors()
    return RecordedRun(call, given, (), tuple(each for each in made if isinstance(each, torch.Tensor)), False)


def windows(names: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments of calls; both flags are set alike, as OpInfo's samples do."""
    lists = cycle((([3, 2], [], [1, 1], [1, 1]), ([2], [1, 2], [0], [2, 1]), ([3, 4], [2, 3], [1, 2], [1, 1])))
    for i, (shape, (kernel, stride, padding, dilation)) in enumerate(zip(SHAPES * 2, lists, strict=False)):
        given = {
            "self": torch.randn(shape), "kernel_size": kernel, "stride": stride, "padding": padding,
            "dilation": dilation, "ceil_mode": i % 2 == 0, "count_include_pad": i % 2 == 0,
            "divisor_override": 3 if i % 3 == 0 else None,
        }  # fmt: skip
        yield {name: value for name, value in given.items() if name in names}


def calls(name: str) -> list[RecordedRun]:
    overload = getattr(aten, name).default
    schema = {each.name: each for each in overload._schema.arguments}
    forward = getattr(aten, name.removesuffix("_backward")).default
    made = []
    for given in windows(schema):
        if name.endswith("_backward"):
            known = {each.name for each in forward._schema.arguments}
            results = pytree.tree_leaves(forward(**{k: v for k, v in given.items() if k in known}))
            given |= {"grad_output": torch.randn_like(results[0]), **({"indices": results[1]} if results[1:] else {})}
            stride = given["stride"] or given["kernel_size"]
            given = {each: {**given, "stride": stride}[each] for each in schema}
        made.append(run(OpCall(overload, given)))
    return made


MAXIMUM = Pooling(Pooled.MAXIMUM, "self", *LISTS, "dilation", results=2, dtypes=(FLOAT,))
AVERAGED = Pooling(Pooled.AVERAGE, "self", *LISTS, "", *AVERAGE, dtypes=(FLOAT,))
CASES = {
    "max_pool2d_with_indices": MAXIMUM,
    "max_pool2d": replace(MAXIMUM, results=1),
    "avg_pool2d": AVERAGED,
    "max_pool2d_with_indices_backward": replace(MAXIMUM, results=1, gradient="grad_output", indices="indices"),
    "avg_pool2d_backward": replace(AVERAGED, gradient="grad_output"),
}


@pytest.mark.parametrize("name", CASES)
def test_how_an_operator_pools(name: str) -> None:
    assert find_pooling(calls(name), run) == CASES[name]


def test_flags_that_are_always_alike_leave_two_ways() -> None:
    """Without calls of other flags, each flag could be the one that counts the padding."""

    def refuse(call: OpCall) -> RecordedRun:
        raise RuntimeError(call.name)

    assert find_pooling(calls("avg_pool2d"), refuse) is None


def test_windows_without_elements_have_the_position_of_the_cpu() -> None:
    given = {"kernel_size": [2, 2], "stride": [5, 5], "padding": [1, 1], "dilation": [1, 4], "ceil_mode": True}
    empty = [
        run(OpCall(aten.max_pool2d_with_indices.default, {"self": torch.randn(1, 2, n, 2), **given}))
        for n in range(8, 14)
    ]
    assert any(ran.results[0].isinf().any() for ran in empty)
    assert find_pooling(empty, run) == MAXIMUM


def change(ran: RecordedRun) -> RecordedRun:
    return replace(ran, results=(ran.results[0] + 1, *ran.results[1:]))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda runs: [*map(change, runs[:8]), *runs[8:]],  # most calls have to agree
        lambda runs: runs[:4],
    ],
)
def test_calls_that_show_nothing(spoil: Callable[[list[RecordedRun]], list[RecordedRun]]) -> None:
    assert find_pooling(spoil(calls("max_pool2d")), run) is None


def test_what_is_no_pool() -> None:
    given = {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1]}
    runs = [
        run(
            OpCall(
                aten.avg_pool2d.default,
                {
                    "self": torch.randn(shape),
                    **given,
                    "ceil_mode": False,
                    "count_include_pad": True,
                    "divisor_override": None,
                },
            )
        )
        for shape in SHAPES
    ]
    assert find_pooling([replace(each, results=(each.results[0].abs(),)) for each in runs], run) is None


def test_a_window_is_printed() -> None:
    assert [*MAXIMUM.describe()] == [
        "result = the maximum, NaN before numbers of windows of self, with its position",
        "windows by kernel_size, stride, padding, dilation",
    ]
    assert [*CASES["max_pool2d_with_indices_backward"].describe()] == [
        "result = sum of grad_output over the windows that an element lies in, where indices says so: "
        "the maximum, NaN before numbers of windows of self",
        "windows by kernel_size, stride, padding, dilation",
    ]
    assert next(replace(MAXIMUM, results=1, gradient="grad_output").describe()) == (
        "result = zeros; each element of grad_output is added where its window has the maximum, NaN before numbers"
    )
