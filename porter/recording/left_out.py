"""Calls that leave out tensors which others give: made of recorded ones, and computed by the programs of those."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, combinations, product
from typing import Any

import torch

from porter.loops.host_values import Arguments
from porter.loops.optional import (
    NEUTRAL,
    allow_left_out,
    is_explained,
    list_left_out,
    list_read,
    list_readers,
)
from porter.loops.program import SymbolicProgram, list_loaded
from porter.recording.calls import OpCall

_MAX_READ = 3  # tensors that a call leaves out, to find numbers for
_MANY = 4  # tensors and results, of which not all choices are tried


def vary_given(call: OpCall) -> Iterator[OpCall]:
    """Calls without one of the tensors that may be left out, without two and without all; so for results of a mask."""
    switches: list[_Switch] = [*_list_tensors(call), *_list_results(call)]
    counts = range(1, len(switches) + 1) if len(switches) <= _MANY else (1, 2, len(switches))
    for chosen in chain.from_iterable(combinations(switches, count) for count in counts):
        yield _turn_all(chosen, call)


def drop_empty(call: OpCall) -> Iterator[OpCall]:
    """The call without tensors of no elements that may be left out, if it has any."""
    switches = [each for each in _list_tensors(call) if not call.arguments[each.args[0]].numel()]
    if switches:
        yield _turn_all(switches, call)


_Switch = Callable[[OpCall], OpCall]


def _turn_all(switches: Sequence[_Switch], call: OpCall) -> OpCall:
    for switch in switches:
        call = switch(call)
    return call


def list_optional(call: OpCall) -> Iterator[str]:
    """The tensors of a call that its schema allows to leave out."""
    for argument in call.overload._schema.arguments:
        if str(argument.type) == "Optional[Tensor]" and isinstance(call.arguments.get(argument.name), torch.Tensor):
            yield argument.name


def leave_out_tensors(call: OpCall, names: Iterable[str]) -> OpCall:
    """The call without some tensors."""
    return OpCall(call.overload, {**call.arguments, **dict.fromkeys(names)})


def ask_alone(call: OpCall) -> Iterator[OpCall]:
    """The call for each of its results alone, if a mask says which it asks for."""
    for name, value in _list_masks(call):
        for at in range(len(value)):
            yield call.with_argument(name, [i == at for i in range(len(value))])


def _list_tensors(call: OpCall) -> Iterator[partial[OpCall]]:
    for name in list_optional(call):
        yield partial(_leave_out, name)


def _list_results(call: OpCall) -> Iterator[_Switch]:
    """What turns off results that a mask asks for."""
    for name, value in _list_masks(call):
        for i in (i for i, each in enumerate(value) if each):
            yield partial(_turn_off, name, i)


def _list_masks(call: OpCall) -> Iterator[tuple[str, Sequence[bool]]]:
    """The arguments that say which results a call asks for: lists of as many flags as there are results."""
    count = len(call.overload._schema.returns)
    for name, value in call.arguments.items():
        if isinstance(value, (list, tuple)) and len(value) == count > 1 and all(map(_is_flag, value)):
            yield name, value


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _leave_out(name: str, call: OpCall) -> OpCall:
    return call.with_argument(name, None)


def _turn_off(name: str, at: int, call: OpCall) -> OpCall:
    return call.with_argument(name, [each and i != at for i, each in enumerate(call.arguments[name])])


def compute_left_out(
    program: SymbolicProgram, call: Arguments, differs: Callable[[SymbolicProgram], bool]
) -> SymbolicProgram | None:
    """The program that computes a call too which leaves tensors out; None if there is none, or if several do.

    `differs` is whether a program differs from the call. Where the other values are huge, NaN or none, any number
    seems to stand for a tensor. Of one that nothing which the call asks for is computed from, any does, until a call
    tells which.
    """
    missing = list_left_out(program, call)
    if not missing:
        return None
    loaded = list_loaded(program).intersection(missing)
    unsettled = [name for name in missing if name in loaded and not is_explained(program, name)]
    read = dict.fromkeys((*list_read(program, missing), *unsettled))
    needed = [name for name in read if not list_readers(program, name).isdisjoint(call.tensors)]
    if len(needed) > _MAX_READ:
        return None
    found = None
    for numbers in product(NEUTRAL, repeat=len(needed)):
        neutral = {**dict.fromkeys(read, NEUTRAL[0]), **dict(zip(needed, numbers, strict=True))}
        made = allow_left_out(program, missing, neutral)
        if not differs(made):
            if found is not None:
                return None
            found = made
    return found
