"""Calls of overloads that no sample makes, after those of one that samples call: a number for a tensor, in place, out=.

A row of its own often serves just such an overload: `eq.Scalar`, `relu_`, `angle.out`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from porter.recording.calls import OpCall

# Where a result goes and what it is: an overload that is given its result does not take them.
# Numbers that host code has no reason to have by itself.
_FRACTION, _WHOLE = 0.43, 11

_OPTIONS = frozenset({"dtype", "layout", "device", "pin_memory", "memory_format"})


def adapt_call(call: OpCall, name: str) -> OpCall | None:
    """The call as one of the overload of this name in native_functions.yaml: where it is another overload of the same
    torch that takes the same arguments, or numbers where the call has tensors. None where it is not.

    What it writes to is its own: a copy of the argument, or memory like the results of the call.
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
    except (RuntimeError, TypeError, ValueError, IndexError):  # a call that is refused gives no results to write over
        return None
    return OpCall(overload, {**given, **results}) if all(each.numel() for each in results.values()) else None


def _overload(name: str) -> torch._ops.OpOverload | None:
    base, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, base, None)
    found = getattr(packet, overload or "default", None)
    return found if isinstance(found, torch._ops.OpOverload) else None


def _match_arguments(call: OpCall, parameters: Sequence[Any]) -> dict[str, Any] | None:
    """The call's arguments as these parameters take them; None where one is missing, or one of them has no place."""
    given: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name in call.arguments:
            given[parameter.name] = _convert_argument(str(parameter.type), call.arguments[parameter.name])
        elif parameter.has_default_value():
            given[parameter.name] = parameter.default_value
        else:
            return None
    return given if call.arguments.keys() - given.keys() <= _OPTIONS and _have_types(given, parameters) else None


def _convert_argument(kind: str, value: Any) -> Any:
    """A number of a tensor's own category where a number is taken."""
    if "Tensor" in kind or not isinstance(value, torch.Tensor):
        return value
    return _FRACTION if value.is_floating_point() else torch.full((), _WHOLE, dtype=value.dtype).item()


def _have_types(given: Mapping[str, Any], parameters: Sequence[Any]) -> bool:
    """Whether tensors are where tensors are taken, and numbers only for what is a number."""
    for parameter in parameters:
        kind, value = str(parameter.type), given[parameter.name]
        is_number = isinstance(value, (bool, int, float, complex))
        if is_number and not any(word in kind for word in ("number", "int", "float", "bool")):
            return False
    return True


def _allocate_results(call: OpCall, names: Sequence[str]) -> dict[str, torch.Tensor]:
    """Memory for what the call gives, by the names it goes to. Raises what the call raises."""
    if not names:
        return {}
    found = [leaf for leaf in pytree.tree_leaves(call.run()) if isinstance(leaf, torch.Tensor)]
    return {name: torch.empty_like(each) for name, each in zip(names, found, strict=True)}
