"""Calls made of others: for overloads that no sample calls, without optional tensors, with other flags and numbers.

An overload with a number for a tensor, in place or with out= often has a row of its own: `eq.Scalar`, `relu_`. What
samples never combine, or never give, callers may: a number that all leave at its default would look like a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, combinations
from typing import Any

import torch
from torch.utils import _pytree as pytree

from porter.aten.declarations import TENSOR_OPTIONS
from porter.recording.calls import OpCall, count_call
from porter.verdict.suite.children import survives_each
from porter.verdict.suite.leaves import list_tensors

# Numbers unlikely to appear in host code.
_FRACTION, _WHOLE = 0.43, 11
_MANY = 4  # tensors and results, of which not all choices are tried
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


def adapt_call(call: OpCall, name: str) -> OpCall | None:
    """The same call for another overload, named as in native_functions.yaml. It has to take the same arguments, or
    numbers in place of tensors; otherwise None.

    The new call writes to its own memory: a copy of the argument, or new result tensors.
    """
    overload = _overload(name)
    if overload is None or overload == call.overload:
        return None
    schema = overload._schema.arguments
    given = _match_arguments(call, [a for a in schema if not a.is_out])
    if given is None:
        return None
    for argument in schema:
        value = given.get(argument.name)
        if argument.alias_info and argument.alias_info.is_write and isinstance(value, torch.Tensor):
            given[argument.name] = value.clone()
    try:
        results = _allocate_results(call, [a.name for a in schema if a.is_out])
    except (RuntimeError, TypeError, ValueError, IndexError):  # without results there is nothing to allocate for out=
        return None
    return OpCall(overload, {**given, **results}) if all(each.numel() for each in results.values()) else None


def adapt_with_type(call: OpCall, name: str) -> OpCall | None:
    """The same call for an overload that differs by an argument for the result's type: that of the first tensor."""
    overload = _overload(name)
    if overload is None:
        return None
    schema = overload._schema.arguments
    added = [a.name for a in schema if a.name not in call.arguments]
    tensor = next(iter(call.tensors().values()), None)
    if added != ["dtype"] or len(schema) != len(call.arguments) + 1 or tensor is None:
        return None
    return OpCall(overload, {**call.arguments, "dtype": tensor.dtype})


def _overload(name: str) -> torch._ops.OpOverload | None:
    base, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, base, None)
    found = getattr(packet, overload or "default", None)
    return found if isinstance(found, torch._ops.OpOverload) else None


def _match_arguments(call: OpCall, parameters: Sequence[Any]) -> dict[str, Any] | None:
    """The call's arguments for these parameters; None if one is missing or left over."""
    given: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name in call.arguments:
            given[parameter.name] = _convert_argument(str(parameter.type), call.arguments[parameter.name])
        elif parameter.has_default_value():
            given[parameter.name] = parameter.default_value
        else:
            return None
    return given if call.arguments.keys() - given.keys() <= TENSOR_OPTIONS and _have_types(given, parameters) else None


def _convert_argument(kind: str, value: Any) -> Any:
    """Replaces a tensor with a number of its category if the parameter is a number."""
    if "Tensor" in kind or not isinstance(value, torch.Tensor):
        return value
    return _FRACTION if value.is_floating_point() else torch.full((), _WHOLE, dtype=value.dtype).item()


def _have_types(given: Mapping[str, Any], parameters: Sequence[Any]) -> bool:
    """Whether numbers are passed only to numeric parameters."""
    for parameter in parameters:
        kind, value = str(parameter.type), given[parameter.name]
        is_number = isinstance(value, (bool, int, float, complex))
        if is_number and not any(word in kind for word in ("number", "int", "float", "bool")):
            return False
    return True


def _allocate_results(call: OpCall, names: Sequence[str]) -> dict[str, torch.Tensor]:
    """Allocates tensors for the results of a call, by out= name. Raises what the call raises."""
    if not names:
        return {}
    found = list_tensors(call.run())
    return {name: torch.empty_like(each) for name, each in zip(names, found, strict=True)}


def vary_given(call: OpCall) -> Iterator[OpCall]:
    """Calls without one of the tensors that may be left out, without two and without all; so for results of a mask."""
    results = [(name, i) for name, flags in _list_masks(call) for i, is_asked in enumerate(flags) if is_asked]
    switches: list[tuple[str, int | None]] = [*((name, None) for name in list_optional(call)), *results]
    counts = range(1, len(switches) + 1) if len(switches) <= _MANY else (1, 2, len(switches))
    for chosen in chain.from_iterable(combinations(switches, count) for count in counts):
        varied = call
        for name, result in chosen:
            flags = () if result is None else varied.arguments[name]
            value = [is_asked and i != result for i, is_asked in enumerate(flags)]
            varied = varied.with_arguments({name: None if result is None else value})
        yield varied


def drop_empty(call: OpCall) -> Iterator[OpCall]:
    """The call without tensors of no elements that may be left out, if it has any."""
    empty = [name for name in list_optional(call) if not call.arguments[name].numel()]
    if empty:
        yield call.with_arguments(dict.fromkeys(empty))


def list_optional(call: OpCall) -> Iterator[str]:
    """The tensors of a call that its schema allows to leave out."""
    for argument in call.overload._schema.arguments:
        if str(argument.type) == "Optional[Tensor]" and isinstance(call.arguments.get(argument.name), torch.Tensor):
            yield argument.name


def ask_alone(call: OpCall) -> Iterator[OpCall]:
    """The call for each of its results alone, if a mask says which it asks for."""
    for name, value in _list_masks(call):
        for at in range(len(value)):
            yield call.with_arguments({name: [i == at for i in range(len(value))]})


def _list_masks(call: OpCall) -> Iterator[tuple[str, Sequence[bool]]]:
    """The arguments that say which results a call asks for: lists of as many flags as there are results."""
    count = len(call.overload._schema.returns)
    for name, value in call.arguments.items():
        if (
            isinstance(value, (list, tuple))
            and len(value) == count > 1
            and all(isinstance(flag, bool) for flag in value)
        ):
            yield name, value


_Choice = tuple[str, Any]


@dataclass
class ObservedValues:
    """The values to give arguments of an overload; every change takes the next of them in turn.

    Arguments of `many` values are sizes rather than choices. Of others the schema says what to try.
    """

    values: Mapping[tuple[str, str], tuple[Any, ...]]
    many: frozenset[tuple[str, str]] = frozenset()
    _turns: dict[str, int] = field(default_factory=dict)
    _answers: dict[str, bool] = field(default_factory=dict)  # whether the CPU survives a choice

    @classmethod
    def of(cls, calls: Iterable[OpCall]) -> ObservedValues:
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
            if _runs_on_cpu(call.with_arguments(changed)):
                return changed
        return {}

    def list_changes(self, call: OpCall, flags_alone: bool = False) -> Iterator[dict[str, Any]]:
        """Every value of an argument, of each alone, that a call has another of and the CPU accepts."""
        for name, value in self._list_survived(call):
            is_tried = isinstance(value, bool) or not flags_alone
            if is_tried and _runs_on_cpu(call.with_arguments({name: value})):
                yield {name: value}

    def _list_others(self, call: OpCall) -> Iterator[_Choice]:
        # Whether a call leaves out tensors, or has empty ones, that it may need with another flag
        kinds = {each.name for each in call.overload._schema.arguments if str(each.type) == "Optional[Tensor]"}
        given = (call.arguments.get(name) for name in kinds)
        lacks_tensors = any(each is None or not each.numel() for each in given)
        for argument in call.overload._schema.arguments:
            name, key = argument.name, (call.name, argument.name)
            if name not in call.arguments or key in self.many:
                continue
            values = self.values.get(key) or tuple(_list_choices(argument))
            others = (each for each in values if each != call.arguments[name])
            yield from ((name, each) for each in others if not (lacks_tensors and isinstance(each, bool)))

    def _list_survived(self, call: OpCall) -> list[_Choice]:
        """The choices that the CPU survives, which is asked once for calls with the same tensors.

        What it does with a number depends on sizes: `_fft_c2r` writes beyond a result that these do not go with.
        """
        ranks = [(name, tensor.ndim) for name, tensor in call.tensors().items()]
        shapes = [(name, tuple(tensor.shape)) for name, tensor in call.tensors().items()]
        keys = {
            f"{call.name} {choice} {ranks if isinstance(choice[1], bool) else shapes}": choice
            for choice in self._list_others(call)
        }
        new = [key for key in keys if key not in self._answers]
        runs = [partial(_runs_on_cpu, call.with_arguments(dict([keys[key]]))) for key in new]
        self._answers |= zip(new, survives_each(runs), strict=True)
        return [choice for key, choice in keys.items() if self._answers[key]]


def _list_choices(argument: Any) -> Iterator[Any]:
    """The values of a flag; small ones of a number that callers may leave out."""
    kind = str(argument.type)
    yield from _FLAGS.get(kind, ())
    if argument.has_default_value():
        yield from _SMALL.get(kind, ())


def _runs_on_cpu(call: OpCall) -> bool:
    count_call(sum(each.numel() for each in call.tensors().values()))
    arguments = pytree.tree_map(lambda each: each.cpu() if isinstance(each, torch.Tensor) else each, call.arguments)
    with suppress(Exception), torch.no_grad():  # whatever the CPU's checks raise
        OpCall(call.overload, arguments).run()
        return True
    return False
