"""Which other integers a tensor of 64-bit ones may have: those for which the old code, or the CPU, computes the same.

Samples give places and classes as 64-bit integers; a graph may cast others, which a port has to take then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch.utils import _pytree as pytree

from porter.core import dtypes
from porter.core.dtypes import LONG, DType, Kind
from porter.loops.program import ArgumentBuffer, Programs, SymbolicProgram
from porter.recording.calls import OpCall
from porter.recording.cast_types import find_cast_types
from porter.recording.record import RecordedRun

_OTHERS = tuple(each for each in dtypes.ALL if each.kind is Kind.INTEGRAL and each != LONG)
_TRIED = 3  # calls with another type


def with_conversions(programs: Programs, runs: Sequence[RecordedRun]) -> Programs:
    """The programs of an overload with the types that its tensors may have instead, as recorded calls do not show."""
    found = {name: types for name in _list_long(programs) if (types := find_other_types(name, runs))}
    found |= find_cast_types(programs, runs)
    return replace(programs, cases=tuple(replace(each, conversions=found) for each in programs.cases))


def _list_long(programs: Programs) -> Iterator[str]:
    """The tensors that programs read, but are not chosen by, and that are of 64-bit integers in all calls."""
    read = dict.fromkeys(name for case in programs.cases for name in _list_read(case))
    for name in read:
        given = [call.tensors[name].dtype for call in programs.calls if name in call.tensors]
        if given and all(dtype == LONG for dtype in given):
            yield name


def _list_read(case: SymbolicProgram) -> Iterator[str]:
    for role in case.roles.values():
        if isinstance(role, ArgumentBuffer) and role.name != case.key:
            yield role.name


def find_other_types(name: str, runs: Sequence[RecordedRun]) -> tuple[DType, ...]:
    """The types that a tensor of 64-bit integers may have instead in calls."""
    with_it = [ran for ran in runs if name in ran.given and name in ran.call.arguments]
    return tuple(dtype for dtype in _OTHERS if _may_have(name, dtype, with_it))


def _may_have(name: str, dtype: DType, runs: Sequence[RecordedRun]) -> bool:
    """Whether some calls compute the same with a tensor of another type, all where they were made or all on the CPU."""
    tried = list(islice((ran for ran in runs if _holds(ran.given[name], dtype)), _TRIED))
    places = ({ran.call.arguments[name].device for ran in tried}, {torch.device("cpu")})
    known = [place for place in places if len(place) == 1]
    return bool(tried) and any(all(_computes_same(ran, name, dtype, *place) for ran in tried) for place in known)


def _holds(value: torch.Tensor, dtype: DType) -> bool:
    """Whether a type has the elements of a tensor, if there are any."""
    return value.numel() > 0 and torch.equal(value.to(getattr(torch, dtype.torch)).long(), value)


def _computes_same(ran: RecordedRun, name: str, dtype: DType, device: torch.device) -> bool:
    try:
        with torch.no_grad():
            known, found = (_compute(ran, name, each, device) for each in (LONG, dtype))
    except Exception:  # whatever checks raise
        return False
    return all(map(_are_same, known, found))


def _compute(ran: RecordedRun, name: str, dtype: DType, device: torch.device) -> list[torch.Tensor]:
    """The results of a call whose tensor has another type."""
    out_names = ran.call.out_names()
    given = {**ran.call.arguments, **{each: value for each, value in ran.given.items() if each in ran.call.arguments}}

    def copy(each: Any) -> Any:
        return each.detach().to(device, copy=True) if isinstance(each, torch.Tensor) else each

    arguments = {each: torch.empty_like(value) if each in out_names else value for each, value in given.items()}
    arguments = pytree.tree_map(copy, {**arguments, name: given[name].to(getattr(torch, dtype.torch))})
    made = pytree.tree_leaves(OpCall(ran.call.overload, arguments).run())
    return [each.cpu() for each in made if isinstance(each, torch.Tensor)]


def _are_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    return bool(((one == other) | (one != one) & (other != other)).all())
