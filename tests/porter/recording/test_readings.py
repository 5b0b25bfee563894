"""Where the source is not read, a plan takes the graph that runs of the old code show, and says so."""

from __future__ import annotations

import pytest

from porter.aten.operator import ServedFunction
from porter.core import dtypes
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import OPERATIONS
from porter.mpsgraph.graph import Call, Case, Graph, Input, Literal
from porter.plan.planner import plan_operator
from porter.recording.readings import read_source_graph

FILE = f"{OPERATIONS}/BinaryOps.mm"


@pytest.fixture
def unread() -> Checkout:
    """The embedded fork with a loop, which the evaluator does not read, in the implementation of atan2."""
    fork = Checkout(EMBEDDED_FORK, "test")
    text = fork.read(FILE)
    body = text.index("{\n", text.index("TORCH_IMPL_FUNC(atan2_out_mps)")) + 2
    return fork.layer({FILE: f"{text[:body]}  while (self.numel() < 0) {{\n  }}\n{text[body:]}"})


def of_runs(op: str) -> Graph:
    def expr(dtype: dtypes.DType) -> Call:
        return Call(op, (Input("self", dtype), Input("other", dtype)), dtype)

    return Graph(("self", "other"), (), tuple(Case(dtype, (), expr(dtype)) for dtype in dtypes.ALL))


def test_unread_sources_are_replaced_by_recordings(unread: Checkout) -> None:
    asked: list[ServedFunction] = []

    def recorded(row: ServedFunction) -> Graph:
        asked.append(row)
        return of_runs("atan2")

    plan = plan_operator(unread, "atan2", recorded=recorded)
    assert [row.function.name for row in asked] == ["atan2.out"]
    with pytest.raises(PorterError):
        read_source_graph(unread, asked[0])
    assert [functor.origin for functor in plan.functors] == ["Metal's own function, which the old graph names"]
    assert "the graph is that of its runs" in plan.notes[0]
    assert "PTR033" in plan.notes[0]


def test_without_recordings_other_sources_are_used(unread: Checkout) -> None:
    plan = plan_operator(unread, "atan2")
    assert "ATen's CPU kernel" in plan.functors[0].origin
    assert "its runs are not recorded" in plan.notes[0]


def test_a_graph_that_mixes_elements_is_no_candidate(unread: Checkout) -> None:
    def expr(dtype: dtypes.DType) -> Call:
        return Call("reductionSumWithTensor:axes", (Input("self", dtype), Literal((0,), dtype)), dtype)

    mixing = Graph(("self", "other"), (), tuple(Case(dtype, (), expr(dtype)) for dtype in dtypes.ALL))
    plan = plan_operator(unread, "atan2", recorded=lambda row: mixing)
    assert "ATen's CPU kernel" in plan.functors[0].origin


def test_a_readable_source_needs_no_recording() -> None:
    def never_asked(row: ServedFunction) -> Graph:
        raise AssertionError(row.function.name)

    assert plan_operator(Checkout(EMBEDDED_FORK, "test"), "atan2", recorded=never_asked).notes == ()
