"""Functions that are overloaded by address space and do different things: each gets a name of its own.

Which of them a call takes is read off the declarations of what it is given. Raises PTR104 where that does not tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from aten_overlay.errors import OverlayError
from aten_overlay.metal.source.arguments import split_parameters
from aten_overlay.metal.source.declarations import Unit, find_name
from aten_overlay.metal.source.lexer import Source, skip_angles
from aten_overlay.metal.source.syntax import Declaration, head_end

SPACES = ("device", "threadgroup", "constant", "thread")
_ENDS_DECLARATOR = frozenset(("[", "=", ";", ",", ")", "{", ":"))
_OF_TYPES = frozenset(("*", "&", "<", ">", "::", ","))
_NO_TYPES = frozenset(("return", "else", "case", "goto", "throw", "new"))
_CASTS = frozenset(("static_cast", "reinterpret_cast", "const_cast"))
_VALUE = re.compile(r"(bool|u?char|u?short|u?int|u?long|half|bfloat|float|u?int(8|16|32|64)_t)(\dx)?\d?$")
_UNKNOWN_VALUE = "?"
Signature = tuple[str, ...]


@dataclass(frozen=True)
class Overloads:
    """The overloads of one function that differ in address spaces.

    `forms` has for each signature, which is the address spaces of parameters ("" by value), the first one that does the
    same. `repeated` are the declarations that do the same as an earlier one of another signature. C++ cannot have both
    of some, which makes new names `required`.
    """

    name: str
    forms: Mapping[Signature, Signature]
    repeated: tuple[Declaration, ...]
    required: bool

    def new_name(self, spaces: Signature) -> str:
        """What an overload is called on the host."""
        return "_".join((self.name, "pm", *(space or "value" for space in self.forms[spaces])))


@dataclass(frozen=True)
class Function:
    """A definition, with the tokens of its head and of its body less the address spaces."""

    declaration: Declaration
    head: tuple[str, ...]
    body: tuple[str, ...]


def group(source: Source, alike: Sequence[Function]) -> Overloads | None:
    """The overloads among functions whose heads differ in address spaces and `const` alone; None where no more than
    `const` matters."""
    by_spaces: dict[Signature, set[tuple[object, object]]] = {}
    spaces = {id(f.declaration): signature(source, f.declaration) for f in alike}
    for f in alike:
        by_spaces.setdefault(spaces[id(f.declaration)], set()).add((f.head, f.body))
    first: dict[frozenset[tuple[object, object]], Signature] = {}
    forms = {s: first.setdefault(frozenset(those), s) for s, those in by_spaces.items()}
    if len(first) == 1 or len({f.body for f in alike}) == 1:
        return None
    repeated = (f.declaration for f in alike if forms[spaces[id(f.declaration)]] != spaces[id(f.declaration)])
    required = len({f.head for f in alike}) < len({(f.head, f.body) for f in alike})
    name = source.tokens[find_name(source, alike[0].declaration)[0]]
    return Overloads(name, forms, tuple(repeated), required)


def has_name(source: Source, declaration: Declaration) -> bool:
    """Whether this is a function with a name, and no operator."""
    if "operator" in source.tokens[declaration.start : head_end(declaration)]:
        return False
    try:
        return find_name(source, declaration)[1] >= 0
    except OverlayError:
        return False


def signature(source: Source, declaration: Declaration) -> Signature:
    """The address space of each parameter of a function."""
    _, opening = find_name(source, declaration)
    return tuple(_space_of_type(source, a, b) for a, b in split_parameters(source, opening + 1, source.match[opening]))


def _space_of_type(source: Source, start: int, end: int) -> str:
    words = source.tokens[start:end]
    if not {"*", "&"} & set(words):
        return ""
    return next((w for w in words if w in SPACES), "thread")


def find_renamings(
    unit: Unit, declarations: Iterable[Declaration], overloads: Overloads
) -> list[tuple[int, str]] | None:
    """The tokens that name an overload, where it is declared or called, with its new name.

    None where a call does not show which it takes, and C++ can choose, by `const`. Raises PTR104 where it cannot.
    """
    source, found = unit.source, []
    for declaration in declarations:
        own = _own_name(source, declaration, overloads.name)
        for i in range(declaration.start, declaration.end):
            opening = _call_opening(source, i, declaration.end) if source.tokens[i] == overloads.name else -1
            if opening < 0 or source.tokens[i - 1] in (".", "->"):
                continue
            spaces = signature(source, declaration) if i == own else _given(unit, declaration, opening)
            fitting = _find_fitting(overloads, spaces)
            if len(fitting) > 1 and overloads.required:
                raise _unclear(source, overloads, i)
            if len(fitting) > 1:
                return None
            found += [(i, name) for name in fitting]
    return found


def _own_name(source: Source, declaration: Declaration, name: str) -> int:
    if declaration.outer >= 0 or name not in source.tokens[declaration.start : declaration.end]:
        return -1
    return find_name(source, declaration)[0] if has_name(source, declaration) else -1


def _call_opening(source: Source, i: int, end: int) -> int:
    after = skip_angles(source, i + 1, end) if source.tokens[i + 1] == "<" else i + 1
    return after if source.tokens[after] == "(" else -1


def _find_fitting(overloads: Overloads, spaces: Signature) -> set[str]:
    """The new names of the overloads that may take arguments in these spaces; none for what another function takes."""
    return {
        overloads.new_name(s)
        for s in overloads.forms
        if len(s) == len(spaces) and all(not a or not b or a == b for a, b in zip(s, spaces, strict=True))
    }


def _unclear(source: Source, overloads: Overloads, at: int) -> OverlayError:
    return OverlayError(
        "PTR104",
        f"which overload of `{overloads.name}` is called here depends on an address space that does not show",
        source.place(at),
        "The host has a single address space: give the overloads different names.",
    )


def _given(unit: Unit, declaration: Declaration, opening: int) -> Signature:
    ranges = split_parameters(unit.source, opening + 1, unit.source.match[opening])
    return tuple(_space_of(unit, declaration, a, b) for a, b in ranges)


def _space_of(unit: Unit, declaration: Declaration, start: int, end: int) -> str:
    """The address space of an expression's memory; "" where its declarations do not tell."""
    source, tokens = unit.source, unit.source.tokens
    is_address = tokens[start] == "&"
    while start < end and tokens[start] in ("&", "*"):
        start += 1
    if start == end:
        return ""
    bracketed = range(start + 1, source.match[start]) if tokens[start] == "(" else range(0)
    if tokens[start] in _CASTS:
        bracketed = range(start + 2, skip_angles(source, start + 1, end))
    space = next((tokens[i] for i in bracketed if tokens[i] in SPACES), "")
    if space:
        return space
    if tokens[start] == "(":
        return _space_of(unit, declaration, start + 1, source.match[start])
    members = [i + 1 for i in range(start, end) if tokens[i] in (".", "->")]
    if members:
        found = {s for s in _member_spaces(unit, tokens[members[-1]]) if s}
        return found.pop() if len(found) == 1 else ""
    if source.kinds[start] != "name":
        return ""
    space = _space_of_variable(unit, declaration, start)
    return "thread" if space == _UNKNOWN_VALUE and is_address else space.removeprefix(_UNKNOWN_VALUE)


def _member_spaces(unit: Unit, name: str) -> Iterator[str]:
    for member in unit.declarations:
        if member.outer >= 0 and member.body < 0 and name in unit.source.tokens[member.start : member.end]:
            yield _space_of_type(unit.source, member.start, member.end)


def _space_of_variable(unit: Unit, declaration: Declaration, before: int) -> str:
    """The address space of a variable's memory, or of what it points to; _UNKNOWN_VALUE for a variable that may be a
    pointer by its type's name."""
    source, tokens, name = unit.source, unit.source.tokens, unit.source.tokens[before]
    for i in range(before - 1, declaration.start, -1):
        if tokens[i] != name or tokens[i + 1] not in _ENDS_DECLARATOR:
            continue
        first = i
        while first > declaration.start and tokens[first - 1] not in (";", "{", "}", "(", ","):
            first -= 1
        if not _is_type(source, first, i):
            continue
        space = next((tokens[j] for j in range(first, i) if tokens[j] in SPACES), "")
        if not space and "auto" in tokens[first:i] and tokens[i + 1] == "=":
            stop = next(j for j in range(i, declaration.end) if tokens[j] == ";")
            return _space_of(unit, declaration, i + 2, stop)
        if space or {"*", "&"} & set(tokens[first:i]):
            return space
        return "thread" if tokens[i + 1] == "[" or _VALUE.match(tokens[i - 1]) else _UNKNOWN_VALUE
    known = any(e.names and name in e.names and tokens[e.declaration.start] == "constant" for e in unit.entries)
    return "constant" if known else ""


def _is_type(source: Source, start: int, end: int) -> bool:
    """Whether tokens may be what stands before a declared name."""
    if start == end or source.kinds[start] != "name" or source.tokens[start] in _NO_TYPES:
        return False
    return all(source.kinds[i] in ("name", "number") or source.tokens[i] in _OF_TYPES for i in range(start, end))
