"""Runs a script's checks, and tells which cases differ from the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from porter.core.errors import PorterError
from porter.kernels.call import DEVICE
from porter.kernels.compare import Difference
from porter.kernels.cuda import compiling_ahead
from porter.kernels.script import Case, Function, Script, Stage, Values, WrongStage, find_difference, on_cpu, widened
from porter.kernels.writer import Writer, find_writer


@dataclass(frozen=True)
class CaseResult:
    """One case: the first difference, or the message of the error that ended it; neither if it passed.

    `warnings` are what the lint says of kernels that were first compiled or launched for it.
    """

    case: str
    difference: WrongStage | None = None
    error: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.difference is None and not self.error


def check(script: Script, device: str = DEVICE) -> Iterator[CaseResult]:
    """Every case, then the wrong calls that have to be refused."""
    for case in script.cases(device):
        yield _check_case(script, case)
    if script.refusals:
        yield _check_refusals(script)


def _check_case(script: Script, case: Case) -> CaseResult:
    try:
        return CaseResult(str(case), script.find_difference(case))
    except (PorterError, RuntimeError, ValueError) as error:
        return CaseResult(str(case), error=str(error))
    except (Exception, SystemExit) as error:  # the script is somebody else's
        return CaseResult(str(case), error=f"{type(error).__name__}: {error}")


def _check_refusals(script: Script) -> CaseResult:
    try:
        script.check_refusals()
    except AssertionError as error:
        return CaseResult("refusals", error=str(error))
    return CaseResult("refusals")


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


def compile_script(script: Script) -> int:
    """Compiles what the cases of a script and its benchmark call, in both tiers. How many sources these were."""
    with compiling_ahead() as sources:
        for case in _list_cases(script):
            values = script.values(case)
            for stage in script.stages:
                for function in filter(None, (stage.simple, stage.run)):
                    results = stage.results(function, values)
                values |= results
    return len(sources)


def _list_cases(script: Script) -> Iterator[Case]:
    yield from script.cases("cpu")
    for size in script.benchmark:
        for dtype in script.dtypes[:2]:
            yield Case(size, dtype, device="cpu")
