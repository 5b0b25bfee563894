"""Numbers that host code makes of sizes, and not those that another kernel computes of elements."""

from __future__ import annotations

from collections.abc import Callable

import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from aten_overlay.apple.mpsgraph.recorder import PLACEHOLDER, GraphRun, Node, RecordedGraph
from porter.recording.call_programs import find_made, with_other_elements
from porter.recording.calls import OpCall
from porter.recording.runs import RecordedRun

FED, MADE = Ref(0, 0), 0x300


def runner(number: Callable[[torch.Tensor], float]) -> Callable[[OpCall], RecordedRun]:
    """Runs a call whose graph is fed a number that host code has from its tensor."""

    def run(call: OpCall) -> RecordedRun:
        value = torch.tensor([number(call.arguments["self"])])
        graph = RecordedGraph([Node(PLACEHOLDER, (), (None,), (torch.float32,))])
        return RecordedRun(call, {}, (GraphRun(graph, {FED: MADE}, {FED: value}, {}),), (), others=True)

    return run


CALL = OpCall(torch.ops.aten.abs.default, {"self": torch.tensor([1.0, 2.0, 4.0, 8.0])})


def test_a_number_of_sizes_is_made() -> None:
    run = runner(lambda tensor: float(tensor.numel()))
    assert find_made(run(CALL), run) == {MADE}


def test_a_number_of_elements_is_not() -> None:
    run = runner(lambda tensor: float(tensor.sum()))
    assert find_made(run(CALL), run) == frozenset()


def test_nothing_is_known_of_code_that_refuses_the_elements() -> None:
    def refuse(call: OpCall) -> RecordedRun:
        raise RuntimeError(call.name)

    assert find_made(runner(lambda tensor: 1.0)(CALL), refuse) == frozenset()


def test_other_elements_are_of_the_tensor_itself() -> None:
    given = torch.tensor([1, 5, 5, 7])
    changed = with_other_elements(OpCall(torch.ops.aten.abs.default, {"self": given})).arguments["self"]
    assert changed.shape == given.shape and set(changed.tolist()) <= set(given.tolist())
