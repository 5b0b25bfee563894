"""Arguments that a graph expands before all else: by which of their dimensions, in every call of an operator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from porter.core.errors import PorterError
from porter.loops.host_values import Arguments, TensorValue

Shape = tuple[int, ...]
_RESULT = "result0"


def list_own_dims(own: Shape, shape: Shape, result: Shape) -> tuple[int, ...]:
    """How many of the last dimensions of an expanded argument may be its own, if the others are those of a result."""
    if len(shape) != len(result):
        return ()
    counts = range(min(len(own), len(shape)) + 1)
    return tuple(n for n in counts if shape == (*result[: len(result) - n], *own[len(own) - n :]))


def count_own_dims(calls: Sequence[Arguments]) -> dict[str, int]:
    """The arguments that calls expand, and how many of their last dimensions are their own.

    As many of each argument, if they can be; none of those of which all are in every call, so that the result says
    nothing of them. Raises PTR361 if these are not the same in all calls.
    """
    expanded = dict.fromkeys(name for call in calls for name, value in call.tensors.items() if value.own is not None)
    allowed = {
        name: _intersect(_list_allowed(name, call) for call in calls if name in call.tensors) for name in expanded
    }
    for name, counts in allowed.items():
        if not counts:
            what = f"the dimensions that `{name}` is expanded by differ between recorded calls"
            raise PorterError("PTR361", what, hint="See docs/errors/PTR361.md.")
    shared = _intersect(allowed.values())
    found = {name: min(shared or counts) for name, counts in allowed.items()}
    ranks = {name: max(len(call.tensors[name].shape) for call in calls if name in call.tensors) for name in found}
    return {name: own for name, own in found.items() if own < ranks[name]}


def _list_allowed(name: str, call: Arguments) -> tuple[int, ...]:
    value = call.tensors[name]
    result = call.tensors.get(_RESULT, TensorValue((), value.dtype))
    return list_own_dims(value.shape if value.own is None else value.own, value.shape, result.shape)


def _intersect(found: Iterable[Iterable[int]]) -> set[int]:
    sets = [set(each) for each in found]
    return set.intersection(*sets) if sets else set()
