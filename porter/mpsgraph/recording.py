"""What was recorded by running an old implementation: the graph of each overload, and the calls it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from porter.core.dtypes import DType
from porter.mpsgraph.graph import Graph, Value


@dataclass(frozen=True)
class CallSummary:
    """One call: the element type of its tensors, its arguments by name, and the case of the graph it took."""

    dtype: DType
    arguments: Mapping[str, Value]
    case: int


@dataclass(frozen=True)
class NotRecorded:
    """Why calls of one element type gave no graph."""

    dtype: DType
    code: str
    reason: str


@dataclass(frozen=True)
class LoopForm:
    """The shapes of a call's tensors, its graphs as fused kernels in lines of pseudocode, and what those cost."""

    shapes: str
    lines: tuple[str, ...]
    cost: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recording:
    """The recording of one overload, with its name in the schema (`lerp.Scalar`)."""

    name: str
    graph: Graph
    seen: tuple[CallSummary, ...] = ()
    left: tuple[NotRecorded, ...] = ()
    notes: tuple[str, ...] = field(default=())
    loop_form: LoopForm | None = None  # of the first call
