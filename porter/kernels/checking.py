"""Runs a script's checks, and tells which cases differ from the reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeAlias

from torch import Tensor

from aten_overlay.device.groups import SIZES, Groups, watching
from porter.core.errors import PorterError
from porter.kernels.call import DEVICE
from porter.kernels.check import DECLINED
from porter.kernels.compare import Difference
from porter.kernels.cuda import compiling_ahead
from porter.kernels.script import Case, Function, Right, Script, Stage, Values, WrongStage, on_cpu
from porter.kernels.writer import Writer, find_writer


class Part(Enum):
    """Who made a case: the script's author, or a seed that the author has not seen; or a rule that the script keeps."""

    OWN = "own"
    HIDDEN = "hidden"
    CONDUCT = "conduct"


# What a script can do about an error, beside what any caller can.
_MOVED = "Of a script's inputs, case.normal and case.integers are there already; case.place moves others."
_IN_SCRIPT = {"PTR208": _MOVED, "PTR221": _MOVED}


@dataclass(frozen=True)
class CaseResult:
    """One case: the first difference, or the message of the error that ended it; neither if it passed.

    `warnings` are what the lint says of kernels that were first compiled or launched for it, `kernels` those launched,
    and `cause` says what a difference comes of. One that is `skipped` ran nothing, and has warnings alone.
    """

    case: str
    difference: WrongStage | None = None
    error: str = ""
    warnings: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    cause: str = ""
    skipped: bool = False
    part: Part = Part.OWN

    @property
    def ok(self) -> bool:
        return self.difference is None and not self.error


def check(script: Script, device: str = DEVICE, sweeps: bool = True) -> Iterator[CaseResult]:
    """Every case, then each size in other threadgroups unless not asked for, then the wrong calls, to be refused."""
    lengths: set[int] | None = None
    left_open = any(stage.group for stage in script.stages)
    for case in script.cases(device):
        with watching(Groups()) as groups:
            result = _check_case(script, case)
        yield replace(result, kernels=tuple(groups.kernels))
        left_open = left_open or groups.left_open
        threads = {math.prod(group) for group in groups.launched}
        if threads:
            same = {d for d, length in enumerate(case.size) if threads == {length}}
            lengths = same if lengths is None else lengths & same
    if left_open and sweeps:
        yield from _sweep_groups(script, device)
    for dimension in sorted(lengths or ()) if sweeps else ():
        yield from _sweep_lengths(script, dimension, device)
    if script.refusals:
        yield _check_refusals(script)


def _sweep_groups(script: Script, device: str) -> Iterator[CaseResult]:
    """Each size of a script in threadgroups of each size, where its launches take any."""
    for size in SIZES:
        swept = replace(script, stages=tuple(stage.in_groups(size) for stage in script.stages))
        for dimensions in dict.fromkeys(script.sizes):
            case = Case(dimensions, script.dtypes[0], script.layouts[0], device)
            with watching(Groups(size)):
                result = try_swept(swept, case)
            if result is not None:
                yield replace(result, case=f"{case} in threadgroups of {size}")


def _sweep_lengths(script: Script, dimension: int, device: str) -> Iterator[CaseResult]:
    """Other lengths of a dimension, of which each launch of a script makes its threadgroups."""
    smallest = min(script.sizes, key=math.prod)
    for size in sorted({*SIZES} - {dimensions[dimension] for dimensions in script.sizes}):
        dimensions = (*smallest[:dimension], size, *smallest[dimension + 1 :])
        result = try_swept(script, Case(dimensions, script.dtypes[0], script.layouts[0], device))
        if result is not None:
            yield result


Find: TypeAlias = Callable[[Script, Case], WrongStage | None]


def try_swept(script: Script, case: Case, find: Find = Script.find_difference) -> CaseResult | None:
    """A case that the author did not name; None where the inputs, the reference or the kernel do not take it."""
    try:
        first = script.stages[0]
        first.results(first.reference, on_cpu(script.values(case)))
    except (ValueError, TypeError, RuntimeError):  # RuntimeError is what torch raises for shapes that do not fit
        return None
    try:
        return CaseResult(str(case), find(script, case))
    except (ValueError, TypeError):
        return None
    except PorterError as error:
        return None if error.code in DECLINED else CaseResult(str(case), error=str(error))
    except RuntimeError as error:
        return CaseResult(str(case), error=str(error))


def _check_case(script: Script, case: Case) -> CaseResult:
    try:
        return CaseResult(str(case), script.find_difference(case))
    except PorterError as error:
        hint = f"{error.hint} {_IN_SCRIPT.get(error.code, '')}".rstrip()
        return CaseResult(str(case), error=str(PorterError(error.code, error.what, error.place, hint)))
    except (RuntimeError, ValueError) as error:
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
        right = Right.of(stage, values)
        shipped: dict[str, Any] = {}
        for tier, function in stage.tiers.items():
            got, wrong = script.judge(stage, function, case, values, right)
            shipped = shipped or got
            if wrong is not None:
                writer = _find_writer(stage, function, values, wrong.difference, shuffle)
                yield StageResult(str(case), stage.name, wrong.difference, writer, tier)
                return
        yield StageResult(str(case), stage.name)
        values |= shipped


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
