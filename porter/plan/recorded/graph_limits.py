"""Removes what host code checks for MPSGraph's sake: releases of macOS whose graphs lack something. A kernel has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from porter.core.edits import replace_spans
from porter.languages.assignments import read_assignments
from porter.languages.patterns import match_code
from porter.languages.statements import Statement, name_tokens, read_statements

_LIMIT = "MPS_CHECK_INT64_OP_SUPPORTED("
_CHECKS = ("TORCH_CHECK(", "TORCH_CHECK_NOT_IMPLEMENTED(", "TORCH_CHECK_TYPE(", "TORCH_WARN(", "TORCH_WARN_ONCE(")
_RELEASE = "is_macos_"


def drop_graph_limits(body: str) -> str:
    """A body without checks that ask for a release of macOS, and without branches for older ones that only check."""
    asked = {a.name for a in read_assignments(body) if a.value and _asks_release(a.value, frozenset())}
    return replace_spans(body, ((*_widen(body, each), "") for each in _list_limits(body, read_statements(body), asked)))


def _list_limits(body: str, statements: Sequence[Statement], asked: Set[str]) -> Iterator[Statement]:
    for statement in statements:
        if _is_limit(body, statement, asked):
            yield statement
        else:
            yield from _list_limits(body, (*statement.body, *statement.otherwise), asked)


def _is_limit(body: str, statement: Statement, asked: Set[str]) -> bool:
    text = body[statement.start : statement.end]
    if not statement.keyword:
        return text.startswith(_LIMIT) or (text.startswith(_CHECKS) and _asks_release(text, asked))
    if statement.keyword != "if" or statement.otherwise or statement.head is None or not statement.body:
        return False
    test = match_code(body[slice(*statement.head)].strip(), "!$name", "!$name($$release)")
    is_older = test is not None and (test["name"].startswith(_RELEASE) or test["name"] in asked)
    return is_older and all(body.startswith(_CHECKS, inner.start) for inner in statement.body)


def _asks_release(text: str, asked: Set[str]) -> bool:
    return any(token.text.startswith(_RELEASE) or token.text in asked for token in name_tokens(text))


def _widen(body: str, statement: Statement) -> tuple[int, int]:
    """The span of a statement with its line, where it is alone there."""
    start = body.rfind("\n", 0, statement.start) + 1
    end = body.find("\n", statement.end)
    is_alone = end >= 0 and not body[start : statement.start].strip() and not body[statement.end : end].strip(" ;")
    return (start, end + 1) if is_alone else (statement.start, statement.end)
