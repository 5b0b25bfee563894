"""Calls of the rows under test, forward and backward, with their tensors in other memory layouts.

A backward row is given gradients, and what the forward kept: results, statistics, indices. A Python function makes all
of these but the gradient, in the layout that it likes; who calls the row gives each in any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.indices import keep_written_once
from porter.verdict.suite.layouts import BEHIND, Transform, leave_gaps, make_dense, shift, take_every_second
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.overloads import AS_RECORDED, Call, call_overload, record_calls
from porter.verdict.suite.variations.choice import choose_vectors, varies_in
from porter.verdict.suite.variations.variation import Variation

_MOST_SAMPLES = 24  # that calls are recorded of
_MOST_CALLS = 2  # of each row, with vectors and without
_MOST_ELEMENTS = 1 << 12


def reverse_strides(tensor: torch.Tensor) -> torch.Tensor:
    """The first dimension innermost in memory, the last one outermost."""
    dims = tuple(range(tensor.ndim))[::-1]
    return tensor.permute(dims).contiguous().permute(dims)


_TURNED: Mapping[str, Transform] = {
    "reversed": reverse_strides,
    "part of a larger one": leave_gaps,
    "every second element": take_every_second,
}


def list_call_layouts(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """A few calls of each row, one of them with rows that vectors are read of, in other layouts that the CPU takes."""
    if not varies_in(opinfos, op, dtype):
        return
    slopes = op.supports_autograd and dtype.is_floating_point
    vectors = choose_vectors(opinfos, op, dtype, requires_grad=slopes)
    reaching = opinfos.reaching_samples(op, dtype, requires_grad=slopes)
    others = reaching[:: len(reaching) // _MOST_SAMPLES + 1]
    for several in (vectors, others):
        chosen: dict[str, dict[str, Call]] = {}
        for call in _sort_calls(op, several, opinfos):
            chosen.setdefault(call.name, {}).setdefault(_describe(call), call)
        for call in chain.from_iterable(list(calls.values())[:_MOST_CALLS] for calls in chosen.values()):
            yield from keep_written_once(call_overload, keep_computed(stay_inside(call_overload), vary_tensors(call)))


def _sort_calls(op: OpInfo, samples: Iterable[SampleInput], opinfos: OpInfos) -> list[Call]:
    """The calls that samples end in: first those of most tensors with several elements, then of most dimensions."""
    calls = record_calls(op, samples, opinfos.context.bases)
    small = [call for call in calls if 0 < _count_elements(call) <= _MOST_ELEMENTS]
    return sorted(small, key=_judge, reverse=True)


def _judge(call: Call) -> tuple[int, int]:
    tensors = _list_tensors(call)
    return sum(len(tensor) > 1 for tensor in tensors if tensor.ndim), max(tensor.ndim for tensor in tensors)


def vary_tensors(call: Call) -> Iterator[Varied]:
    """Yields a call as it was recorded, which tells what its user does not see. Then with each of its tensors alone
    behind other elements, dense as it is: a kernel that reads vectors asks where each of them starts. Then with each in
    one of the other layouts, in turns, so that no two are alike.
    """
    yield f"{call.name}{AS_RECORDED}", call.make_sample()
    count = len(_list_tensors(call))
    layouts = list(_TURNED.items())
    for at in range(count):
        changes: list[Transform] = [shift if place == at else make_dense for place in range(count)]
        yield f"{call.name}, tensor {at} {BEHIND}", _change(call, changes).make_sample()
    for turn in range(len(layouts)):
        turned = [layouts[(turn + place) % len(layouts)] for place in range(count)]
        label = ", ".join(name for name, _ in turned)
        yield f"{call.name}, tensors {label}", _change(call, [change for _, change in turned]).make_sample()


def _change(call: Call, changes: Sequence[Transform]) -> Call:
    rest = iter(changes)
    args, kwargs = pytree.tree_map(
        lambda value: next(rest)(value.detach()) if _is_strided(value) else value, (call.args, call.kwargs)
    )
    return replace(call, args=tuple(args), kwargs=kwargs)


def _list_tensors(call: Call) -> list[torch.Tensor]:
    return [value for value in pytree.tree_leaves((call.args, call.kwargs)) if _is_strided(value)]


def _is_strided(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def _count_elements(call: Call) -> int:
    return max((tensor.numel() for tensor in _list_tensors(call)), default=0)


def _describe(call: Call) -> str:
    """The ranks of its tensors, and its other arguments but for lists: a dimension decides whether vectors are read."""
    others = [value for value in (*call.args, *call.kwargs.values()) if isinstance(value, (bool, int, float, str))]
    return repr(([tensor.ndim for tensor in _list_tensors(call)], others))


CALL_LAYOUTS = Variation("call_layouts", list_call_layouts, calls_overloads=True)
