"""Which other floating types a tensor may have: those that graphs cast to the type of the elements they compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, permutations
from typing import TYPE_CHECKING

import torch
from torch.utils import _pytree as pytree

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.loops.program import Programs, list_loaded
from porter.recording.calls import OpCall
from porter.recording.record import RecordedRun, run_call

if TYPE_CHECKING:
    from aten_overlay.apple.mpsgraph.recorder import GraphRun

_TRIED = 3  # calls of each element type
_CAST = "castTensor:toType"
_Run = Callable[[OpCall], RecordedRun]


def find_cast_types(
    programs: Programs, runs: Sequence[RecordedRun], run: _Run = run_call
) -> dict[str, tuple[DType, ...]]:
    """The floating types of tensors that may differ from the first one's, as they do in no recorded call.

    The operands of a node have one type: a tensor may have another where casts alone read it and the results are the
    same.
    """
    found = {}
    for name in _list_alike(programs):
        by_type = _group(name, runs)
        if len(by_type) > 1 and all(_casts(ran, name, other, run) for ran, other in _list_tried(by_type)):
            found[name] = tuple(by_type)
    return found


def _list_alike(programs: Programs) -> Iterator[str]:
    """The tensors that kernels read, and that have the floating type of the first one in all calls."""
    keys = {name: case.key for case in programs.cases for name in sorted(list_loaded(case)) if name != case.key}
    for name, key in keys.items():
        given = [call.tensors for call in programs.calls if name in call.tensors]
        types = [(each[name].dtype, each[key].dtype) for each in given]
        if all(own == first and own.kind is Kind.FLOATING for own, first in types):
            yield name


def _group(name: str, runs: Sequence[RecordedRun]) -> dict[DType, list[RecordedRun]]:
    """The runs of which a graph reads a tensor, by its type."""
    found: dict[DType, list[RecordedRun]] = {}
    for ran in runs:
        if name in ran.call.arguments and name in ran.given and _list_readers(ran, name):
            found.setdefault(dtypes.BY_TORCH[str(ran.given[name].dtype).removeprefix("torch.")], []).append(ran)
    return found


def _list_tried(by_type: Mapping[DType, Sequence[RecordedRun]]) -> Iterator[tuple[RecordedRun, DType]]:
    """Some runs of each type, with each other type."""
    for own, other in permutations(by_type, 2):
        yield from ((ran, other) for ran in islice(by_type[own], _TRIED))


def _casts(ran: RecordedRun, name: str, dtype: DType, run: _Run) -> bool:
    """Whether the graphs of a call cast a tensor of another type, and compute what they do without."""
    rounded = ran.given[name].to(getattr(torch, dtype.torch))
    try:
        mixed = run(_make_call(ran, name, rounded))
        readers = _list_readers(mixed, name)
        if not readers or any(selector != _CAST for selector in readers):
            return False
        plain = run(_make_call(ran, name, rounded.to(ran.given[name].dtype)))
    except Exception:  # whatever checks raise
        return False
    return len(mixed.results) == len(plain.results) and all(map(_are_same, mixed.results, plain.results))


def _make_call(ran: RecordedRun, name: str, value: torch.Tensor) -> OpCall:
    """The call as it was made, with another tensor."""
    given = {**{each: tensor for each, tensor in ran.given.items() if each in ran.call.arguments}, name: value}
    made = {each: tensor.to(ran.call.arguments[each].device, copy=True) for each, tensor in given.items()}
    others = pytree.tree_map(lambda each: each.clone() if isinstance(each, torch.Tensor) else each, ran.call.arguments)
    return OpCall(ran.call.overload, {**others, **made})


def _list_readers(ran: RecordedRun, name: str) -> list[str]:
    """The selectors of the nodes that read a tensor, in all graphs of a call."""
    address = ran.call.arguments[name].data_ptr()
    return [selector for graph in ran.runs for selector in _list_readers_in(graph, address)]


def _list_readers_in(run: GraphRun, address: int) -> Iterator[str]:
    fed = [ref for ref, place in run.feeds.items() if place == address]
    for node in run.graph.nodes:
        if any(each in fed for each in pytree.tree_leaves(list(node.arguments))):
            yield node.selector


def _are_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and torch.equal(one.nan_to_num(), other.nan_to_num())
