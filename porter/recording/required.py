"""Optional tensors that calls of a case have to give, since the old code raises without them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations

import torch

from porter.core.errors import PorterError
from porter.loops.optional import is_explained
from porter.loops.program import list_loaded
from porter.recording.calls import OpCall
from porter.recording.joining import Case, leave_out, observe
from porter.recording.left_out import ask_alone, leave_out_tensors, list_optional
from porter.recording.record import RecordedRun

Run = Callable[[OpCall], Iterable[RecordedRun]]  # the run of a call; none of one that raises
_TRIED = 2  # calls of a case that tensors are left out of
_MOST = 3  # tensors of which all choices are left out; of more, one or two at once


def cover_left_out(case: Case, run: Run) -> tuple[str, ...]:
    """Extends a case by calls without tensors that its calls give; the tensors without which calls raise.

    A call is also tried with each of its results alone: host code may need a tensor for those that belong to it.
    A tensor is not among them if no program computes a call without it.
    """
    tensors = list(_list_unexplained(case))
    required = set(tensors)
    for call, left_out in ((call, chosen) for call in _pick_calls(case) for chosen in _choose(tensors)):
        made = leave_out_tensors(call, left_out)
        if not all(_cover(case, run, each) for each in (made, *ask_alone(made))):
            required.difference_update(left_out)
    return tuple(each for each in _list_unexplained(case) if each in required)


def _list_unexplained(case: Case) -> Iterator[str]:
    """The optional tensors that kernels read, and that all calls give which ask for what is computed from them."""
    read = list_loaded(case.program)
    for name in dict.fromkeys(name for each in case.calls for name in list_optional(each.ran.call)):
        if name in read and not is_explained(case.program, name):
            yield name


def _choose(tensors: Sequence[str]) -> Iterator[tuple[str, ...]]:
    counts = range(1, len(tensors) + 1 if len(tensors) <= _MOST else 3)
    return chain.from_iterable(combinations(tensors, count) for count in counts)


def _pick_calls(case: Case) -> list[OpCall]:
    """Calls that differ in their tensors, those of the most first; of each choice the one of the most numbers.

    Any number seems to stand for a tensor that NaN or zero is multiplied by.
    """
    found: dict[tuple[str, ...], OpCall] = {}
    for each in sorted(case.calls, key=lambda each: (-len(each.program.arguments.tensors), _share_others(each.ran))):
        found.setdefault(tuple(each.program.arguments.tensors), each.ran.call)
    return list(found.values())[:_TRIED]


def _share_others(ran: RecordedRun) -> float:
    """The share of elements of results that are NaN, infinite or zero."""
    elements = torch.cat([each.detach().cpu().flatten().double() for each in ran.results])
    others = ~elements.isfinite() | (elements == 0)
    return float(others.double().mean()) if elements.numel() else 1.0


def _cover(case: Case, run: Run, call: OpCall) -> bool:
    """Whether a call raises, or the case computes it."""
    try:
        return all(leave_out([case], [observe(ran)]) for ran in run(call) if ran.tells_results)
    except PorterError:
        return False
