"""What no recorded call shows of a row: values of flags, and numbers of dimensions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.aten.native_functions import NativeFunction
from porter.core.errors import PorterError
from porter.loops.program import Programs
from porter.metal.native.host_values import Names

_FLAGS = ("bool", "bool?", "str", "str?")


def refuse_unseen_flags(programs: Programs, function: NativeFunction, names: Names, before: str, after: str) -> None:
    """Raises PTR361 for a flag that all recorded calls give alike, and that the removed code reads."""
    calls = [call for case in programs.cases for call in case.calls]
    for argument in function.arguments:
        variable = names.variables.get(argument.name, "")
        values = {repr(call.others.get(argument.name)) for call in calls}
        if argument.type not in _FLAGS or not variable or len(values) != 1:
            continue
        used = re.compile(rf"\b{re.escape(variable)}\b")
        if len(used.findall(before)) > len(used.findall(after)):
            what = f"all recorded calls of {programs.name} give `{argument.name}` the value {values.pop()}"
            raise PorterError("PTR361", what, function.place, "See docs/errors/PTR361.md.")


def check_ranks(programs: Programs, names: Names, body: str, launch: str) -> tuple[str, tuple[str, ...]]:
    """A launch behind checks of the dimensions of tensors whose sizes it takes, where all recorded calls have as many;
    and what that takes away, in words.

    Nothing is known of other calls, unless the function refuses them itself.
    """
    limits = dict(_find_ranks(programs, names, body, launch))
    base = programs.name.partition(".")[0]
    checks = [
        f"TORCH_CHECK_NOT_IMPLEMENTED({names.member(tensor)}dim() == {rank}, "
        f'"{base}: expected {tensor} of {rank} dimensions, but got ", {names.member(tensor)}dim());'
        for tensor, rank in limits.items()
    ]
    notes = (
        f"{programs.name}: `{tensor}` of {rank} dimensions only, as in all recorded calls; the port refuses others"
        for tensor, rank in limits.items()
    )
    return "\n".join((*checks, launch)), tuple(notes)


def _find_ranks(programs: Programs, names: Names, body: str, launch: str) -> Iterator[tuple[str, int]]:
    """The tensors whose sizes a launch takes by dimension, with how many dimensions they have in all calls."""
    calls = [call for case in programs.cases for call in case.calls]
    for tensor in dict.fromkeys(name for call in calls for name in call.tensors):
        ranks = {len(call.tensors[tensor].shape) for call in calls if tensor in call.tensors}
        if tensor not in names.variables or tensor.startswith("result") or len(ranks) != 1:
            continue
        member, rank = names.member(tensor), ranks.pop()
        asked = rf"{re.escape(member)}(?:dim|ndimension)\(\)"
        if f"{member}size(" in launch and not re.search(rf"{asked}\s*==\s*{rank}\b", body):
            yield tensor, rank
