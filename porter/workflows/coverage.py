"""`porter status --coverage`: every elementwise row of a fork that builds a graph, and what came of its port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from porter.aten.elementwise import is_elementwise
from porter.aten.implementations import Language
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import Operator, ServedFunction, find_served
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.report.coverage import NATIVE, PORTED, Coverage, CoverageRow
from porter.report.results import NO_VERDICT, NOT_PLANNED, PASS, OperatorResult, Results
from porter.workflows.status import EVERY, operators


def find_coverage(checkout: Checkout, results: Results) -> Coverage:
    """The elementwise rows of a fork and their outcomes in results."""
    by_op = {each.op: each for each in results.operators}
    return Coverage(results.fork, tuple(_list_rows(checkout, by_op)))


def _list_rows(checkout: Checkout, results: Mapping[str, OperatorResult]) -> Iterator[CoverageRow]:
    reasons = {row.name: row.reason for each in operators(checkout, EVERY) for row in each.rows}
    read: dict[str, Operator] = {}
    for function in NativeFunctions.read(checkout).all:
        served = find_served(checkout, function)
        if served is None:
            continue
        operator = read.setdefault(function.base, Operator.read(checkout, function.base))
        if not is_elementwise(checkout, operator, function):
            continue
        family = PurePosixPath(served.implementation.file).stem if served.implementation else "other"
        outcome, code, reason = _find_outcome(served, results.get(function.base))
        if outcome == NO_VERDICT and not code and (blocker := reasons.get(function.name)):
            outcome, code, reason = NOT_PLANNED, blocker.code, blocker.what
        if outcome == NO_VERDICT and not code:
            error = PorterError("PTR330", "no result names it")
            code, reason = error.code, error.what
        yield CoverageRow(function.name, function.base, family, outcome, code, reason)


def _find_outcome(served: ServedFunction, found: OperatorResult | None) -> tuple[str, str, str]:
    if served.language is Language.METAL:
        return NATIVE, "", ""
    if found is None:
        return NO_VERDICT, "", ""
    left = next((each for each in found.unported if each.row == served.function.name), None)
    if left:
        return NOT_PLANNED, left.code, left.reason
    return (PORTED if found.outcome == PASS else found.outcome), found.code, found.reason
