"""`porter status --coverage`: every row of a fork that builds a graph, and what came of its port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from porter.aten.implementations import Language
from porter.aten.lacking import is_elementwise
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import (
    Migration,
    Operator,
    ServedFunction,
    find_called_operators,
    find_migrations,
    find_served,
)
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.plan.recorded.result_functions import find_givers
from porter.plan.recorded.target import list_leads
from porter.plan.routes import Route
from porter.report.coverage import LIBRARY, NATIVE, PORTED, Coverage, CoverageRow
from porter.report.results import NO_VERDICT, NOT_PLANNED, PASS, OperatorResult, Results
from porter.workflows.status import EVERY, IS_NATIVE, operators


def find_needed(checkout: Checkout, op: str) -> tuple[str, ...]:
    """The operators that are ported before one: they build graphs, and its rows call them, or they give functions that
    make its results a tensor that its own calls lack.

    None for an operator that a stub or a recording serves, or that cannot be read.
    """
    try:
        operator = Operator.read(checkout, op)
        return tuple(dict.fromkeys((*_find_graphs(checkout, operator), *find_givers(checkout, operator))))
    except PorterError:
        return ()


def _find_graphs(checkout: Checkout, operator: Operator) -> Iterator[str]:
    found = find_migrations(checkout, operator)
    if found and all(isinstance(each, Migration) and not each.stubs and each.body is None for each in found):
        for base in find_called_operators(checkout, operator):
            if any(each.builds_graph for each in Operator.read(checkout, base).served):
                yield base


def find_coverage(checkout: Checkout, results: Results) -> Coverage:
    """The elementwise rows of a fork, the others that build graphs, and their outcomes in results."""
    by_op = {each.op: each for each in results.operators}
    rows = list(_list_rows(checkout, by_op))
    of_kind = {kind: tuple(row for is_elementwise, row in rows if is_elementwise is kind) for kind in (True, False)}
    made_by = results.made_by if results.operators else None
    return Coverage(results.fork, results.digest, made_by, of_kind[True], of_kind[False])


def _list_rows(checkout: Checkout, results: Mapping[str, OperatorResult]) -> Iterator[tuple[bool, CoverageRow]]:
    """The rows, and whether they are elementwise."""
    rows = {row.name: row for each in operators(checkout, EVERY) for row in each.rows}
    read: dict[str, Operator] = {}
    for function in NativeFunctions.read(checkout).all:
        served = find_served(checkout, function)
        if served is None:
            continue
        operator = read.setdefault(function.base, Operator.read(checkout, function.base))
        applies = is_elementwise(checkout, operator, function)
        if not applies and not served.builds_graph:
            continue
        family = PurePosixPath(served.implementation.file).stem if served.implementation else "other"
        outcome, code, reason = _find_outcome(checkout, served, results)
        row = rows[function.name]
        if outcome == NO_VERDICT and not code and row.reason and not row.portable:
            outcome, code, reason = NOT_PLANNED, row.reason.code, row.reason.what
        if outcome == NO_VERDICT and not code:
            error = PorterError("PTR330", "no result names it")
            code, reason = error.code, error.what
        if not applies and outcome != PORTED and row.route is Route.LIBRARY:
            outcome = LIBRARY
            code, reason = (row.reason.code, row.reason.what) if row.reason else ("", "")
        port = row.route.value if served.builds_graph else ""
        yield applies, CoverageRow(function.name, function.base, family, outcome, code, reason, port)


def _find_outcome(
    checkout: Checkout, served: ServedFunction, results: Mapping[str, OperatorResult]
) -> tuple[str, str, str]:
    found = results.get(served.function.base)
    if served.language is Language.METAL:
        return NATIVE, "", ""
    if found is None:
        return NO_VERDICT, "", ""
    left = next((each for each in found.unported if each.row == served.function.name), None)
    if left:
        return NOT_PLANNED, left.code, left.reason
    if found.code == IS_NATIVE and _came_along(checkout, served, results):
        return PORTED, "", ""
    return (PORTED if found.outcome == PASS else found.outcome), found.code, found.reason


def _came_along(checkout: Checkout, served: ServedFunction, results: Mapping[str, OperatorResult]) -> bool:
    """Whether nothing of a row was left, as what its code calls was ported before it, and passed.

    That is all that shared code calls, or a row whose function the row's own calls to run its graph.
    """
    needed = find_needed(checkout, served.function.base)
    leads = [each.function.base for each in list_leads(checkout, served) if each.function.base != served.function.base]
    passed = {name for name in (*needed, *leads) if (result := results.get(name)) and result.outcome == PASS}
    return (bool(needed) and passed.issuperset(needed)) or not passed.isdisjoint(leads)
