"""Calls with optional tensors that calls of a case never give at its element type, and others give at theirs.

Steps may end before every choice of tensors is recorded at every type. A case of the rest would seem to need none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import torch

from porter.core.dtypes import DType, Kind
from porter.recording.calls import OpCall
from porter.recording.effort import spent
from porter.recording.joining import Case
from porter.recording.left_out import list_optional
from porter.recording.record import RecordedRun
from porter.recording.required import Run
from porter.recording.seen_values import with_arguments

_STEPS = 400_000  # with what is read of the calls meanwhile
_TRIED = 6  # calls of another case


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
        calls = (each.ran.call for each in other.calls if _is_of_other(each.program.dtype, dtype))
        yield from islice((call for call in calls if not given.issuperset(list_optional(call))), _TRIED)


def _is_of_other(found: DType, dtype: DType) -> bool:
    return found.kind is Kind.FLOATING and found != dtype


def _cast(call: OpCall, dtype: DType) -> OpCall:
    """A call with its floating tensors in another type."""
    type_ = getattr(torch, dtype.torch)
    floating = {name: value for name, value in call.arguments.items() if _is_floating(value)}
    return with_arguments(call, {name: value.detach().to(type_) for name, value in floating.items()})


def _is_floating(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()
