"""What running an old implementation told: the graph of each overload, and the calls that it was told from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from porter.core.dtypes import DType
from porter.mpsgraph.graph import Graph, Value


@dataclass(frozen=True)
class RecordedCall:
    """One call: the element type of its tensors, its arguments by name, and which case of the graph it took."""

    dtype: DType
    arguments: Mapping[str, Value]
    case: int


@dataclass(frozen=True)
class NotRecorded:
    """Calls of one element type that gave no graph, and why."""

    dtype: DType
    code: str
    reason: str


@dataclass(frozen=True)
class Recording:
    """One overload, by its name in the schema (`lerp.Scalar`)."""

    name: str
    graph: Graph
    seen: tuple[RecordedCall, ...] = ()
    left: tuple[NotRecorded, ...] = ()
    notes: tuple[str, ...] = field(default=())
