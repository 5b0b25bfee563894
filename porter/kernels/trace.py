"""Runs a script stage by stage, and stops at the first stage that differs from its reference.

Each stage gets what the kernels before it gave, which was right, so that the stage told is the one at fault. Both tiers
of a stage run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from porter.kernels.compare import Difference
from porter.kernels.script import Case, Function, Script, Stage, Values, find_difference, on_cpu, widened
from porter.kernels.writer import Writer, find_writer


@dataclass(frozen=True)
class StageResult:
    """One stage of one case, how it differs (None if it does not), and who wrote the element, if known.

    `tier` is the one that differs, "" for the one to ship.
    """

    case: str
    stage: str
    difference: Difference | None = None
    writer: Writer | None = None
    tier: str = ""


def trace(script: Script, device: str = "mps", shuffle: int | None = None) -> Iterator[StageResult]:
    """The stages of every case in order, up to the first that differs."""
    for case in script.cases(device):
        for result in _trace_case(script, case, shuffle):
            yield result
            if result.difference is not None:
                return


def _trace_case(script: Script, case: Case, shuffle: int | None) -> Iterator[StageResult]:
    values = script.values(case)
    for stage in script.stages:
        expected = stage.results(stage.reference, on_cpu(values))
        precise = stage.results(stage.reference, widened(values))
        given: dict[str, Any] = {}
        for tier, function in stage.tiers.items():
            got = stage.results(function, values)
            given = given or got
            found = find_difference(stage, got, expected, precise, script.tolerance)
            if found is not None:
                writer = _find_writer(stage, function, values, found.difference, shuffle)
                yield StageResult(str(case), stage.name, found.difference, writer, tier)
                return
        yield StageResult(str(case), stage.name)
        values |= given


def _find_writer(
    stage: Stage, function: Function, values: Values, difference: Difference, shuffle: int | None
) -> Writer | None:
    def run() -> Tensor:
        result: Tensor = stage.results(function, values)[difference.output]
        return result

    return find_writer(run, difference.index, shuffle)
