"""Calls of which nothing is known: those whose run raises, and those that no program computes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from porter.core.errors import PorterError
from porter.loops.host_values import Arguments, ArgumentValue
from porter.loops.program import LostCall
from porter.recording.call_programs import read_call_arguments
from porter.recording.calls import OpCall

_MOST = 60  # of an overload that are kept
_SMALL = 4  # a whole number that may be a choice


@dataclass(frozen=True)
class Losses:
    """Collects lost calls by overload, one of each kind: of the same choices, ranks, types and reason."""

    found: dict[str, dict[str, LostCall]] = field(default_factory=dict)

    def add_raised(self, call: OpCall, error: Exception) -> None:
        """Adds a call whose run raised."""
        try:
            arguments = read_call_arguments(call, {})
        except PorterError:  # no kernel takes elements of its type
            return
        self.add(call.name, arguments, f"{type(error).__name__}: {error}".splitlines()[0])

    def add(self, name: str, arguments: Arguments, why: str) -> None:
        kinds = {key: _kind(value) for key, value in arguments.others.items()}
        tensors = [(key, len(value.shape), str(value.dtype)) for key, value in arguments.tensors.items()]
        own = self.found.setdefault(name, {})
        if len(own) < _MOST:
            own.setdefault(f"{kinds} {tensors}", LostCall(arguments, why))

    def add_all(self, name: str, calls: Iterable[Arguments], why: str) -> None:
        for each in calls:
            self.add(name, each, why)

    def list_of(self, name: str) -> tuple[LostCall, ...]:
        """The lost calls of an overload."""
        return tuple(self.found.get(name, {}).values())


def _kind(value: ArgumentValue) -> object:
    if isinstance(value, (bool, str, type(None))):
        return value
    return value if isinstance(value, int) and abs(value) <= _SMALL else type(value)
