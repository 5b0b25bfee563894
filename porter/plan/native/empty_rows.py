"""Results of rows without elements: host code that returns where an operand has none leaves them unwritten."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Set

from porter.languages.liveness import list_declared
from porter.languages.statements import Statement, read_statements
from porter.loops.empty_rows import compute_of_nothing, find_reduced
from porter.loops.host_values import Number
from porter.loops.program import Programs
from porter.metal.native.host_values import Names
from porter.plan.native.body import LAUNCH
from porter.plan.native.early_return import write_return

_EMPTY = re.compile(r"\(?\s*(\w+)\.numel\(\) == 0\s*\)?")


def fill_of_nothing(body: str, programs: Programs, names: Names, before: str = "") -> str:
    """A body that fills results before it returns for an operand without elements, of which they may have some.

    They get what the kernels would store, if that is known. A body that never asks, as what is done `before` does not,
    returns for it too: there is no memory to launch a kernel with.
    """
    reduced = find_reduced(programs)
    fills = list(_write_fills(programs, names)) if reduced in names.variables else []
    if not reduced or not fills:
        return body
    results = {variable for name, variable in names.variables.items() if name.startswith("result")}
    given = names.variables[reduced]
    if f"{given}.numel() == 0" not in f"{before}{body}":
        left = "\n".join((f"if ({given}.numel() == 0) {{", *fills, write_return(body), "}\n\n"))
        return body.replace(LAUNCH, f"{left}{LAUNCH}")
    found = [each for outer in read_statements(body) for each in outer.walk() if _leaves(each, body, given, results)]
    for each in reversed(found):
        leave = each.body[0]
        text = "\n".join((*fills, body[leave.start : leave.end]))
        text = text if each.inner else f"{{\n{text}\n}}"
        body = body[: leave.start] + text + body[leave.end :]
    return body


def start_of_nothing(body: str, launch: str, result: str) -> str:
    """A body that gives a result what it has where nothing is written to it, before it returns as there is nothing.

    `launch` does that before its kernels. Of an empty result, or of one that has its elements already, nothing is left.
    """
    start = re.search(rf"^{result}\.(?:copy_\((\w+)\)|zero_\(\));$", launch, re.M)
    if start is None:
        return body
    found = [each for outer in read_statements(body) for each in outer.walk()]
    for each in reversed([each for each in found if _leaves_unwritten(each, body, {result, start[1] or result})]):
        leave = each.body[0]
        text = f"{start[0]}\n{body[leave.start : leave.end]}"
        body = body[: leave.start] + (text if each.inner else f"{{\n{text}\n}}") + body[leave.end :]
    return body


def _leaves_unwritten(statement: Statement, body: str, known: Set[str]) -> bool:
    """Whether a statement only returns, where an operand may be empty and these are not."""
    asked = _list_asked(statement, body)
    return bool(asked) and "" not in asked and not asked <= known and known.isdisjoint(_list_later(statement, body))


def _list_asked(statement: Statement, body: str) -> set[str]:
    """The variables one of which is empty where a statement only returns; with "" if it asks more. None of others."""
    if statement.keyword != "if" or statement.head is None or statement.otherwise or len(statement.body) != 1:
        return set()
    returned = body[statement.body[0].start : statement.body[0].end]
    if not returned.startswith("return") or "(" in returned:  # what it calls may write results
        return set()
    tests = [_EMPTY.fullmatch(each.strip()) for each in body[slice(*statement.head)].split("||")]
    return {test[1] if test else "" for test in tests}


def _write_fills(programs: Programs, names: Names) -> Iterator[str]:
    for index, value in compute_of_nothing(programs).items():
        variable = names.variables.get(f"result{index}")
        if variable is None or variable in names.optional:
            return
        yield f"{variable}.{_write_fill(value)};"


def _write_fill(value: Number) -> str:
    if value == 0:
        return "zero_()"
    return f"fill_({'std::numeric_limits<double>::quiet_NaN()' if math.isnan(value) else f'{value:g}'})"


def _leaves(statement: Statement, body: str, given: str, results: Set[str]) -> bool:
    """Whether a statement only returns, where an operand or one of the results, which there are by then, is empty."""
    asked = _list_asked(statement, body)
    is_asked = given in asked and asked <= {given, *results}
    return is_asked and results.isdisjoint(_list_later(statement, body))


def _list_later(statement: Statement, body: str) -> Iterator[str]:
    """The variables that are declared after a statement."""
    later = (each for outer in read_statements(body) for each in outer.walk() if each.start >= statement.end)
    for each in later:
        yield from list_declared(body[each.start : each.end])
