"""Recordings as JSON values and back, without loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from porter.aten.condition import Condition
from porter.core import dtypes
from porter.core.dtypes import DType
from porter.core.errors import Place
from porter.mpsgraph import graph, recording

_KIND = "is"
_CLASSES: Mapping[str, Any] = {
    each.__name__: each
    for each in (
        graph.Input, graph.Scalar, graph.Constant, graph.Literal, graph.Untold, graph.Call, graph.Cast, Condition,
        graph.Case, graph.Refusal, graph.Graph, recording.Seen, recording.Left, recording.Recording, Place,
    )
}  # fmt: skip


def to_object(value: Any) -> Any:
    """A value made of dataclasses, tuples, mappings and plain values, as JSON has it."""
    if isinstance(value, DType):
        return {_KIND: "DType", "metal": value.metal}
    if is_dataclass(value) and not isinstance(value, type):
        return {_KIND: type(value).__name__, **{f.name: to_object(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, Mapping):
        return {_KIND: "Mapping", "items": [[key, to_object(each)] for key, each in value.items()]}
    return [to_object(each) for each in value] if isinstance(value, tuple) else value


def from_object(value: Any) -> Any:
    """The value that `to_object` was given. Raises KeyError or TypeError for anything else."""
    if isinstance(value, list):
        return tuple(map(from_object, value))
    if not isinstance(value, dict):
        return value
    kind = value[_KIND]
    if kind == "DType":
        return dtypes.BY_METAL[value["metal"]]
    if kind == "Mapping":
        return {key: from_object(each) for key, each in value["items"]}
    return _CLASSES[kind](**{name: from_object(each) for name, each in value.items() if name != _KIND})
