"""Runs calls of an operator at sizes of porter's own, until its steps are spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from porter.recording.calls import OpCall
from porter.recording.effort import spent
from porter.recording.left_out import drop_empty, vary_given
from porter.recording.lost import Losses
from porter.recording.overloads import adapt_with_type
from porter.recording.own_calls import OwnCall, capture_own_calls
from porter.recording.record import RecordedRun, run_call

STEPS = 1_200_000  # to record one operator
MORE_STEPS = 800_000  # to record more calls of an overload's cases that have few
_VARIED = 4  # calls that tensors are left out of, of each choice of tensors
_TRIED = 12  # calls of other sizes, where the first one of its ranks raises
_FOUND = 2  # of these that run


@dataclass(frozen=True)
class Near:
    """Where calls came from, for more like them, until so many steps are spent; `plain` are those given a type."""

    origins: Mapping[int, OwnCall]
    plain: Mapping[int, RecordedRun]
    until: int
    lost: Losses

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
        yield from run_all((call,), spent(), Losses())


def run_calls(ops: Sequence[Any], base: str, lost: Losses) -> Iterator[tuple[RecordedRun, OwnCall | None]]:
    """Runs calls of all OpInfos until the steps are spent, and some of them without tensors that may be left out.

    Those that raise are `lost`. The first call of its ranks that raises, for which sizes may be the reason, is followed
    by calls of other sizes.
    """
    varied: Counter[str] = Counter()
    begun: set[str] = set()
    end = spent() + STEPS
    for i, op in enumerate(ops):
        until = spent() + (end - spent()) // (len(ops) - i)
        for own in capture_own_calls(op, base, until - spent()):
            if spent() > until:
                break
            runs = list(run_all((own.call,), until, lost)) or list(run_all(drop_empty(own.call), until, lost))
            ranks = _describe_ranks(own.call)
            if not runs and ranks not in begun:
                near = run_all(islice(own.capture_near(until), _TRIED), until, lost)
                runs = list(islice(near, _FOUND))
            begun.add(ranks)
            yield from ((ran, own) for ran in runs)
            for ran in runs:
                given = _describe_given(ran.call)
                varied[given] += 1
                if varied[given] <= _VARIED:
                    yield from ((each, None) for each in run_all(vary_given(ran.call), until, lost))


def run_with_type(
    runs: Sequence[RecordedRun], overloads: Collection[str], lost: Losses
) -> Iterator[tuple[RecordedRun, RecordedRun]]:
    """Runs calls of those overloads that take the result's type besides what some calls take, while there are steps.

    Each comes with the run of the call that it was made of.
    """
    until = spent() + MORE_STEPS
    for name in sorted(overloads):
        for plain in runs:
            made = adapt_with_type(plain.call, name)
            yield from ((ran, plain) for ran in run_all((made,) if made else (), until, lost))


def _describe_ranks(call: OpCall) -> str:
    return f"{call.name} {[tensor.ndim for tensor in call.tensors().values()]}"


def _describe_given(call: OpCall) -> str:
    """The tensors that a call gives with their types, and its flags."""
    tensors = {name: tensor.dtype for name, tensor in call.tensors().items()}
    return f"{call.name} {tensors} {[value for value in call.arguments.values() if isinstance(value, bool)]}"


def run_all(calls: Iterable[OpCall], until: int, lost: Losses) -> Iterator[RecordedRun]:
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
