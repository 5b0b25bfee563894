"""Calls of a case with as many dimensions as calls of the other cases of its overload have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

import torch

from porter.core.errors import PorterError
from porter.recording.calls import OpCall
from porter.recording.joining import Case, Observed, join, join_changed, observe
from porter.recording.required import Run
from porter.recording.seen_values import with_arguments

Ranks = tuple[tuple[str, int], ...]
_TRIED = 3  # calls of the same dimensions
_MOST = 3  # choices of dimensions


def cover_ranks(case: Case, cases: Sequence[Case], run: Run) -> None:
    """Extends a case by calls with the tensors of other cases, and its own numbers and flags, which it computes too."""
    known = {_describe_ranks(each.ran.call) for each in case.calls}
    beside: dict[Ranks, list[Observed]] = {}
    for each in (each for other in cases if other is not case for each in other.calls):
        if each.program.dtype == case.calls[0].program.dtype and _describe_ranks(each.ran.call) not in known:
            beside.setdefault(_describe_ranks(each.ran.call), []).append(each)
    for others in islice(beside.values(), _MOST):
        found: dict[str, list[Observed]] = {}
        for each in _run_with_tensors(case, others[:_TRIED], run):
            found.setdefault(each.program.structure, []).append(each)
        for group in found.values():
            if not join([case], group):
                join_changed([case], group)


def _run_with_tensors(case: Case, others: Sequence[Observed], run: Run) -> Iterator[Observed]:
    """The calls of a case's arguments with tensors of others, as far as they do not raise and have a program."""
    own = case.calls[0].ran.call
    for other in (each.ran.call for each in others):
        for ran in run(_take_tensors(own, other)) if own.tensors().keys() == other.tensors().keys() else ():
            with suppress(PorterError):
                yield observe(ran)


def _take_tensors(own: OpCall, other: OpCall) -> OpCall:
    """A call with the tensors and lists of another."""
    kept = (bool, int, float, complex, str, torch.dtype, type(None))
    changed = {name: value for name, value in own.arguments.items() if isinstance(value, kept)}
    return with_arguments(other, changed)


def _describe_ranks(call: OpCall) -> Ranks:
    return tuple((name, tensor.ndim) for name, tensor in call.tensors().items())
