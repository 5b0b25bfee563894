"""Calls with other flags and whole numbers: those of other calls, both values of a flag, and small numbers.

What samples never combine, or never give, callers may. A number that all leave at its default, and a scalar or a whole
number that is the same in all, would look like a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from porter.recording.calls import OpCall
from porter.recording.effort import count_call
from porter.verdict.suite.children import survives_each

_MOST = 4  # values of an argument, if these are choices rather than sizes
_TRIED = 3  # values of an argument that a call is tried with, until the CPU accepts one
_FLAGS: Mapping[str, tuple[Any, ...]] = {"bool": (False, True), "Optional[bool]": (None, False, True)}
_KINDS = ("int", "SymInt", "str", "float", "number", *_FLAGS)
_SMALL: Mapping[str, tuple[Any, ...]] = {  # values of a number that has a default value
    "int": (0, 1, 2, -1), "SymInt": (0, 1, 2, -1), "float": (0.37, 2.0), "number": (2, 0.37),
}  # fmt: skip
_ALIKE: Mapping[str, tuple[Any, ...]] = {  # values of a number that is the same in all calls
    "int": (0, 1, 2), "SymInt": (0, 1, 2), "number": (2, 3, 5),  # which every element type has
}  # fmt: skip
_Choice = tuple[str, Any]


@dataclass
class SeenValues:
    """The values to give arguments of an overload; every change takes the next of them in turn.

    Arguments of `many` values are sizes rather than choices. Of others the schema says what to try.
    """

    values: Mapping[tuple[str, str], tuple[Any, ...]]
    many: frozenset[tuple[str, str]] = frozenset()
    _turns: dict[str, int] = field(default_factory=dict)
    _answers: dict[str, bool] = field(default_factory=dict)  # whether the CPU survives a choice

    @classmethod
    def of(cls, calls: Iterable[OpCall]) -> SeenValues:
        found: dict[tuple[str, str], dict[Any, None]] = {}
        more: dict[tuple[str, str], tuple[Any, ...]] = {}
        for call in calls:
            for argument in call.overload._schema.arguments:
                if str(argument.type) in _KINDS and argument.name in call.arguments:
                    key = call.name, argument.name
                    found.setdefault(key, {})[call.arguments[argument.name]] = None
                    alike = _ALIKE.get(str(argument.type), ()) if len(found[key]) == 1 else ()
                    more[key] = (*_list_choices(argument), *alike)
        few = {key: (*values, *more[key]) for key, values in found.items() if len(values) <= _MOST}
        listed = {key: tuple(dict.fromkeys(values)) for key, values in few.items()}
        many = frozenset(key for key, values in found.items() if len(values) > _MOST)
        return cls({key: values for key, values in listed.items() if len(values) > 1}, many)

    def change(self, call: OpCall) -> dict[str, Any]:
        """An argument of a call with another value that the CPU accepts; nothing if there is none."""
        others = self._list_survived(call)
        for _ in range(min(_TRIED, len(others))):
            turn = self._turns[call.name] = self._turns.get(call.name, -1) + 1
            changed = dict([others[turn % len(others)]])
            if _runs_on_cpu(with_arguments(call, changed)):
                return changed
        return {}

    def list_changes(self, call: OpCall, flags_alone: bool = False) -> Iterator[dict[str, Any]]:
        """Every value of an argument, of each alone, that a call has another of and the CPU accepts."""
        for name, value in self._list_survived(call):
            is_tried = isinstance(value, bool) or not flags_alone
            if is_tried and _runs_on_cpu(with_arguments(call, {name: value})):
                yield {name: value}

    def _list_others(self, call: OpCall) -> Iterator[_Choice]:
        lacks_tensors = _lacks_tensors(call)
        for argument in call.overload._schema.arguments:
            name, key = argument.name, (call.name, argument.name)
            if name not in call.arguments or key in self.many:
                continue
            values = self.values.get(key) or tuple(_list_choices(argument))
            others = (each for each in values if each != call.arguments[name])
            yield from ((name, each) for each in others if not (lacks_tensors and isinstance(each, bool)))

    def _list_survived(self, call: OpCall) -> list[_Choice]:
        """The choices that the CPU survives, which is asked once for calls with the same tensors."""
        given = [(name, each.ndim) for name, each in call.tensors().items()]
        keys = {f"{call.name} {choice} {given}": choice for choice in self._list_others(call)}
        new = [key for key in keys if key not in self._answers]
        runs = [partial(_runs_on_cpu, with_arguments(call, dict([keys[key]]))) for key in new]
        self._answers |= zip(new, survives_each(runs), strict=True)
        return [choice for key, choice in keys.items() if self._answers[key]]


def _list_choices(argument: Any) -> Iterator[Any]:
    """The values of a flag; small ones of a number that callers may leave out."""
    kind = str(argument.type)
    yield from _FLAGS.get(kind, ())
    if argument.has_default_value():
        yield from _SMALL.get(kind, ())


def with_arguments(call: OpCall, changed: Mapping[str, Any]) -> OpCall:
    """A call with some of its arguments changed."""
    return OpCall(call.overload, {**call.arguments, **changed})


def _lacks_tensors(call: OpCall) -> bool:
    """Whether a call leaves out tensors, or has empty ones, that it may need with another flag."""
    kinds = {each.name for each in call.overload._schema.arguments if str(each.type) == "Optional[Tensor]"}
    given = (call.arguments.get(name) for name in kinds)
    return any(each is None or not each.numel() for each in given)


def _runs_on_cpu(call: OpCall) -> bool:
    count_call(sum(each.numel() for each in call.tensors().values()))
    arguments = pytree.tree_map(lambda each: each.cpu() if isinstance(each, torch.Tensor) else each, call.arguments)
    with suppress(Exception), torch.no_grad():  # whatever the CPU's checks raise
        OpCall(call.overload, arguments).run()
        return True
    return False
