"""`porter kernel check --large`: a script's kernels on tensors whose offsets pass 32 bits, where the device's memory is
addresses alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from aten_overlay.device.apart import run_apart
from aten_overlay.device.placements import BOUNDARIES, PLACEMENTS, allocate, place
from aten_overlay.device.windows import running_ends
from porter.core.errors import PorterError
from porter.kernels.check import DECLINED
from porter.kernels.checking import CaseResult
from porter.kernels.script import Case, Layout, Right, Script, Stage, Values, WrongStage, find_difference, on_cpu

WINDOW = 1 << 12  # threads: rows of a few threadgroups
PADDING = 3  # rows between the ends, where the reference tells what it does
_CODED = "PTR"
# Also a grid of more threads than there are positions, and a number that needs more than 32 bits.
_DECLINED = (*DECLINED, "PTR211", "PTR215")
_NOT_RUN = "it takes too long, or goes over all of a storage"


@dataclass
class Refusals:
    """Why large cases did not run, in the order in which that was seen."""

    reasons: dict[str, None] = field(default_factory=dict)

    def add(self, reason: str) -> None:
        self.reasons[reason.splitlines()[0] if reason else _NOT_RUN] = None


def check_large(script: Script) -> Iterator[CaseResult]:
    """A small case in storages behind and across each boundary, then stages with more rows than it, of which the first
    and last run. The device's memory has to be sparse.

    What host code refuses is no failure; where nothing ran, PTR296 says why.
    """
    refusals, ran = Refusals(), False
    for result in (*_check_placed(script, refusals), *_check_rows(script, refusals)):
        ran = True
        yield result
    reasons = "; ".join(refusals.reasons)
    if not ran:
        yield CaseResult("large", error=f"PTR296 no case of the script runs past 32 bits: {reasons or 'no tensors'}")
    elif reasons:
        yield CaseResult("large", warnings=(f"large cases that did not run: {reasons}",), skipped=True)


def _choose_case(script: Script) -> Case:
    """The size with most dimensions to stride, then the smallest: what tells is where elements lie."""
    size = max(script.sizes, key=lambda size: (sum(n > 1 for n in size), -math.prod(size)))
    return Case(size, script.dtypes[0], Layout.DENSE)


def _check_placed(script: Script, refusals: Refusals) -> Iterator[CaseResult]:
    case = _choose_case(script)
    for placement, boundary in product(PLACEMENTS, BOUNDARIES):
        placed: list[Tensor] = []

        def move(value: Any) -> Any:
            moved_value = place(value.cpu(), placement, boundary) if isinstance(value, Tensor) and value.dim() else None  # noqa: B023
            placed.extend([] if moved_value is None else [moved_value])  # noqa: B023
            return value if moved_value is None else moved_value

        name = f"{case}, {placement.name} past {boundary.name}"
        result = _try(name, refusals, lambda: _compare_placed(script, case, move))
        if result is not None and placed:
            yield result


def _compare_placed(script: Script, case: Case, move: Callable[[Any], Any]) -> WrongStage | None:
    for stage, values, right in script.walk(case):
        placed = {name: move(value) if name in stage.takes else value for name, value in values.items()}
        difference = script.judge_tiers(stage, case, placed, right)
        if difference is not None:
            return difference
    return None


def _try(name: str, refusals: Refusals, run: Callable[[], WrongStage | None]) -> CaseResult | None:
    """A result; None where host code refuses the call, in its own words or by a code of what kernels may decline."""
    try:
        return CaseResult(name, run())
    except (PorterError, RuntimeError, ValueError, TypeError) as error:
        declined = error.code in _DECLINED if isinstance(error, PorterError) else _CODED not in str(error)
        if declined:
            refusals.add(str(error))
            return None
        return CaseResult(name, error=str(error))


def _check_rows(script: Script, refusals: Refusals) -> Iterator[CaseResult]:
    """Every stage with more rows than a boundary has elements, where the reference computes each row alone."""
    case = _choose_case(script)
    for stage, values, right in script.walk(case):
        count = _count_rows(stage, values, right)
        if not count:
            refusals.add(f"the rows of stage {stage.name} depend on each other, or results have others")
        row = max((_row_length(values[name], count) for name in stage.takes), default=0) if count else 0
        # A position has 32 bits: more elements than that need rows of several.
        for boundary in BOUNDARIES[1 : 3 if row > 1 else 2] if row else ():
            many = boundary.elements(1) // row + 2 * count
            name = f"{case}, {many} rows in stage {stage.name}, past {boundary.name}"
            answer = run_apart(lambda: _compare_ends(script, stage, values, right, count, many, name))  # noqa: B023
            if not answer:
                refusals.add(_NOT_RUN)
                continue
            outcome = json.loads(answer)
            if "refused" in outcome:
                refusals.add(outcome["refused"])
            else:
                yield CaseResult(name, error=outcome["error"])


def _row_length(value: Any, count: int) -> int:
    """How many elements a row of a tensor with so many rows has; 0 of any other value."""
    rows = isinstance(value, Tensor) and value.dim() > 0 and len(value) == count
    return int(value[0].numel()) if rows else 0


def _count_rows(stage: Stage, values: Values, right: Right) -> int:
    """How many rows the first tensor of a stage has; 0 where more rows change the results of these, or add no row."""
    tensors = [values[name] for name in stage.takes if isinstance(values[name], Tensor) and values[name].dim()]
    count = len(tensors[0]) if tensors else 0
    expected = [right.expected[name] for name in stage.gives]
    if count < 1 or not all(t.dim() and len(t) == count for t in expected):
        return 0
    padded = _widen(stage, on_cpu(values), count, lambda t: torch.cat([t, t.new_zeros((PADDING, *t.shape[1:])), t]))
    try:
        more = stage.results(stage.reference, padded)
    except Exception:  # the reference is somebody else's, and need not take other shapes
        return 0
    for name, one in zip(stage.gives, expected, strict=True):
        alike = len(more[name]) == 2 * count + PADDING
        ends = (more[name][:count], more[name][-count:]) if alike else ()
        if not alike or not all(torch.allclose(end, one, equal_nan=True) for end in ends):
            return 0
    return count


def _widen(stage: Stage, values: Values, count: int, widen: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """The values with tensors of as many rows as the first one has, and as many dimensions, widened."""
    tensors = [values[name] for name in stage.takes if isinstance(values[name], Tensor) and values[name].dim()]
    return {
        name: widen(value) if isinstance(value, Tensor) and value.dim() == tensors[0].dim() and len(value) == count
        else value
        for name, value in values.items()
    }  # fmt: skip


def _compare_ends(script: Script, stage: Stage, values: Values, right: Right, count: int, many: int, name: str) -> str:
    """What is wrong with the first and last rows of many, as JSON."""

    def widen(tensor: Tensor) -> Tensor:
        shape = (many, *tensor.shape[1:])
        wide = allocate(shape, tensor.dtype, (torch.empty(shape, device="meta").stride(), 0))
        wide[:count].copy_(tensor)
        wide[-count:].copy_(tensor)
        return wide

    def run() -> WrongStage | None:
        wide = _widen(stage, values, count, widen)
        for tier, function in stage.tiers.items():
            with running_ends(WINDOW):
                got = stage.results(function, wide)
            for rows in (slice(count), slice(-count, None)):
                ends = {result: value[rows].cpu() for result, value in got.items()}
                difference = find_difference(stage, ends, right, script.tolerance)
                if difference is not None:
                    end = "last" if rows.start else "first"
                    at = replace(difference.difference, output=f"{end} rows of {difference.difference.output}")
                    return replace(difference, tier=tier, difference=at)
        return None

    refusals = Refusals()
    result = _try(name, refusals, run)
    if result is None:
        return json.dumps({"refused": next(iter(refusals.reasons))})
    wrong = f"PTR270 {result.difference}" if result.difference else result.error
    return json.dumps({"error": wrong})
