"""`porter status --coverage`: every row of a fork that builds a graph, and what came of its port."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from porter.aten.call_graph import parse_source, read_reachable_text
from porter.aten.elementwise import is_elementwise
from porter.aten.implementations import Language, expand_implementation
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import Operator, ServedFunction, find_served
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.plan.native.target import list_leads
from porter.report.coverage import LIBRARY, NATIVE, PORTED, Coverage, CoverageRow
from porter.report.results import NO_VERDICT, NOT_PLANNED, PASS, OperatorResult, Results
from porter.workflows.needed import find_needed
from porter.workflows.status import EVERY, IS_NATIVE, Filters, operators

# Operations of MPSGraph, and kernels of MPS, that ports leave as they are.
_LIBRARY_CALLS = re.compile(
    r"\bmatrixMultiplicationWith|\bconvolution\w*With|\bMPSMatrix(?:Multiplication|Decomposition|Solve)\w*"
    r"|\bMPSNDArrayMatrixMultiplication|\bLSTMWith|\bLSTMGradients\w*With|\bfastFourierTransformWith"
    r"|\b(?:realToHermitean|HermiteanToReal)FFTWith|\binverseOfTensor|\bscaledDotProductAttention\w*With"
)


def find_coverage(checkout: Checkout, results: Results) -> Coverage:
    """The elementwise rows of a fork, the others that build graphs, and their outcomes in results."""
    by_op = {each.op: each for each in results.operators}
    rows = list(_list_rows(checkout, by_op))
    of_kind = {kind: tuple(row for is_elementwise, row in rows if is_elementwise is kind) for kind in (True, False)}
    made_by = results.made_by if results.operators else None
    return Coverage(results.fork, results.digest, made_by, of_kind[True], of_kind[False])


def find_recordable(checkout: Checkout) -> tuple[str, ...]:
    """The base names, in file order, of operators with rows that no stub serves and that send graphs of their own.

    Rows that call a library are no part of them.
    """
    functions = NativeFunctions.read(checkout)
    found = []
    for operator in operators(checkout, Filters(blocked=True)):
        rows = [find_served(checkout, functions.by_name[row.name]) for row in operator.rows if row.blocked]
        if any(row and row.builds_graph and not _calls_library(checkout, row) for row in rows):
            found.append(operator.name)
    return tuple(found)


def _list_rows(checkout: Checkout, results: Mapping[str, OperatorResult]) -> Iterator[tuple[bool, CoverageRow]]:
    """The rows, and whether they are elementwise."""
    reasons = {row.name: row.reason for each in operators(checkout, EVERY) for row in each.rows}
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
        if outcome == NO_VERDICT and not code and (blocker := reasons.get(function.name)):
            outcome, code, reason = NOT_PLANNED, blocker.code, blocker.what
        if outcome == NO_VERDICT and not code:
            error = PorterError("PTR330", "no result names it")
            code, reason = error.code, error.what
        if not applies and outcome != PORTED and _calls_library(checkout, served):
            outcome, code, reason = LIBRARY, "", ""
        yield applies, CoverageRow(function.name, function.base, family, outcome, code, reason)


def _calls_library(checkout: Checkout, served: ServedFunction) -> bool:
    """Whether a row's code calls what stays with Apple's libraries, itself or through functions that it calls."""
    found = served.implementation
    if found is None:
        return False
    source = parse_source(found.file, checkout.read(found.file))
    texts = read_reachable_text(checkout, found.file, expand_implementation(source, found))
    return any(_LIBRARY_CALLS.search(text) for text in texts)


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
