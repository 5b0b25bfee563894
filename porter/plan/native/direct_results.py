"""Results that a graph wrote to memory of its own where theirs was strided: a launch does that itself."""

from __future__ import annotations

import re
from dataclasses import replace

from porter.languages.statements import Statement, read_statements
from porter.plan.native.target import Target

_CHOSEN = re.compile(r"\bPlaceholder\(\s*\w+->\w+\s*,\s*(?P<when>\w+)\s*\?\s*(?P<own>\w+)\s*:\s*(?P<result>\w+)\b")


def with_direct_results(target: Target) -> Target:
    """The target without the copies to its results of what the graph wrote elsewhere, under the condition of both."""
    body = target.body
    for match in _CHOSEN.finditer(target.body):
        if match["result"] in target.variables.values():
            for each in reversed([inner for outer in read_statements(body) for inner in outer.walk()]):
                if _copies(each, body, match):
                    body = body[: each.start] + body[each.end :]
    return replace(target, body=body)


def _copies(statement: Statement, body: str, match: re.Match[str]) -> bool:
    """Whether a statement only copies to the result, where the graph did not write it."""
    if statement.keyword != "if" or statement.head is None or statement.otherwise or len(statement.body) != 1:
        return False
    copy = body[statement.body[0].start : statement.body[0].end]
    is_same = body[slice(*statement.head)].strip() == match["when"]
    return is_same and re.fullmatch(rf"{match['result']}\.copy_\({match['own']}\);", copy) is not None
