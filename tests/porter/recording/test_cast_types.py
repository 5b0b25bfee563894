"""Floating types that tensors may have where graphs cast them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from aten_overlay.apple.mpsgraph.recorder import PLACEHOLDER, GraphRun, Node, RecordedGraph
from porter.core import dtypes
from porter.core.dtypes import FLOAT, HALF, DType
from porter.loops.expressions import Buffer
from porter.loops.host_values import Arguments, TensorValue
from porter.loops.program import ArgumentBuffer
from porter.recording.calls import OpCall
from porter.recording.conversions import find_cast_types
from porter.recording.runs import RecordedRun

FED, CAST, OTHER = Ref(0, 0), "castTensor:toType", "squareRootWithTensor"


class OldCode:
    """Divides a tensor by another one, which a graph reads; it casts what is of another type, if it is to."""

    def __init__(self, casts: bool = True, reads: bool = True, scale: float = 1, refuses: bool = False) -> None:
        self.casts, self.reads, self.scale, self.refuses = casts, reads, scale, refuses

    def run(self, call: OpCall) -> RecordedRun:
        given = call.tensors()
        is_mixed = given["self"].dtype != given["other"].dtype
        if is_mixed and self.refuses:
            raise RuntimeError("expected one type")
        result = given["self"] / given["other"].to(given["self"].dtype) * (self.scale if is_mixed else 1)
        nodes = [Node(f"{PLACEHOLDER}:dataType", ([2],), (None,), (torch.float32,))]
        if self.reads:
            selectors = (CAST, CAST) if is_mixed and self.casts else (CAST, OTHER)
            nodes += [Node(each, (FED, 0), (None,), (torch.float32,)) for each in selectors]
        graph = GraphRun(RecordedGraph(nodes), {FED: given["other"].data_ptr()}, {FED: given["other"]}, {})
        return RecordedRun(call, given, (graph,), (result,), False)


def make_call(ours: torch.dtype, theirs: torch.dtype) -> OpCall:
    tensors = {"self": torch.tensor([1.0, 3.0]).to(ours), "other": torch.tensor([0.3, 7.0]).to(theirs)}
    return OpCall(torch.ops.aten.div.Tensor, tensors)


ALIKE = [(torch.float32, torch.float32), (torch.float16, torch.float16)]


def find(old: OldCode, types: list[tuple[torch.dtype, torch.dtype]]) -> dict[str, tuple[DType, ...]]:
    runs = [old.run(make_call(*each)) for each in types]
    calls = [Arguments({name: _read(value) for name, value in ran.given.items()}, {}) for ran in runs]
    roles = {Buffer(i): ArgumentBuffer(name) for i, name in enumerate(("self", "other"))}
    nest = SimpleNamespace(nest=SimpleNamespace(reads=lambda: list(roles)))
    programs: Any = SimpleNamespace(cases=[SimpleNamespace(key="self", nests=[nest], roles=roles)], calls=calls)
    return find_cast_types(programs, runs, old.run)


def _read(value: torch.Tensor) -> TensorValue:
    return TensorValue(tuple(value.shape), dtypes.BY_TORCH[str(value.dtype).removeprefix("torch.")])


def test_a_tensor_that_graphs_cast_may_have_the_types_of_all_calls() -> None:
    assert find(OldCode(), ALIKE) == {"other": (FLOAT, HALF)}


@pytest.mark.parametrize(
    ("old", "types"),
    [
        (OldCode(casts=False), ALIKE),
        (OldCode(scale=2), ALIKE),
        (OldCode(refuses=True), ALIKE),
        (OldCode(reads=False), ALIKE),
        (OldCode(), ALIKE[:1]),
        (OldCode(), [(torch.float32, torch.float16), *ALIKE]),
        (OldCode(), [(torch.int64, torch.int64), *ALIKE]),
    ],
    ids=["read as it is", "other results", "refused", "not read", "one type", "types that differ", "integers"],
)
def test_others_have_that_of_the_first(old: OldCode, types: list[tuple[torch.dtype, torch.dtype]]) -> None:
    assert find(old, types) == {}
