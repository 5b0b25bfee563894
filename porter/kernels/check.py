"""`check`: runs a kernel over many inputs on the stand-in's strictest settings, and compares with its reference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from aten_overlay.device import load
from porter.core.errors import PorterError, code_in
from porter.kernels.call import Value
from porter.kernels.cases import FLOATING, Case, cases, to_device
from porter.kernels.compare import BY_TYPE, Difference, Tolerance, compare, largest_of
from porter.kernels.launch import PLAIN, Mode, running
from porter.kernels.references import Reference

_SEEDS = (1, 2)
# A kernel may decline types and layouts, in so many words and before it is launched.
_DECLINED = ("PTR216", "PTR218")
Run = Callable[..., Any]


class Outcome(Enum):
    """How a case ended. A case that the reference itself refuses says nothing about the kernel."""

    PASS = "pass"
    FAIL = "FAIL"
    REFUSED = "n/a"


@dataclass(frozen=True)
class CaseResult:
    """One case: `error` is the largest, in units of what is allowed, and `message` says what went wrong."""

    case: str
    outcome: Outcome
    error: float = 0.0
    message: str = ""
    difference: Difference | None = None

    def __str__(self) -> str:
        error = f"  {self.error:5.2f} of the tolerance" if self.outcome is Outcome.PASS else ""
        message = f"  {self.message}" if self.message else ""
        return f"{self.outcome.value:4}  {self.case}{error}{message}"


@dataclass(frozen=True)
class CheckReport:
    """What a check found. `checked` tells whether bounds were watched and lanes shuffled: only the stand-in can."""

    kernel: str
    results: tuple[CaseResult, ...]
    checked: bool

    @property
    def passed(self) -> bool:
        """Whether cases ran and none failed."""
        outcomes = {result.outcome for result in self.results}
        return Outcome.PASS in outcomes and Outcome.FAIL not in outcomes

    def __str__(self) -> str:
        passed = sum(r.outcome is Outcome.PASS for r in self.results)
        tried = sum(r.outcome is not Outcome.REFUSED for r in self.results)
        watched = "bounds checked, lanes shuffled" if self.checked else "bounds not checked"
        verdict = "PASS" if self.passed else "FAIL"
        lines = (str(result) for result in self.results)
        return "\n".join((f"{verdict} {self.kernel}: {passed} of {tried} cases ({watched})", *lines))


def check(
    name: str,
    run: Run,
    reference: Reference,
    inputs: Sequence[Value],
    *,
    dtypes: Collection[torch.dtype] = FLOATING,
    fixed: Collection[int] = (),
    tolerance: Tolerance = BY_TYPE,
    gradients: bool = False,
    outputs: Sequence[str] = (),
) -> CheckReport:
    """Runs `run(*inputs)` on the device over cases made of an example, against `reference` in double precision.

    `fixed` are lengths of dimensions that have to stay as they are. `gradients` compares derivatives too. `outputs` are
    names for messages.
    """
    checked = load.started() is not None
    modes = [Mode(True, seed, True, sanitize=True) for seed in _SEEDS] if checked else [PLAIN]
    results = []
    for case in cases(inputs, dtypes, fixed):
        result = CaseResult(case.name, Outcome.REFUSED)
        for mode in (PLAIN, *modes) if case.name == "as given" and checked else modes:
            with running(mode):
                result = _try(run, reference, case, tolerance, outputs)
            if result.outcome is not Outcome.PASS:
                break
        results.append(result)
    if gradients:
        results.append(_check_gradients(run, reference, inputs, tolerance))
    return CheckReport(name, tuple(results), checked)


def _try(run: Run, reference: Reference, case: Case, tolerance: Tolerance, outputs: Sequence[str]) -> CaseResult:
    try:
        expected = _listed(_in_double(reference, case.inputs))
    except Exception as error:
        return CaseResult(case.name, Outcome.REFUSED, message=f"the reference refuses it: {_first_line(error)}")
    try:
        given = [case.place(v) if isinstance(v, torch.Tensor) else v for v in case.inputs]
        got = [each.cpu() for each in _listed(run(*given))]
    except (PorterError, RuntimeError, ValueError, TypeError) as error:
        if code_in(str(error)) in _DECLINED:
            return CaseResult(case.name, Outcome.REFUSED, message=_first_line(error))
        return CaseResult(case.name, Outcome.FAIL, float("inf"), _first_line(error))
    return _judge(case.name, got, expected, tolerance, outputs, _measure_sums(reference, case.inputs))


def _measure_sums(reference: Reference, inputs: Sequence[Value]) -> list[float]:
    """For each result, its size if nothing cancels: what the reference makes of the inputs' magnitudes."""
    sizes = [v.abs() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in inputs]
    try:
        return [largest_of(each) for each in _listed(_in_double(reference, sizes))]
    except Exception:  # the reference is somebody else's, and need not take magnitudes
        return []


def _judge(
    name: str,
    got: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
    tolerance: Tolerance,
    outputs: Sequence[str] = (),
    sums: Sequence[float] = (),
) -> CaseResult:
    if len(got) != len(expected):
        return CaseResult(name, Outcome.FAIL, message=f"{len(got)} outputs, not {len(expected)}")
    worst = 0.0
    for number, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        label = outputs[number] if number < len(outputs) else f"result {number} "
        error, difference = compare(label, ours, theirs, tolerance, sums[number] if number < len(sums) else 0.0)
        worst = max(worst, error)
        if difference is not None:
            return CaseResult(name, Outcome.FAIL, worst, str(difference), difference)
    return CaseResult(name, Outcome.PASS, worst)


def _in_double(reference: Reference, inputs: Sequence[Value]) -> Any:
    """The reference with floating-point inputs in double precision, or in their own if it takes no other."""
    wide = [v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in inputs]
    try:
        return reference(*wide)
    except Exception:
        return reference(*inputs)


def _check_gradients(run: Run, reference: Reference, inputs: Sequence[Value], tolerance: Tolerance) -> CaseResult:
    """The derivatives of the sum of all outputs, each weighted with its place."""
    ours = [to_device(v.detach()) if isinstance(v, torch.Tensor) else v for v in inputs]
    theirs = [v.detach().cpu() if isinstance(v, torch.Tensor) else v for v in inputs]
    theirs = [v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in theirs]
    try:
        expected = _gradients(reference, theirs)
        got = [g.cpu() for g in _gradients(run, ours)]
    except (PorterError, RuntimeError, ValueError, TypeError) as error:
        return CaseResult("gradients", Outcome.FAIL, float("inf"), _first_line(error))
    return _judge("gradients", got, expected, tolerance)


def _gradients(function: Run, inputs: Sequence[Value]) -> list[torch.Tensor]:
    leaves = [v.requires_grad_() for v in inputs if isinstance(v, torch.Tensor) and v.is_floating_point()]
    outputs = [out for out in _listed(function(*inputs)) if out.is_floating_point()]
    total = sum((out * torch.linspace(1, 2, out.numel(), dtype=out.dtype).to(out.device).view(out.shape)).sum()
                for out in outputs)  # fmt: skip
    found = torch.autograd.grad(total, leaves, allow_unused=True)  # type: ignore[arg-type]
    return [torch.zeros_like(leaf) if g is None else g for g, leaf in zip(found, leaves, strict=True)]


def _listed(found: Any) -> list[torch.Tensor]:
    return [found] if isinstance(found, torch.Tensor) else list(found)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0][:300]
