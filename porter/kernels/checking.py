"""Runs a script's checks, and tells which cases differ from the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from porter.core.errors import PorterError
from porter.kernels.call import DEVICE
from porter.kernels.script import Case, Script, WrongStage


@dataclass(frozen=True)
class CaseResult:
    """One case: the first difference, or the message of the error that ended it; neither if it passed."""

    case: str
    difference: WrongStage | None = None
    error: str = ""

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
