"""The runs of old code that plans of many operators need: found out first, then recorded side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from porter.aten.operator import ServedFunction
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress, Step, Steps, ignore
from porter.metal.forms import Computation
from porter.mpsgraph.graph import Graph
from porter.recording.readings import (
    get_programs,
    get_recorded_graph,
    get_recordings,
    get_row_programs,
    keep_failure,
    keep_recording,
    make_request,
)
from porter.verdict.client import ask_many
from porter.verdict.messages import ErrorAnswer, RecordAnswer, error_of_answer
from porter.workflows.stacking import Missing, NotRecordedYet, OldCode, StackedPlan, stack_plans


class Recordings:
    """Readers of what old code computes. What was recorded in vain is not tried again.

    While they `wait`, they raise NotRecordedYet for a run that is not kept; then they run it.
    """

    def __init__(self, checkout: Checkout) -> None:
        self.wait = True
        self._checkout = checkout
        self._failed: dict[Missing, PorterError] = {}

    @property
    def old_code(self) -> OldCode:
        """The readers as plans take them."""
        return OldCode(partial(partial, self._read_graph), partial(partial, self._read_programs))

    def record(self, missing: Iterable[Missing], jobs: int, progress: Steps) -> None:
        """Makes recordings, at most `jobs` at a time, and keeps each, or why there is none."""
        wanted = tuple(dict.fromkeys(missing))
        requests = [make_request(self._checkout, each.base, of_programs=each.of_programs) for each in wanted]
        done = 0

        def report(at: int, step: str) -> None:
            progress(Step(f"{wanted[at].base}: {step}", done, len(wanted)))

        for at, answer in ask_many(requests, jobs, report):
            done += 1
            if isinstance(answer, ErrorAnswer):
                self._failed[wanted[at]] = error = error_of_answer(answer)
                keep_failure(self._checkout, requests[at], error)
            else:
                assert isinstance(answer, RecordAnswer)
                keep_recording(self._checkout, requests[at], answer.text)

    def _read_graph(self, progress: Progress, served: ServedFunction) -> Graph | None:
        base = served.function.base
        missing = Missing(base)
        if missing in self._failed:
            return None
        if self.wait and get_recordings(self._checkout, base, run=False) is None:
            raise NotRecordedYet(missing)
        return get_recorded_graph(self._checkout, served, run=True, progress=progress)

    def _read_programs(self, progress: Progress, served: ServedFunction) -> Computation | None:
        base = served.function.base
        missing = Missing(base, of_programs=True)
        if missing in self._failed:
            raise self._failed[missing]
        if self.wait and get_programs(self._checkout, base, run=False) is None:
            raise NotRecordedYet(missing)
        return get_row_programs(self._checkout, served, run=True, progress=progress)


def record_ahead(
    recordings: Recordings,
    checkout: Checkout,
    ops: Sequence[str],
    jobs: int,
    wait: Callable[[], object],
    progress: Steps = ignore,
) -> tuple[StackedPlan, ...]:
    """Makes the recordings that plans of operators need, and returns the plans up to the first that needed one.

    Operators are planned as far as that goes without; a plan that then needs another recording has it in the next
    round. Calls `wait` before the first recording.
    """
    plan = partial(stack_plans, old=recordings.old_code, choices={})
    steps = plan(checkout, ops, progress=progress)
    waiting = [step for step in steps if step.missing]
    if waiting:
        wait()
    while waiting:
        recordings.record((step.missing for step in waiting if step.missing), jobs or os.cpu_count() or 1, progress)
        waiting = [step for step in plan(checkout, [step.op for step in waiting]) if step.missing]
    recordings.wait = False
    return tuple(_take_planned(steps))


def _take_planned(steps: Iterable[StackedPlan]) -> Iterator[StackedPlan]:
    for step in steps:
        if step.missing:
            return
        yield step
