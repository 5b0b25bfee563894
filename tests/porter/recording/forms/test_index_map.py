"""Coordinate maps are found from what calls return, by results alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from porter.metal.forms.index_map import AccessMode, IndexMap, IndexRule
from porter.recording.calls import OpCall
from porter.recording.forms.index_map import find_index_map
from porter.recording.runs import RecordedRun

SHAPES = ((5, 4), (3, 6, 4), (2, 3, 4, 5), (7,), (4, 5, 3))
Arguments = dict[str, Any]
aten = torch.ops.aten


def run(overload: Any, arguments: Arguments) -> RecordedRun:
    return run_call(OpCall(overload, arguments))


def run_call(call: OpCall) -> RecordedRun:
    return RecordedRun(call, call.tensors(), (), (call.run(),), False)


def index_like(shape: tuple[int, ...], size: int) -> torch.Tensor:
    return torch.randint(0, size, shape)


def permuted(shape: tuple[int, ...], dim: int) -> torch.Tensor:
    """Indices that are all different along a dimension."""
    return torch.rand(shape).argsort(dim)


def pads(count: int) -> Iterator[Arguments]:
    for shape in ((2, 6, 5, 7), (3, 4, 6, 5), (1, 7, 5, 6), (2, 5, 6, 4), (3, 3, 7, 5), (2, 4, 4, 6)):
        yield {"self": torch.randn(shape), "padding": [*torch.randint(0, 3, (count,)).tolist()]}


def gradients(count: int) -> Iterator[Arguments]:
    for each in pads(count):
        padded = torch.nn.functional.pad(each["self"], each["padding"], "replicate")
        yield {"grad_output": torch.randn_like(padded), **each}


def along(name: str, **others: Any) -> Iterator[Arguments]:
    for shape in SHAPES:
        dim = len(shape) // 2
        smaller = tuple(size - (d != dim) for d, size in enumerate(shape))
        source = {"src": torch.randn(shape)} if name == "src" else {}
        yield {"self": torch.randn(shape), "dim": dim, "index": permuted(smaller, dim), **source, **others}


def rows(**others: Any) -> Iterator[Arguments]:
    for shape in SHAPES:
        index = torch.randperm(shape[0])[:2]
        source = {"source": torch.randn(2, *shape[1:])} if others else {}
        yield {"self": torch.randn(shape), "dim": 0, "index": index, **source, **others}


def whole_rows() -> Iterator[Arguments]:
    for shape in ((), (5,), (2, 3), (3, 1, 4), (6,)):
        given = {"grad_output": torch.randn(*shape, 4), "indices": index_like(shape, 7)}
        yield {**given, "num_weights": 9, "padding_idx": -1, "scale_grad_by_freq": False}


def fills() -> Iterator[Arguments]:
    for shape in SHAPES:
        yield {"self": torch.randn(shape), "dim": 0, "index": torch.tensor([1, 0]), "value": torch.randn(())}


CASES: dict[str, tuple[Any, Callable[[], Iterator[Arguments]], IndexRule, AccessMode]] = {
    "flip": (aten.flip.default, lambda: ({"self": torch.randn(s), "dims": [0, -1][: len(s)]} for s in SHAPES[:3] + SHAPES[4:] * 2), IndexRule.REVERSED, AccessMode.READ),
    "repeat": (aten.repeat.default, lambda: ({"self": torch.randn(s), "repeats": [2, *(3 for _ in s)]} for s in SHAPES), IndexRule.REPEATED, AccessMode.READ),
    "constant_pad_nd": (aten.constant_pad_nd.default, lambda: ({"self": torch.randn(s), "pad": [1, 2], "value": 2.5} for s in SHAPES), IndexRule.PADDED, AccessMode.READ),
    "reflection_pad2d": (aten.reflection_pad2d.default, lambda: pads(4), IndexRule.REFLECTED, AccessMode.READ),
    "replication_pad2d": (aten.replication_pad2d.default, lambda: pads(4), IndexRule.CLAMPED, AccessMode.READ),
    "reflection_pad2d_backward": (aten.reflection_pad2d_backward.default, lambda: gradients(4), IndexRule.REFLECTED, AccessMode.ADD),
    "replication_pad2d_backward": (aten.replication_pad2d_backward.default, lambda: gradients(4), IndexRule.CLAMPED, AccessMode.ADD),
    "gather": (aten.gather.default, lambda: along(""), IndexRule.ELEMENT, AccessMode.READ),
    "index_select": (aten.index_select.default, rows, IndexRule.POSITION, AccessMode.READ),
    "index_add": (aten.index_add.default, lambda: rows(alpha=2), IndexRule.POSITION, AccessMode.ADD),
    "embedding": (aten.embedding_dense_backward.default, whole_rows, IndexRule.ROW, AccessMode.ADD),
    "index_fill": (aten.index_fill.int_Tensor, fills, IndexRule.POSITION, AccessMode.PUT),
    "scatter.src": (aten.scatter.src, lambda: along("src"), IndexRule.ELEMENT, AccessMode.PUT),
    "scatter.value": (aten.scatter.value, lambda: along("", value=3.5), IndexRule.ELEMENT, AccessMode.PUT),
    "scatter_add": (aten.scatter_add.default, lambda: along("src"), IndexRule.ELEMENT, AccessMode.ADD),
    "scatter.reduce": (aten.scatter.reduce, lambda: along("src", reduce="add"), IndexRule.ELEMENT, AccessMode.COMBINE),
}  # fmt: skip
WRAPPING = ("index_fill",)  # the CPU refuses indices below zero of all others


@pytest.mark.parametrize("name", CASES)
def test_the_map_of_an_operator(name: str) -> None:
    overload, make, rule, way = CASES[name]
    found = find_index_map([run(overload, each) for each in make()], run_call)
    assert found is not None
    assert (found.rule, found.mode) == (rule, way)
    assert found.wraps == (name in WRAPPING)
    ignored = ("padding_idx", "scale_grad_by_freq") if name == "embedding" else ("", "")
    assert (found.skipped, found.averaged) == ignored


def test_one_call_with_another_result_leaves_none() -> None:
    runs = [run(aten.flip.default, {"self": torch.randn(s), "dims": [0]}) for s in SHAPES]
    wrong = runs[2]
    off = RecordedRun(wrong.call, wrong.given, (), (wrong.results[0].roll(1),), False)
    assert find_index_map([*runs, off]) is None
    assert find_index_map(runs) is not None


def test_few_calls_show_nothing() -> None:
    runs = [run(aten.flip.default, {"self": torch.randn(s), "dims": [0]}) for s in SHAPES[:4]]
    assert find_index_map(runs) is None


def test_what_is_no_map() -> None:
    assert (
        find_index_map([run(aten.roll.default, {"self": torch.randn(s), "shifts": [1], "dims": [0]}) for s in SHAPES])
        is None
    )
    assert find_index_map([run(aten.cumsum.default, {"self": torch.randn(s), "dim": 0}) for s in SHAPES]) is None


def test_another_way_to_combine_elements_is_no_map() -> None:
    assert (
        find_index_map([run(aten.scatter_reduce.two, each) for each in along("src", reduce="amax")], run_call) is None
    )


def test_a_map_is_printed() -> None:
    added = IndexMap(IndexRule.ELEMENT, AccessMode.ADD, "dim", "index", "src", start="self")
    assert [*added.describe()] == [
        "output = self; each element of src is added to output[...], at the element of index in the dimension dim"
    ]
    put = IndexMap(IndexRule.POSITION, AccessMode.PUT, "dim", "index", "value", start="self", wraps=True)
    assert next(put.describe()).endswith("at index (from the end below 0)[i] in the dimension dim")
    rows_added = IndexMap(IndexRule.ROW, AccessMode.ADD, index="indices", source="grad_output", skipped="padding_idx")
    assert next(rows_added.describe()).endswith("for the whole row, unless that is padding_idx")
    [line] = replace(rows_added, averaged="by_freq").describe()
    assert line.endswith("divided by how many go there if by_freq")
    padded = IndexMap(IndexRule.CLAMPED, AccessMode.READ, "padding", source="self")
    assert [*padded.describe()] == ["output[i, ...] = self[...], at i - padding, clamped to 0 and n - 1"]
