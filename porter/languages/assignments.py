"""What the variables of a body are declared as and set to, by its statements: none within lambdas or heads of loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from porter.languages.lexer import Token, TokenKind
from porter.languages.liveness import list_declared
from porter.languages.source import Source
from porter.languages.statements import Statement, walk_statements

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_NO_VARIABLE = frozenset((".", "->", "::", "]", ")"))  # before the `=` of a member or an element


@dataclass(frozen=True)
class Assignment:
    """A statement that declares a variable or sets it.

    `type` is as it is written, without `const` before it; empty of a variable that is declared elsewhere. `value` is
    empty of one that is only declared, or by a constructor.
    """

    name: str
    type: str
    value: str
    statement: Statement


@lru_cache(maxsize=512)  # stages and launches ask the same body many times
def read_assignments(body: str) -> tuple[Assignment, ...]:
    """The assignments of a body, in order. Raises PTR030 where brackets do not pair."""
    statements = (inner for inner in walk_statements(body) if not inner.keyword)
    return tuple(assignment for statement in statements for assignment in _read(body, statement))


def list_values(body: str, name: str) -> list[str]:
    """All that a variable is set to."""
    return [assignment.value for assignment in read_assignments(body) if assignment.name == name and assignment.value]


def _read(body: str, statement: Statement) -> list[Assignment]:
    text = body[statement.start : statement.end]
    code = Source.parse("", text).code
    at = _find_equals(code)
    if at is None:
        names = list_declared(text)
        before = next((i for i, token in enumerate(code) if token.text == names[0]), 0) if names else 0
        return [Assignment(each, _write_type(text, code[:before]), "", statement) for each in names]
    name = code[at - 1]
    is_member = at > 1 and code[at - 2].text in _NO_VARIABLE
    if at == 0 or name.kind is not TokenKind.IDENTIFIER or is_member or code[0].text == "*":
        return []
    value = text[code[at].end : code[-1].start].strip()
    return [Assignment(name.text, _write_type(text, code[: at - 1]), value, statement)]


def _find_equals(code: Sequence[Token]) -> int | None:
    """The token `=` outside of brackets."""
    depth = 0
    for at, token in enumerate(code):
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if token.text == "=" and depth == 0:
            return at
    return None


def _write_type(text: str, code: Sequence[Token]) -> str:
    """The type before a name: what stands there behind a check without a semicolon, as in LossOps.mm."""
    start = next((token.end for token in reversed(code) if token.text == ")"), 0)
    type_ = " ".join(text[start : code[-1].end if code else 0].split())
    return type_.removeprefix("static ").removeprefix("const ").replace(" &", "&")
