"""Calls are run until some of each ranks of tensors have run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pytest
import torch

from aten_overlay.apple.mpsgraph.recorder import GraphRun, Node, RecordedGraph
from porter.core.dtypes import FLOAT2
from porter.recording import running
from porter.recording.calls import OpCall
from porter.recording.probe_calls import TYPES, ProbeCall
from porter.recording.running import Near, UnexplainedCalls, run_calls, run_with_type
from porter.recording.runs import RecordedRun
from porter.recording.size_sets import Place, SizeSets, Template


def _call(*shape: int) -> OpCall:
    return OpCall(torch.ops.aten.neg.default, {"self": torch.ones(shape)})


class _OwnCall(ProbeCall):
    """A call whose near ones have the first size doubled, one time after the other."""

    def capture_near(self, until: int) -> Iterator[OpCall]:
        size, *others = self.call.tensors()["self"].shape
        yield from (_call(size * 2**i, *others) for i in range(1, 60))


def _own(*shape: int) -> _OwnCall:
    template = Template.of(torch.testing._internal.opinfo.core.SampleInput(torch.ones(shape)))
    return _OwnCall(_call(*shape), None, "neg", SizeSets(lambda sample: None, 0), Place(template, (), {}, False))


def _run(monkeypatch: pytest.MonkeyPatch, least: int, made: Sequence[ProbeCall]) -> tuple[list[tuple[int, ...]], int]:
    """The shapes of the calls that run, where the first size must not be less, and how many were tried."""
    tried = 0

    def run(call: OpCall) -> RecordedRun:
        nonlocal tried
        tried += 1
        given = call.tensors()["self"]
        if given.shape[0] < least:
            raise RuntimeError("too small")
        graph: Any = None
        return RecordedRun(call, {"self": given}, (graph,), (given,), False)

    monkeypatch.setattr(running, "run_call", run)
    monkeypatch.setattr(
        running, "capture_probe_calls", lambda op, base, steps, types=TYPES: iter(made if types == TYPES else ())
    )
    ran = [each.call.tensors()["self"].shape for each, _ in run_calls([None], "neg", UnexplainedCalls())]
    return [tuple(each) for each in ran], tried


def test_a_rank_whose_first_call_raises_has_calls_of_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes, tried = _run(monkeypatch, 8, [_own(2, 3, 4), _own(2, 3, 4), _own(9, 2), _own(2, 2)])
    assert shapes == [(8, 3, 4), (16, 3, 4), (9, 2)]  # those of two dimensions have run: another that raises is lost
    assert tried == 1 + 3 + 1 + 2


def test_a_rank_that_never_runs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes, tried = _run(monkeypatch, 2**30, [_own(2, 3)] * 3)
    assert not shapes
    assert tried == 12 + 3


@pytest.mark.parametrize(("selector", "count"), [("realPartOfTensor", 3), ("negativeWithTensor", 0)])
def test_complex_elements_are_recorded_where_a_graph_takes_their_parts(
    monkeypatch: pytest.MonkeyPatch, selector: str, count: int
) -> None:
    """A graph that takes no parts is that of real elements, which are recorded anyway."""

    def run(call: OpCall) -> RecordedRun:
        graph: Any = GraphRun(RecordedGraph([Node(selector, (), (), ())]), {}, {}, {})
        return RecordedRun(call, call.tensors(), (graph,), (), False)

    monkeypatch.setattr(running, "run_call", run)
    probes = [_own(2, 3)] * 3
    monkeypatch.setattr(
        running, "capture_probe_calls", lambda op, base, steps, types=TYPES: iter(probes if types == (FLOAT2,) else ())
    )
    assert len(list(run_calls([None], "neg", UnexplainedCalls()))) == count


class _OwnNorm(_OwnCall):
    """A call of `norm` whose near ones have the first size doubled."""

    def capture_near(self, until: int) -> Iterator[OpCall]:
        yield from (_norm(*call.tensors()["self"].shape) for call in super().capture_near(until))


def _norm(*shape: int) -> OpCall:
    return OpCall(torch.ops.aten.norm.ScalarOpt_dim, {"self": torch.ones(shape), "p": 2, "dim": [0], "keepdim": False})


def test_calls_that_were_given_a_type_have_near_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(call: OpCall) -> RecordedRun:
        graph: Any = None
        return RecordedRun(call, call.tensors(), (graph,), (), False)

    monkeypatch.setattr(running, "run_call", run)
    template = Template.of(torch.testing._internal.opinfo.core.SampleInput(torch.ones(2, 3)))
    own = _OwnNorm(_norm(2, 3), None, "norm", SizeSets(lambda sample: None, 0), Place(template, (), {}, False))
    plain = run(own.call)
    [(typed, source)] = run_with_type([plain], {"norm.ScalarOpt_dim_dtype"}, UnexplainedCalls())
    assert source is plain and typed.call.arguments["dtype"] == torch.float32
    near = list(islice(Near({id(plain): own}, {id(typed): plain}, 10**12, UnexplainedCalls()).run_near(typed), 2))
    assert [each.call.name for each in near] == ["norm.ScalarOpt_dim_dtype"] * 2
    assert [tuple(each.call.tensors()["self"].shape) for each in near] == [(4, 3), (8, 3)]
