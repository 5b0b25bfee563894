"""Adapts calls to overloads that no sample calls: a number for a tensor, in place, out=.

Such an overload often has a row of its own: `eq.Scalar`, `relu_`, `angle.out`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from porter.aten.declarations import TENSOR_OPTIONS
from porter.recording.calls import OpCall

# Numbers unlikely to appear in host code.
_FRACTION, _WHOLE = 0.43, 11


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
    found = [leaf for leaf in pytree.tree_leaves(call.run()) if isinstance(leaf, torch.Tensor)]
    return {name: torch.empty_like(each) for name, each in zip(names, found, strict=True)}
