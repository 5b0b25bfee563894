"""Extends the cases of an overload by calls that samples do not make: without tensors, of other ranks and types.

Steps may end before every choice of tensors is recorded at every type: a case of the rest would seem to need none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, combinations, islice, product

import torch

from porter.core.dtypes import DType, Kind
from porter.core.errors import PorterError
from porter.loops.optional import is_explained
from porter.loops.program import list_loaded
from porter.recording.calls import OpCall, spent
from porter.recording.joining import Case, Observed, join, join_changed, leave_out, observe
from porter.recording.runs import RecordedRun
from porter.recording.varied_calls import ask_alone, list_optional

Run = Callable[[OpCall], Iterable[RecordedRun]]  # the run of a call; none of one that raises
_TRIED = 2  # calls of a case that tensors are left out of
_MOST = 3  # tensors of which all choices are left out; of more, one or two at once
_TRIED_OF_RANK = 3  # calls of the same dimensions
_MOST_RANKS = 3  # choices of dimensions
_STEPS = 400_000  # with what is read of the calls meanwhile
_TRIED_OF_CASE = 6  # calls of another case


def cover_left_out(case: Case, run: Run) -> tuple[str, ...]:
    """Extends a case by calls without tensors that its calls give; the tensors without which calls raise.

    A call is also tried with each of its results alone: host code may need a tensor for those that belong to it.
    A tensor is not among them if no program computes a call without it.
    """
    tensors = list(_list_unexplained(case))
    required = set(tensors)
    counts = range(1, len(tensors) + 1 if len(tensors) <= _MOST else 3)
    choices = list(chain.from_iterable(combinations(tensors, count) for count in counts))
    for call, left_out in product(_pick_calls(case), choices):
        made = call.with_arguments(dict.fromkeys(left_out))
        if not all(_cover(case, run, each) for each in (made, *ask_alone(made))):
            required.difference_update(left_out)
    return tuple(each for each in _list_unexplained(case) if each in required)


def _list_unexplained(case: Case) -> Iterator[str]:
    """The optional tensors that kernels read, and that all calls give which ask for what is computed from them."""
    read = list_loaded(case.program)
    for name in dict.fromkeys(name for each in case.calls for name in list_optional(each.ran.call)):
        if name in read and not is_explained(case.program, name):
            yield name


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


Ranks = tuple[tuple[str, int], ...]


def cover_ranks(case: Case, cases: Sequence[Case], run: Run) -> None:
    """Extends a case by calls with the tensors of other cases, and its own numbers and flags, which it computes too."""
    known = {_describe_ranks(each.ran.call) for each in case.calls}
    beside: dict[Ranks, list[Observed]] = {}
    for each in (each for other in cases if other is not case for each in other.calls):
        if each.program.dtype == case.calls[0].program.dtype and _describe_ranks(each.ran.call) not in known:
            beside.setdefault(_describe_ranks(each.ran.call), []).append(each)
    for others in islice(beside.values(), _MOST_RANKS):
        found: dict[str, list[Observed]] = {}
        for each in _run_with_tensors(case, others[:_TRIED_OF_RANK], run):
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
    return other.with_arguments(changed)


def _describe_ranks(call: OpCall) -> Ranks:
    return tuple((name, tensor.ndim) for name, tensor in call.tensors().items())


def run_at_other_types(cases: Sequence[Case], run: Run) -> Iterator[RecordedRun]:
    """Runs calls of other cases at the floating types of cases that lack their tensors, each once."""
    seen: set[tuple[int, DType]] = set()
    until = spent() + _STEPS
    for case in cases:
        for dtype in (each for each in case.program.dtypes if each.kind is Kind.FLOATING):
            for call in _list_with_more(case, dtype, cases):
                if (id(call), dtype) not in seen and spent() < until:
                    seen.add((id(call), dtype))
                    yield from run(_cast(call, dtype))


def _list_with_more(case: Case, dtype: DType, cases: Sequence[Case]) -> Iterator[OpCall]:
    """Calls of other cases and floating types with a tensor that a case's calls of one type do not give."""
    own = [each.ran.call for each in case.calls if each.program.dtype == dtype]
    given = {name for call in own for name in list_optional(call)}
    for other in (each for each in cases if own and each is not case):
        types = ((each.ran.call, each.program.dtype) for each in other.calls)
        calls = (call for call, type_ in types if type_.kind is Kind.FLOATING and type_ != dtype)
        yield from islice((call for call in calls if not given.issuperset(list_optional(call))), _TRIED_OF_CASE)


def _cast(call: OpCall, dtype: DType) -> OpCall:
    """A call with its floating tensors in another type."""
    type_ = getattr(torch, dtype.torch)
    tensors = {name: value for name, value in call.arguments.items() if isinstance(value, torch.Tensor)}
    floating = {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
    return call.with_arguments({name: tensor.detach().to(type_) for name, tensor in floating.items()})
