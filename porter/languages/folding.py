"""Folds code whose conditions are known: `true ? a : b`, `if (!false && x)`, and branches that cannot be taken.

Names of constants in `distinct` differ from each other, as the members of one enum do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from porter.languages.identifiers import is_whole, is_word
from porter.languages.lexer import Token
from porter.languages.liveness import find_commented_start
from porter.languages.source import Source
from porter.languages.statements import Statement, read_statements

TRUE, FALSE = "true", "false"
_STARTS = frozenset(("=", "(", ",", "{", ";", "[", "return", "?", ":", "+=", "<<"))
_STOPS = frozenset((",", ";", ")", "]", "}", ":"))
_IDLE = re.compile(r"\s*\|\| false\b|\bfalse \|\| |\s*&& true\b|\btrue && ")  # operands that change nothing
_COMPARISONS = ("==", "!=")
_LABEL = re.compile(r"\bcase ([\w:]+):(?!:)|\bdefault:")


def fold(text: str, distinct: Collection[str] = ()) -> str:
    """A body without the branches that are not taken. Raises PTR030 where brackets do not pair."""
    while True:
        made = _IDLE.sub("", _fold_branches(_fold_choices(text, distinct), distinct))
        if made == text:
            return text
        text = made


def simplify(condition: str, distinct: Collection[str] = ()) -> str:
    """A condition with what is known left out: `true` and `false` for those that are known altogether."""
    code = Source.parse("", condition).code
    for operator, absorbing in (("||", TRUE), ("&&", FALSE)):
        parts = _split(condition, code, operator)
        if len(parts) > 1:
            known = [simplify(part, distinct) for part in parts]
            if absorbing in known:
                return absorbing
            kept = [part for part in known if part not in (TRUE, FALSE)]
            joined = f" {operator} ".join(kept)
            return joined if kept else (FALSE if absorbing == TRUE else TRUE)
    return _simplify_part(condition.strip(), code, distinct)


def _simplify_part(text: str, code: Sequence[Token], distinct: Collection[str]) -> str:
    if text.startswith("(") and Source.parse("", text).partners[0] == len(code) - 1:
        inner = simplify(text[1:-1], distinct)
        return inner if is_word(inner) else f"({inner})"
    if text.startswith("!") and not text.startswith("!="):
        inner = simplify(text[1:], distinct)
        return {TRUE: FALSE, FALSE: TRUE}.get(inner, f"!{inner}")
    for operator in _COMPARISONS:
        parts = _split(text, code, operator)
        if len(parts) == 2:
            left, right = (part.strip() for part in parts)
            equal = _compare(left, right, distinct)
            if equal is not None:
                return TRUE if equal == (operator == "==") else FALSE
    return text


def _compare(left: str, right: str, distinct: Collection[str]) -> bool | None:
    """Whether two constants are equal; None if that is not known."""
    both = (left, right)
    if all(each in (TRUE, FALSE) or is_whole(each) or each.startswith('"') for each in both):
        return left == right
    return _names_one(left, right) if all(each in distinct for each in both) else None


def _names_one(name: str, other: str) -> bool:
    """Whether two names are of one constant: one may have the scope that the other leaves out."""
    return name == other or name.endswith(f"::{other}") or other.endswith(f"::{name}")


def _split(text: str, code: Sequence[Token], operator: str) -> list[str]:
    """The parts of an expression around an operator outside of all brackets, and outside of a choice."""
    depth, start, parts = 0, 0, []
    for token in code:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token.text, 0)
        if depth == 0 and token.text == "?":
            return [text]
        if depth == 0 and token.text == operator:
            parts.append(text[start : token.start])
            start = token.end
    return [*parts, text[start:]]


def _fold_choices(text: str, distinct: Collection[str]) -> str:
    """`test ? yes : no` with the one that is taken."""
    source = Source.parse("", text)
    code, partners = source.code, source.partners
    for at, token in enumerate(code):
        if token.text != "?":
            continue
        first = _find_condition(code, partners, at)
        known = simplify(text[code[first].start : code[at - 1].end], distinct)
        colon = _find_stop(code, partners, at + 1)
        if known in (TRUE, FALSE) and code[colon].text == ":":
            stop = _find_stop(code, partners, colon + 1)
            low, high = (at + 1, colon) if known == TRUE else (colon + 1, stop)
            taken = text[code[low].start : code[high - 1].end]
            return text[: code[first].start] + taken + text[code[stop - 1].end :]
    return text


def _find_condition(code: Sequence[Token], partners: dict[int, int], at: int) -> int:
    """The first token of the condition before a `?`."""
    while at > 0 and code[at - 1].text not in _STARTS:
        at = partners.get(at - 1, at - 1) if code[at - 1].text in (")", "]", "}") else at - 1
    return at


def _find_stop(code: Sequence[Token], partners: dict[int, int], at: int) -> int:
    """The token that ends an operand of a choice."""
    nested = 0
    while at < len(code):
        word = code[at].text
        if word == "?":
            nested += 1
        elif word == ":" and nested:
            nested -= 1
        elif word in _STOPS:
            return at
        at = partners.get(at, at) + 1
    return at


def _fold_branches(text: str, distinct: Collection[str]) -> str:
    """Folds the first `if` whose condition simplifies, and drops the branch that is not taken."""
    for outer in read_statements(text):
        for each in outer.walk():
            if each.keyword == "switch" and (made := _fold_switch(text, each, distinct)) is not None:
                return made
            if each.keyword == "if" and each.head:
                written = text[slice(*each.head)]
                known = simplify(written, distinct)
                if known in (TRUE, FALSE):
                    return _take(text, each, known == TRUE)
                if known != written.strip():
                    return text[: each.head[0]] + known + text[each.head[1] :]
    return text


def _fold_switch(text: str, each: Statement, distinct: Collection[str]) -> str | None:
    """A text with the statements of the case that a `switch` on a constant takes; None if it is not known."""
    assert each.head and each.inner
    value = text[slice(*each.head)].strip()
    if value not in distinct:
        return None
    body = text[slice(*each.inner)]
    labels = list(_LABEL.finditer(body))
    chosen = next((i for i, label in enumerate(labels) if label[1] == value), None)
    if chosen is None:
        chosen = next((i for i, label in enumerate(labels) if label[0] == "default:"), None)
    if chosen is None or "{" in body:
        return None
    taken = _LABEL.sub("", body[labels[chosen].end() :]).partition("break;")[0]
    return text[: each.start] + taken.strip() + text[each.end :]


def _take(text: str, branch: Statement, is_taken: bool) -> str:
    """A text with one side of a branch in its place. What it declares stays within braces where it had some."""
    statements = branch.body if is_taken else branch.otherwise
    start, end = branch.start, branch.end
    if not statements:
        line, stop = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        alone = not text[line:start].strip() and stop >= 0 and not text[end:stop].strip()
        return text[: find_commented_start(text, start, 0)] + text[stop + 1 :] if alone else text[:start] + text[end:]
    inner = text[statements[0].start : statements[-1].end]
    return text[:start] + inner + text[end:]
