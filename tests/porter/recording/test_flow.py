"""Other kernels beside a call's graphs: harmless unless a graph reads, or a result holds, what one wrote."""

from __future__ import annotations

import pytest
import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from aten_overlay.apple.mpsgraph.recorder import PLACEHOLDER, GraphRun, Node, RecordedGraph
from porter.core.errors import PorterError
from porter.recording.runs import check_flow, same_elements

X = torch.tensor([1.0, float("nan"), 3.0])
SELF, OUT = 0x100, 0x200
FED, TWICE = Ref(0, 0), Ref(1, 0)


def run(fed: torch.Tensor, feeds: int = SELF, results: int = OUT) -> GraphRun:
    """A graph that doubles its placeholder."""
    nodes = [
        Node(PLACEHOLDER, (), (None,), (torch.float32,)),
        Node("additionWithPrimaryTensor:secondaryTensor", (FED, FED), (None,), (torch.float32,)),
    ]
    return GraphRun(RecordedGraph(nodes), {FED: feeds}, {FED: fed}, {TWICE: results})


class At(torch.Tensor):
    """A result whose memory is where a graph wrote."""

    def data_ptr(self) -> int:
        return OUT


def at_out(value: torch.Tensor) -> torch.Tensor:
    return value.as_subclass(At)


def test_a_graph_may_write_to_fresh_memory() -> None:
    check_flow([run(X)], {SELF: X}, [at_out(2 * X)])


def test_a_graph_may_read_the_result_of_another() -> None:
    check_flow([run(X), run(2 * X, OUT)], {SELF: X}, [at_out(4 * X)])


def test_a_graph_may_read_a_copy_of_an_argument() -> None:
    check_flow([run(X, 0x300)], {SELF: X}, [at_out(2 * X)])


@pytest.mark.parametrize(
    ("runs", "result", "told"),
    [
        ([], X, "no graph"),
        ([run(X + 1)], 2 * X + 2, "changes the input of a graph"),
        ([run(X), run(5 * X, OUT)], 10 * X, "changes the input of a graph"),
        ([run(X + 1, 0x300)], 2 * X + 2, "computes the input of a graph"),
        ([run(X)], 2 * X + 1, "changes a result"),
    ],
)
def test_values_written_by_other_kernels_are_refused(runs: list[GraphRun], result: torch.Tensor, told: str) -> None:
    with pytest.raises(PorterError, match=told) as caught:
        check_flow(runs, {SELF: X}, [at_out(result)])
    assert caught.value.code == "PTR135"


def test_elements_are_compared_in_order_and_empty_never_matches() -> None:
    assert same_elements(X, X.reshape(3, 1))
    assert not same_elements(X, X.flip(0))
    assert not same_elements(X, X[:2])
    assert not same_elements(torch.empty(0), torch.empty(0))


def test_a_number_that_host_code_makes_is_no_value_of_another_kernel() -> None:
    check_flow([run(X + 1, 0x300)], {SELF: X}, [at_out(2 * X + 2)], made={0x300})
