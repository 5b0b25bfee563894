"""What is recorded is bounded by what calls cost, counted in steps, and by no clock."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter import recording
from porter.recording import calls
from porter.recording.calls import count_reading, counting_graphs, spent
from porter.recording.size_sets import SizeSets
from porter.verdict.backends import host

MANY = 10**12
CLOCK = re.compile(r"^\s*(?:import time\b|from time import|import datetime|from datetime import)", re.M)


def _make_run(nodes: int, elements: int) -> Any:
    return SimpleNamespace(graph=SimpleNamespace(nodes=[None] * nodes), values={0: torch.zeros(elements)})


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = SimpleNamespace(on_run=None)
    monkeypatch.setattr(host, "find_recorder", lambda: made)
    return made


def test_no_module_that_records_reads_a_clock() -> None:
    """Limits in seconds cut recordings at other calls on a loaded machine."""
    [folder] = recording.__path__
    assert not [path.name for path in Path(folder).rglob("*.py") if CLOCK.search(path.read_text())]


def _list_shapes(steps: int) -> tuple[list[tuple[int, ...]], int]:
    """The shapes of samples of `softmax`, and what they cost."""
    before = spent()
    sets = SizeSets(lambda sample: torch.softmax(sample.input, *sample.args), before + steps)
    samples = list(sets.make_samples(SampleInput(torch.rand(5, 5, 5), args=(1,)), requires_grad=False))
    return [tuple(each.input.shape) for each in samples], spent() - before


def test_as_many_steps_make_the_same_samples() -> None:
    whole, cost = _list_shapes(MANY)
    cut = _list_shapes(cost // 2)
    assert cut == _list_shapes(cost // 2)
    assert 0 < len(cut[0]) < len(whole) and cut[1] < cost
    assert _list_shapes(cost) == (whole, cost)


def test_graphs_cost_by_their_nodes_and_elements(recorder: Any) -> None:
    def run(nodes: int, elements: int) -> int:
        before = spent()
        with counting_graphs():
            recorder.on_run(_make_run(nodes, elements))
        return spent() - before

    assert run(1, 1) < run(2, 1) < run(2, 10 * calls._ELEMENTS)
    assert recorder.on_run is None


def test_graphs_of_a_call_are_kept_and_read(recorder: Any) -> None:
    runs: list[Any] = []
    with pytest.raises(RuntimeError), counting_graphs(runs):
        recorder.on_run(_make_run(3, 1))
        raise RuntimeError("what the fork's code raises")
    assert [len(each.graph.nodes) for each in runs] == [3] and recorder.on_run is None
    before = spent()
    count_reading(runs)
    assert spent() - before == 3 * calls._READING
