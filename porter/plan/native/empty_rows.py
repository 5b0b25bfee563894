"""Results of rows without elements: host code that returns where an operand has none leaves them unwritten."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set

from porter.languages.scopes import bring_declarations
from porter.languages.statements import Statement, name_tokens, read_statements
from porter.loops.empty_rows import compute_of_nothing, find_reduced
from porter.loops.program import Programs
from porter.metal.native.host_values import Names
from porter.plan.native.body import LAUNCH
from porter.plan.native.early_return import write_return
from porter.plan.native.result_returns import write_fill

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
        body = _put_before_return(body, each, fills)
    return body


def start_of_nothing(body: str, start: str, result: str) -> str:
    """A body that gives a result what it has where nothing is written to it, before it returns as there is nothing.

    `start` is the statement of the launch that does so. Of an empty result, or of one that has its elements already,
    nothing is left. Where a return stands before the declaration of what `start` reads, that goes with it; where it
    stands before the result's own, there is nothing to return yet.
    """
    if not start:
        return body
    used = {token.text for token in name_tokens(start)}
    statements = [inner for outer in read_statements(body) for inner in outer.walk()]
    for statement in reversed([each for each in statements if _leaves_unwritten(each, body, used)]):
        leave = statement.body[0]
        lacking = bring_declarations(body, leave.start, used - {result})
        if lacking is not None and bring_declarations(body, leave.start, {result}) == []:
            body = _put_before_return(body, statement, (*lacking, start))
    return body


def _put_before_return(body: str, statement: Statement, lines: Sequence[str]) -> str:
    """A body with statements before the return that is all of an `if`."""
    leave = statement.body[0]
    text = "\n".join((*lines, body[leave.start : leave.end]))
    return body[: leave.start] + (text if statement.inner else f"{{\n{text}\n}}") + body[leave.end :]


def _leaves_unwritten(statement: Statement, body: str, known: Set[str]) -> bool:
    """Whether a statement only returns, where an operand may be empty and these are not."""
    asked = _list_asked(statement, body)
    return bool(asked) and "" not in asked and not asked <= known


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
        yield f"{variable}.{write_fill(value)};"


def _leaves(statement: Statement, body: str, given: str, results: Set[str]) -> bool:
    """Whether a statement only returns, where an operand or one of the results, which there are by then, is empty."""
    asked = _list_asked(statement, body)
    is_asked = given in asked and asked <= {given, *results}
    return is_asked and bring_declarations(body, statement.body[0].start, results) == []
