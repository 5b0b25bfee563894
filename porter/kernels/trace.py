"""Runs a script stage by stage, and stops at the first stage that differs from its reference.

Each stage gets what the kernels before it gave, which was right, so that the stage told is the one at fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from porter.kernels.compare import Difference
from porter.kernels.script import Case, Script, find_difference, on_cpu, widened


@dataclass(frozen=True)
class StageResult:
    """One stage of one case, how it differs (None if it does not), and what is known of who wrote the element."""

    case: str
    stage: str
    difference: Difference | None = None
    writers: tuple[str, ...] = ()


def trace(script: Script, device: str = "mps") -> Iterator[StageResult]:
    """The stages of every case in order, up to the first that differs."""
    for case in script.cases(device):
        for result in _trace_case(script, case):
            yield result
            if result.difference is not None:
                return


def _trace_case(script: Script, case: Case) -> Iterator[StageResult]:
    values = dict(script.inputs(case))
    for stage in script.stages:
        expected = stage.results(stage.reference, on_cpu(values))
        precise = stage.results(stage.reference, widened(values))
        got = stage.results(stage.run, values)
        found = find_difference(stage, got, expected, precise, script.tolerance)
        difference = found.difference if found else None
        yield StageResult(str(case), stage.name, difference)
        if difference is not None:
            return
        values |= got
