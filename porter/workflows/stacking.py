"""Plans of many operators, each on top of the ones before it, and the runs of old code that these plans need."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TypeVar

from porter.aten.declarations import parse_base_name
from porter.aten.operator import Operator, ServedFunction
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress, Step, Steps, ignore, number_progress
from porter.metal.forms import Computation
from porter.metal.kernel import FIRST_CANDIDATES, CandidateChoice
from porter.metal.kernel_spec import RecordedGraph
from porter.mpsgraph.graph import Graph
from porter.plan.plan import Draft, Plan
from porter.plan.planner import plan_operator
from porter.plan.recorded.port import ReadPrograms, no_programs
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

_NO_TESTS: Mapping[str, frozenset[str]] = MappingProxyType({})


@dataclass(frozen=True)
class Missing:
    """What is to be recorded of an operator: the graphs of its calls, or the programs."""

    base: str
    of_programs: bool = False


class NotRecordedYet(Exception):
    """A plan needs a recording that is not made while operators are planned."""

    def __init__(self, missing: Missing) -> None:
        super().__init__(f"nothing is recorded of {missing.base}")
        self.missing = missing


@dataclass(frozen=True)
class StackedPlan:
    """The plan of an operator with a choice of candidates, or why there is none, and the fork before and after it.

    There is none either where a recording is `missing`. Entries of the test lists stay for the tests `listed`.
    """

    op: str
    choice: CandidateChoice
    before: Draft
    after: Draft
    plan: Plan | None = None
    error: PorterError | None = None
    missing: Missing | None = None
    listed: frozenset[str] = frozenset()

    @property
    def base(self) -> str:
        return parse_base_name(self.op)


def _read_nothing(_progress: Progress) -> ReadPrograms:
    return no_programs


@dataclass(frozen=True)
class OldCode:
    """What recorded runs of old code tell: readers of a row's graph, and of its programs."""

    graphs: Callable[[Progress], RecordedGraph]
    programs: Callable[[Progress], ReadPrograms] = _read_nothing


def read_old_code(checkout: Checkout, run: bool) -> OldCode:
    """The readers that run old code which is not recorded yet if they may `run`."""

    def read_graph(progress: Progress, served: ServedFunction) -> Graph | None:
        from porter.recording.readings import get_recorded_graph  # what it imports takes longer than most plans

        return get_recorded_graph(checkout, served, run, progress)

    def read_programs(progress: Progress, served: ServedFunction) -> Computation | None:
        from porter.recording.readings import get_row_programs

        return get_row_programs(checkout, served, run, progress)

    return OldCode(partial(partial, read_graph), partial(partial, read_programs))


def stack_plans(
    checkout: Checkout,
    ops: Sequence[str],
    old: OldCode,
    choices: Mapping[str, CandidateChoice],
    known: Sequence[StackedPlan] = (),
    progress: Steps = ignore,
    listed: Mapping[str, frozenset[str]] = _NO_TESTS,
) -> tuple[StackedPlan, ...]:
    """Plans operators one on top of the other. The `known` plans are kept up to the first that has to change.

    Entries of the test lists stay for an operator's tests that are `listed`.
    """
    found: list[StackedPlan] = []
    for at, op in enumerate(ops):
        choice, stay = choices.get(op, FIRST_CANDIDATES), listed.get(op, frozenset())
        asked = (op, choice, stay)
        same = len(found) == at < len(known) and (known[at].op, known[at].choice, known[at].listed) == asked
        before = found[-1].after if found else Draft(checkout)
        if same and (not found or found[-1] is known[at - 1]):
            found.append(known[at])
            continue
        report_progress = number_progress(progress, op, at, len(ops))
        report_progress("planning")
        try:
            graphs, programs = old.graphs(report_progress), old.programs(report_progress)
            plan = plan_operator(before.fork, op, choice, graphs, programs=programs, listed=stay)
        except PorterError as error:
            found.append(StackedPlan(op, choice, before, before, error=error, listed=stay))
        except NotRecordedYet as not_yet:
            found.append(StackedPlan(op, choice, before, before, missing=not_yet.missing, listed=stay))
        else:
            found.append(StackedPlan(op, choice, before, before.follow(plan.changes), plan, listed=stay))
    return tuple(found)


def stack_without(
    checkout: Checkout,
    steps: Sequence[StackedPlan],
    left_out: Collection[str],
    old: OldCode,
    progress: Steps = ignore,
) -> tuple[StackedPlan, ...]:
    """The plans without those of some operators; from the first of these on, the others are planned again."""
    kept = [step for step in steps if step.op not in left_out]
    same = [step for step, other in zip(steps, kept, strict=False) if step is other]
    choices = {step.op: step.choice for step in kept}
    listed = {step.op: step.listed for step in kept}
    return stack_plans(checkout, [step.op for step in kept], old, choices, same, progress, listed)


MOST_LINES = 600

Port = TypeVar("Port")


@dataclass(frozen=True)
class Grouping:
    """Which ports make one pull request: those of a family, or each operator alone where it is not `by_family`.

    A group has at most `most` lines, unless a single port has more.
    """

    by_family: bool = True
    most: int = MOST_LINES


@dataclass(frozen=True)
class Measured:
    """The family of a port, and the lines that its diff adds and removes."""

    family: str
    lines: int


def group_ports(
    ports: Sequence[Port], measure: Callable[[Port], Measured], grouping: Grouping = Grouping()
) -> Iterator[tuple[Measured, list[Port]]]:
    """Yields the ports of each family together, in order, as many as may be in a group."""
    measured = [(measure(port), port) for port in ports]
    for family in dict.fromkeys(found.family for found, _ in measured):
        lines, group = 0, list[Port]()
        for found, port in measured:
            if found.family != family:
                continue
            if group and (not grouping.by_family or lines + found.lines > grouping.most):
                yield Measured(family, lines), group
                lines, group = 0, []
            lines, group = lines + found.lines, [*group, port]
        yield Measured(family, lines), group


def find_family(checkout: Checkout, op: str) -> str:
    """The file with the code of an operator, without folder and suffix; `other` where it is not known."""
    served = Operator.read(checkout, op).served
    files = [each.implementation.file for each in served if each.implementation]
    return PurePosixPath(files[0]).stem if files else "other"


def count_lines(plan: Plan) -> int:
    """How many lines the diff of a plan adds and removes."""
    lines = plan.changes.diff().splitlines()
    return sum(line.startswith(("+", "-")) and not line.startswith(("+++ ", "--- ")) for line in lines)


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
