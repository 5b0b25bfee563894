"""Runs calls of an operator at sizes of porter's own until its steps are spent, and reads their loop nests.

Calls of which nothing is known are kept: those whose run raises, and those that no program computes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch

from porter.core.dtypes import FLOAT2
from porter.core.errors import PorterError
from porter.loops.host_values import Arguments, ArgumentValue
from porter.loops.program import UnexplainedCall
from porter.recording.call_programs import read_call_arguments
from porter.recording.calls import OpCall, count_reading, spent
from porter.recording.joining import Observed, observe
from porter.recording.probe_calls import ProbeCall, capture_probe_calls
from porter.recording.runs import RecordedRun, run_call
from porter.recording.varied_calls import adapt_with_type, drop_empty, vary_given

_MOST = 60  # of an overload that are kept
_SMALL = 4  # a whole number that may be a choice
STEPS = 1_200_000  # to record one operator
MORE_STEPS = 800_000  # to record more calls of an overload's cases that have few
_VARIED = 4  # calls that tensors are left out of, of each choice of tensors
_TRIED = 12  # calls of other sizes, where the first one of its ranks raises
_FOUND = 2  # of these that run
_KNOWN = 8  # calls of a structure, which one more tells nothing new of
_PARTS = ("realPartOfTensor", "imaginaryPartOfTensor")
_ALIKE = 8  # calls in a row that tell nothing new, after which no more of their kind are read


@dataclass(frozen=True)
class UnexplainedCalls:
    """Collects lost calls by overload, one of each kind: of the same choices, ranks, types and reason."""

    found: dict[str, dict[str, UnexplainedCall]] = field(default_factory=dict)

    def add_raised(self, call: OpCall, error: Exception) -> None:
        """Adds a call whose run raised."""
        try:
            arguments = read_call_arguments(call, {})
        except PorterError:  # no kernel takes elements of its type
            return
        self.add(call.name, arguments, f"{type(error).__name__}: {error}".splitlines()[0])

    def add(self, name: str, arguments: Arguments, why: str) -> None:
        kinds = {key: _kind(value) for key, value in arguments.others.items()}
        tensors = [(key, len(value.shape), str(value.dtype)) for key, value in arguments.tensors.items()]
        own = self.found.setdefault(name, {})
        if len(own) < _MOST:
            own.setdefault(f"{kinds} {tensors}", UnexplainedCall(arguments, why))

    def add_all(self, name: str, calls: Iterable[Arguments], why: str) -> None:
        for each in calls:
            self.add(name, each, why)

    def list_of(self, name: str) -> tuple[UnexplainedCall, ...]:
        """The lost calls of an overload."""
        return tuple(self.found.get(name, {}).values())


def _kind(value: ArgumentValue) -> object:
    if isinstance(value, (bool, str, type(None))):
        return value
    return value if isinstance(value, int) and abs(value) <= _SMALL else type(value)


@dataclass(frozen=True)
class Near:
    """Where calls came from, for more like them, until so many steps are spent; `plain` are those given a type."""

    origins: Mapping[int, ProbeCall]
    plain: Mapping[int, RecordedRun]
    until: int
    lost: UnexplainedCalls

    def run_near(self, ran: RecordedRun) -> Iterator[RecordedRun]:
        """Yields calls that differ from one in few sizes."""
        ran = ran.before or ran
        origin = self.origins.get(id(self.plain.get(id(ran), ran)))
        if origin is None or spent() >= self.until:
            return
        calls: Iterable[OpCall] = origin.capture_near(self.until)
        if id(ran) in self.plain:
            calls = (made for call in calls if (made := adapt_with_type(call, ran.call.name)))
        yield from run_all(calls, self.until, self.lost)

    def run_again(self, call: OpCall) -> Iterator[RecordedRun]:
        """Runs a call that was made of one; nothing of one that raises."""
        yield from run_all((call,), spent(), UnexplainedCalls())


def run_calls(ops: Sequence[Any], base: str, lost: UnexplainedCalls) -> Iterator[tuple[RecordedRun, ProbeCall | None]]:
    """Runs calls of all OpInfos until the steps are spent, and some of them without tensors that may be left out.

    Those that raise are `lost`. The first call of its ranks that raises, for which sizes may be the reason, is followed
    by calls of other sizes.
    """
    varied: Counter[str] = Counter()
    begun: set[str] = set()
    end = spent() + STEPS
    for i, op in enumerate(ops):
        until = spent() + (end - spent()) // (len(ops) - i)
        for own in capture_probe_calls(op, base, until - spent()):
            if spent() > until:
                break
            runs = list(run_all((own.call,), until, lost)) or list(run_all(drop_empty(own.call), until, lost))
            ranks = f"{own.call.name} {[tensor.ndim for tensor in own.call.tensors().values()]}"
            if not runs and ranks not in begun:
                near = run_all(islice(own.capture_near(until), _TRIED), until, lost)
                runs = list(islice(near, _FOUND))
            begun.add(ranks)
            yield from ((ran, own) for ran in runs)
            for ran in runs:
                # The tensors that a call gives with their types, and its flags.
                tensors = {name: tensor.dtype for name, tensor in ran.call.tensors().items()}
                flags = [value for value in ran.call.arguments.values() if isinstance(value, bool)]
                given = f"{ran.call.name} {tensors} {flags}"
                varied[given] += 1
                if varied[given] <= _VARIED:
                    yield from ((each, None) for each in run_all(vary_given(ran.call), until, lost))
    yield from _run_by_parts(ops, base, lost)


def _run_by_parts(
    ops: Sequence[Any], base: str, lost: UnexplainedCalls
) -> Iterator[tuple[RecordedRun, ProbeCall | None]]:
    """Runs calls of complex elements where the first one's graph takes their parts, as none of real elements does."""
    until = spent() + MORE_STEPS
    for op in ops:
        has_run = False
        for tried, probe in enumerate(capture_probe_calls(op, base, (until - spent()) // 2, (FLOAT2,))):
            runs = list(run_all((probe.call,), until, lost if has_run else UnexplainedCalls()))
            is_other = not any(map(_takes_parts, runs)) if runs else tried > _TRIED
            if (is_other and not has_run) or spent() > until:
                break
            has_run = has_run or bool(runs)
            yield from ((ran, probe) for ran in runs)


def _takes_parts(ran: RecordedRun) -> bool:
    return any(node.selector in _PARTS for run in ran.runs for node in run.graph.nodes)


def run_with_type(
    runs: Sequence[RecordedRun], overloads: Collection[str], lost: UnexplainedCalls
) -> Iterator[tuple[RecordedRun, RecordedRun]]:
    """Runs calls of those overloads that take the result's type besides what some calls take, while there are steps.

    Each comes with the run of the call that it was made of.
    """
    until = spent() + MORE_STEPS
    for name in sorted(overloads):
        for plain in runs:
            made = adapt_with_type(plain.call, name)
            yield from ((ran, plain) for ran in run_all((made,) if made else (), until, lost))


def run_all(calls: Iterable[OpCall], until: int, lost: UnexplainedCalls) -> Iterator[RecordedRun]:
    """The calls that run graphs, until so many steps are spent."""
    for call in calls:
        if spent() > until:
            return
        try:
            ran = run_call(call)
        except Exception as error:  # the fork's code rejects what the CPU accepts, or the stand-in lacks something
            lost.add_raised(call, error)
            continue
        if ran.runs:  # host code returns early for some calls
            yield ran


def read_runs(runs: Iterable[RecordedRun], lost: UnexplainedCalls) -> tuple[list[Observed], list[PorterError]]:
    """The loop nests of calls, and why others have none.

    Calls of a kind differ in numbers alone: sizes, and what they are multiplied by.
    """
    observed: list[Observed] = []
    left: list[PorterError] = []
    structures: Counter[str] = Counter()
    in_row: Counter[Hashable] = Counter()
    for ran in runs:
        kind = tuple((name, _describe_value(value)) for name, value in sorted(ran.call.arguments.items()))
        if not ran.runs or not ran.tells_results or in_row[kind] >= _ALIKE:  # host code answers a call without runs
            continue
        count_reading(ran.runs)
        try:
            observed.append(observe(ran))
        except PorterError as error:
            if all(tensor.numel() == 1 for tensor in ran.call.tensors().values()):
                lost.add_raised(ran.call, error)
            else:
                left.append(error)
            continue
        structure = observed[-1].program.structure
        structures[structure] += 1
        in_row[kind] = in_row[kind] + 1 if structures[structure] > _KNOWN else 0
    return observed, left


def _describe_value(value: Any) -> Hashable:
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(min(size, 2) for size in value.shape), value.is_contiguous()
    if isinstance(value, (list, tuple)):
        return tuple(map(_describe_value, value))
    if isinstance(value, int) and not isinstance(value, bool):
        return "int", max(-3, min(value, 3))
    if isinstance(value, float):
        return "float", repr(value) if value in (0.0, 1.0, 2.0) or value - value else value > 0
    return repr(value)
