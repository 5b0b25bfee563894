"""Calls with the flags and whole numbers of other calls: what samples never combine, callers may.

A number that samples of one kind leave at its default would look like a constant there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from porter.recording.calls import OpCall

_MOST = 4  # values of an argument, if these are choices rather than sizes
_KINDS = ("int", "SymInt", "bool", "str")


@dataclass
class SeenValues:
    """The values that arguments of an overload have in some calls; every change takes the next of them in turn."""

    values: Mapping[tuple[str, str], tuple[Any, ...]]
    _turns: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, calls: Iterable[OpCall]) -> SeenValues:
        found: dict[tuple[str, str], dict[Any, None]] = {}
        for call in calls:
            for argument in call.overload._schema.arguments:
                if str(argument.type) in _KINDS and argument.name in call.arguments:
                    found.setdefault((call.name, argument.name), {})[call.arguments[argument.name]] = None
        return cls({key: tuple(values) for key, values in found.items() if 1 < len(values) <= _MOST})

    def change(self, call: OpCall) -> dict[str, Any]:
        """An argument of a call with another value that the CPU accepts; nothing if there is none."""
        lacks_tensors = _lacks_tensors(call)
        others = [
            (name, value)
            for (overload, name), values in self.values.items()
            for value in values
            if overload == call.name and name in call.arguments and value != call.arguments[name]
            if not (lacks_tensors and isinstance(value, bool))
        ]
        turn = self._turns[call.name] = self._turns.get(call.name, -1) + 1
        changed = dict([others[turn % len(others)]]) if others else {}
        return changed if changed and _runs_on_cpu(with_arguments(call, changed)) else {}


def with_arguments(call: OpCall, changed: Mapping[str, Any]) -> OpCall:
    """A call with some of its arguments changed."""
    return OpCall(call.overload, {**call.arguments, **changed})


def _lacks_tensors(call: OpCall) -> bool:
    """Whether a call leaves out tensors, or has empty ones, that it may need with another flag.

    The CPU cannot be asked: some of its kernels read these without a check, and end the process.
    """
    kinds = {each.name for each in call.overload._schema.arguments if str(each.type) == "Optional[Tensor]"}
    given = (call.arguments.get(name) for name in kinds)
    return any(each is None or not each.numel() for each in given)


def _runs_on_cpu(call: OpCall) -> bool:
    arguments = pytree.tree_map(lambda each: each.cpu() if isinstance(each, torch.Tensor) else each, call.arguments)
    with suppress(Exception), torch.no_grad():  # whatever the CPU's checks raise
        OpCall(call.overload, arguments).run()
        return True
    return False
