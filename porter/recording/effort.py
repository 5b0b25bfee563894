"""What recording has cost so far, in steps: a clock that calls move, and neither a loaded machine nor a slow one.

Limits in seconds of the processor cut recordings at other calls each time: caches are colder on a loaded machine. Then
fewer calls were known of an operator, its programs were others, and its port might be refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from porter.verdict.backends import host

if TYPE_CHECKING:
    from aten_overlay.apple.mpsgraph.recorder import GraphRun

# What each takes, where a step is about 10 microseconds of an idle core.
_CALL = 50  # of an operator on the CPU, with the tensors that are made for it
_SAMPLE = 200  # of an OpInfo, forward and backward on the device, besides its graphs
_RUN = 60  # of a graph on the stand-in, besides its nodes
_NODE = 30
_READING = 60  # of a node into a loop nest
_ELEMENTS = 2_000  # that a node computes in one step


@dataclass
class _Counter:
    """The steps of this process."""

    steps: int = 0


_counter = _Counter()


def spent() -> int:
    """The steps that recordings of this process have taken."""
    return _counter.steps


def count_call(elements: int) -> None:
    """Counts a call on the CPU with tensors of so many elements."""
    _counter.steps += _CALL + elements // _ELEMENTS


def count_reading(runs: Iterable[GraphRun]) -> None:
    """Counts the reading of graphs into loop nests."""
    _counter.steps += _READING * sum(len(each.graph.nodes) for each in runs)


@contextmanager
def counting_sample() -> Iterator[None]:
    """Counts a sample of an OpInfo that a block computes on the device, and the graphs that it runs there."""
    _counter.steps += _SAMPLE
    with counting_graphs():
        yield


@contextmanager
def counting_graphs(runs: list[GraphRun] | None = None) -> Iterator[None]:
    """Counts the graphs that a block runs on the device, if that is started, and adds them to `runs`."""

    def count(run: GraphRun) -> None:
        elements = sum(each.numel() for each in run.values.values())
        _counter.steps += _RUN + len(run.graph.nodes) * (_NODE + elements // _ELEMENTS)
        if runs is not None:
            runs.append(run)

    recorder = host.find_recorder()
    if recorder is None:
        yield
        return
    recorder.on_run = count
    try:
        yield
    finally:
        recorder.on_run = None
