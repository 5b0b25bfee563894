"""The declarations of a Metal source: where each starts and ends, what it is, and the names in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aten_overlay.errors import OverlayError
from aten_overlay.metal.source.lexer import Source, skip_angles

# Tokens between `<` and `>`, brackets inside counted as one: every `>` that is a comparison is searched from.
LONGEST_ANGLES = 500
_CLASS_KEYS = frozenset(("struct", "class", "union", "enum"))


@dataclass(frozen=True)
class Declaration:
    """Tokens [start, end) of one declaration; `body` is the index of a function's or class's `{`, or -1. `scope` is the
    enclosing namespaces; `outer` is where the class starts that it is a member of, or -1."""

    start: int
    end: int
    body: int
    scope: tuple[str, ...]
    outer: int


def declarations(source: Source) -> Iterator[Declaration]:
    """Every declaration in order, members after their class."""
    return _declarations(source, 0, len(source.tokens), (), -1)


def _declarations(source: Source, i: int, end: int, scope: tuple[str, ...], outer: int) -> Iterator[Declaration]:
    while i < end:
        token = source.tokens[i]
        if token == ";" or (outer >= 0 and token in ("public", "private", "protected", ":")):
            i += 1
        elif token in ("namespace", "inline", "extern") and (opened := _namespace(source, i)) is not None:
            names, brace = opened
            yield from _declarations(source, brace + 1, source.match[brace], scope + names, -1)
            i = source.match[brace] + 1
        else:
            declaration = _one(source, i, end, scope, outer)
            yield declaration
            if declaration.body >= 0 and class_key(source, declaration) not in ("", "enum"):
                body = declaration.body
                yield from _declarations(source, body + 1, source.match[body], scope, declaration.start)
            i = declaration.end


def _namespace(source: Source, i: int) -> tuple[tuple[str, ...], int] | None:
    tokens = source.tokens
    if tokens[i] == "inline" and tokens[i + 1] == "namespace":
        i += 1
    if tokens[i] == "extern" and source.kinds[i + 1] == "string" and tokens[i + 2] == "{":
        return (), i + 2
    if tokens[i] != "namespace":
        return None
    names = []
    i += 1
    while tokens[i] != "{":
        if tokens[i] in ("=", ";"):
            return None
        if source.kinds[i] == "name":
            names.append(tokens[i])
        i += 1
    return tuple(names), i


def _one(source: Source, start: int, end: int, scope: tuple[str, ...], outer: int) -> Declaration:
    tokens, i, body = source.tokens, start, -1
    assigned = called = initializing = False
    while i < end:
        token = tokens[i]
        if token == ";":
            return Declaration(start, i + 1, body, scope, outer)
        if token == "template" and tokens[i + 1] == "<":
            i = skip_angles(source, i + 1, end)
            continue
        if token == "=" and "operator" not in tokens[max(i - 3, start) : i]:
            assigned = True
        if token == "(":
            called = True
        if token == ":" and called:
            initializing = True
        is_member = initializing and (source.kinds[i - 1] == "name" or tokens[i - 1] == ">")
        if token == "{" and not is_member:
            is_class = _class_key_in(source, start, i) != ""
            if body < 0 and not assigned:
                body = i
            if not is_class and called and not assigned:
                return Declaration(start, source.match[i] + 1, body, scope, outer)
        i = source.match[i] + 1 if token in ("(", "[", "{") else i + 1
    return Declaration(start, end, body, scope, outer)


def class_key(source: Source, declaration: Declaration) -> str:
    """`struct`, `class`, `union` or `enum` when that is what is declared, else ""."""
    return _class_key_in(source, declaration.start, declaration.body if declaration.body >= 0 else declaration.end)


def _class_key_in(source: Source, start: int, end: int) -> str:
    """`struct`, `class`, `union` or `enum` when that is what is declared before the brace at `end`, else ""."""
    i = start
    while i < end:
        token = source.tokens[i]
        if token == "template" and source.tokens[i + 1] == "<":
            i = skip_angles(source, i + 1, end)
        elif token in ("[", "("):
            i = source.match[i] + 1
        elif token in _CLASS_KEYS:
            return "" if _has_parameters(source, i + 1, end) else token
        elif token in ("typedef", "static", "constant", "constexpr", "const", "inline", "alignas"):
            i += 1
        else:
            return ""
    return ""


def constructor_qualifiers(source: Source, declaration: Declaration) -> range:
    """The tokens between a constructor's parameters and its initializers or body; empty for anything else."""
    if declaration.outer < 0:
        return range(0)
    own = _name_of_class(source, declaration.outer)
    for i in top_level(source, declaration.start, declaration.end):
        if source.tokens[i] == "(":
            if i == declaration.start or source.tokens[i - 1] != own:
                if source.tokens[i - 1] in ("__attribute__", "alignas", "explicit"):
                    continue
                break
            end = source.match[i] + 1
            while end < declaration.end and source.kinds[end] == "name":
                end += 1
            return range(source.match[i] + 1, end)
    return range(0)


def _name_of_class(source: Source, start: int) -> str:
    i = start
    while source.tokens[i] not in _CLASS_KEYS:
        i = skip_angles(source, i + 1, len(source.tokens)) if source.tokens[i] == "template" else i + 1
    i += 1
    while source.kinds[i] != "name" or source.tokens[i] in ("alignas", "__attribute__"):
        i = source.match[i] + 1 if source.tokens[i] in ("(", "[") else i + 1
    return source.tokens[i]


def _has_parameters(source: Source, start: int, end: int) -> bool:
    """Whether there are parentheses other than an attribute's."""
    i = start
    while i < end:
        token = source.tokens[i]
        if token == "(" and source.tokens[i - 1] not in ("alignas", "__attribute__"):
            return True
        i = source.match[i] + 1 if token in ("(", "[", "{") else i + 1
    return False


def head_end(declaration: Declaration) -> int:
    """Where the body starts, or the end."""
    return declaration.body if declaration.body >= 0 else declaration.end


def top_level(source: Source, start: int, end: int) -> Iterator[int]:
    """Indices of the tokens outside brackets, template headers and attributes."""
    i = start
    while i < end:
        if source.tokens[i] == "template" and source.tokens[i + 1] == "<":
            yield i
            i = skip_angles(source, i + 1, end)
            continue
        yield i
        i = source.match[i] + 1 if source.tokens[i] in ("(", "[", "{") else i + 1


def is_explicit(source: Source, declaration: Declaration) -> bool:
    """Whether this is an explicit instantiation."""
    return source.tokens[declaration.start] == "template" and source.tokens[declaration.start + 1] != "<"


def name_start(source: Source, end: int) -> int:
    """Where the qualified name that ends before token `end` starts."""
    i, tokens = end, source.tokens
    while True:
        if tokens[i - 1] == ">":
            i = _angle_start(source, i - 1)
        if source.kinds[i - 1] != "name" or tokens[i - 1] in ("void", "kernel"):
            return i
        i -= 1
        if tokens[i - 1] != "::":
            return i
        i -= 1


def _angle_start(source: Source, i: int) -> int:
    depth, last = 0, i
    for _ in range(LONGEST_ANGLES):
        token = source.tokens[i]
        if token == ">":
            depth += 1
        elif token == "<":
            depth -= 1
            if depth == 0:
                return i
        i = source.match[i] - 1 if token in (")", "]", "}") else i - 1
        if i < 0:
            break
    raise OverlayError("PTR103", "this `>` closes nothing", source.place(last), "Balance the brackets.")
