"""What bodies that differ in literals alone become: one body, to which names of kernels and functions are passed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import chain, takewhile

from porter.core.edits import replace_spans
from porter.languages.identifiers import contains_identifier, in_word
from porter.languages.lexer import TokenKind
from porter.languages.source import Source

_STRING = TokenKind.STRING
# Functions of the fork that take any string, and macros that print all that they are passed.
_TAKE_STRINGS = frozenset(("getPipelineStateForFunc", "beginProfileKernel", "alertNotDeterministic"))
_PRINTS = ("TORCH_CHECK", "TORCH_INTERNAL_ASSERT", "TORCH_WARN")  # how their names begin
_COMPILED = frozenset(("format", "static_assert"))  # which need a literal
_KERNEL_NAMES = ("kernel_name", "kernel", "shader_name")
_FUNCTION_NAMES = ("func_name", "op_name", "function_name")
_TYPES = {"const std::string&": _KERNEL_NAMES, "const char*": _FUNCTION_NAMES}
_PIECES = re.compile(r"_|\W|\Z")


@dataclass(frozen=True)
class OneBody:
    """A body with parameters in the place of literals: their declarations, and what each of the bodies passes."""

    text: str
    parameters: tuple[str, ...]
    arguments: tuple[tuple[str, ...], ...]


class _Use(Enum):
    """What a literal is an operand of: a function of any string, a macro that prints it, or what needs a pointer."""

    STRING = "string"
    PRINTED = "printed"
    POINTER = "pointer"


@lru_cache(maxsize=1024)  # each port of a file finds the bodies of those before it
def read_shape(body: str) -> tuple[str, ...]:
    """The tokens of a body, with one that stands for every plain literal."""
    return tuple(
        '""' if _is_plain(token.text) else " ".join(token.text.split())
        for token in Source.parse("", body).tokens
        if token.kind is not TokenKind.SPACE
    )


def is_string_parameter(type_: str) -> bool:
    """Whether a parameter is of a type that names are passed as."""
    return type_ in _TYPES


def merge_bodies(bodies: Sequence[str], taken: Collection[str]) -> OneBody | None:
    """The body that some of one shape have in common, with parameters by other names than are `taken`.

    None where a literal that differs has to be one, or is neither a kernel's name nor a function's.
    """
    source = Source.parse("", bodies[0])
    written = [[each.text[1:-1] for each in Source.parse("", body).code if _is_plain(each.text)] for body in bodies]
    literals = [at for at, each in enumerate(source.code) if _is_plain(each.text)]
    differing = {
        at: values for at, values in zip(literals, zip(*written, strict=True), strict=True) if len(set(values)) > 1
    }
    uses = {at: _read_use(source, at) for at in differing}
    kernels = [values for at, values in differing.items() if uses[at] is _Use.STRING]
    stems = _find_stems(kernels)
    if None in uses.values() or (kernels and stems is None):
        return None
    # What messages name the functions, or what these pass on as pointers, if that is not the stem of kernels
    pointers = (each for at, each in differing.items() if uses[at] is _Use.POINTER and each != stems)
    printed = (each for at, each in differing.items() if uses[at] is _Use.PRINTED and _find_rest(each, stems) is None)
    function = next(chain(pointers, map(_read_beginnings, printed)), None)
    names = [
        next((each for each in options if each not in taken and not contains_identifier(bodies[0], each)), None)
        for options in _TYPES.values()
    ]
    parts = {
        at: _write(values, uses[at], list(zip((stems, function), names, strict=True)))
        for at, values in differing.items()
    }
    if None in parts.values() or None in names:
        return None
    passed = [
        (f"{type_} {name}", values)
        for type_, name, values in zip(_TYPES, names, (stems, function), strict=True)
        if values
    ]
    arguments = tuple(tuple(f'"{values[i]}"' for _, values in passed) for i in range(len(bodies)))
    edits = [(source.code[at].start, source.code[at].end, text or "") for at, text in parts.items()]
    return OneBody(replace_spans(bodies[0], edits), tuple(each for each, _ in passed), arguments)


def fill_body(body: str, passed: Mapping[str, str]) -> str:
    """A body with the literals that its parameters are passed in their place: what `merge_bodies` made it of."""
    source, edits = Source.parse("", body), list[tuple[int, int, str]]()
    code = source.code
    for at, token in enumerate(code):
        if token.kind is not TokenKind.IDENTIFIER or token.text not in passed or code[at - 1].text in (".", "->", "::"):
            continue
        following = [each.text for each in code[at + 1 : at + 5]]
        value, last = passed[token.text], at
        if following == [".", "c_str", "(", ")"]:
            last = at + 4
        elif len(following) > 1 and _is_plain(following[1]):
            joined = following[0] == "+" or (following[0] == "," and _find_called(source, at).startswith(_PRINTS))
            value, last = (value[:-1] + following[1][1:], at + 2) if joined else (value, at)
        edits.append((token.start, code[last].end, value))
    return replace_spans(body, edits)


def _is_plain(text: str) -> bool:
    return text.startswith('"')


def _read_use(source: Source, at: int) -> _Use | None:
    """What a literal is used for; None if that needs a literal, or may."""
    before, after = source.code[at - 1], source.code[at + 1]
    if _STRING in (before.kind, after.kind):
        return None
    if "+" in (before.text, after.text) or (before.text == "=" and _declares_string(source, at)):
        return _Use.STRING
    if before.text not in ("(", ",") or after.text not in (",", ")"):
        return None
    called = _find_called(source, at)
    if called in _TAKE_STRINGS:
        return _Use.STRING
    if called.startswith(_PRINTS):
        return _Use.PRINTED
    is_macro = called.upper() == called and "_CHECK_" not in called  # other macros may need one
    return None if is_macro or called in _COMPILED else _Use.POINTER


def _declares_string(source: Source, at: int) -> bool:
    """Whether a literal is all that a string is declared as."""
    before = [each.text for each in source.code[max(at - 4, 0) : at - 2]]
    return source.code[at + 1].text == ";" and (before[-1:] == ["string"] or before[-2:] == ["string", "&"])


def _find_called(source: Source, at: int) -> str:
    """The name before the round bracket that a token is within; empty within another."""
    at -= 1
    while at >= 0:
        text = source.code[at].text
        if text in ("(", "{", "["):
            break
        at = source.partners[at] - 1 if text in (")", "}", "]") else at - 1
    named = at > 0 and source.code[at].text == "(" and source.code[at - 1].kind is TokenKind.IDENTIFIER
    return source.code[at - 1].text if named else ""


def _find_stems(kernels: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """For each body, what the names of all its kernels begin with, by whole words."""
    stems = tuple(_find_stem(values) for values in zip(*kernels, strict=True))
    return stems if stems and all(stems) else None


def _find_stem(names: Sequence[str]) -> str:
    shared = _find_common(names)
    ends = (at for at in range(len(shared), 0, -1) if all(_PIECES.match(name, at) for name in names))
    return shared[: next(ends, 0)].rstrip("_")


def _find_common(values: Sequence[str]) -> str:
    """What all values begin with."""
    same = takewhile(lambda characters: len(set(characters)) == 1, zip(*values, strict=False))
    return "".join(characters[0] for characters in same)


def _read_beginnings(values: tuple[str, ...]) -> tuple[str, ...]:
    """Values without what all of them end with, that no word goes on into."""
    ending = _find_common([each[::-1] for each in values])[::-1]
    start = next((at for at, character in enumerate(ending) if not in_word(character)), len(ending))
    length = len(ending) - start
    return tuple(each[: len(each) - length] for each in values)


def _write(
    values: tuple[str, ...], use: _Use | None, known: Sequence[tuple[tuple[str, ...] | None, str | None]]
) -> str | None:
    """What stands for a literal, by the parameters with the values `known`; None if nothing does."""
    stems, kernel = known[0]
    if use is _Use.POINTER:
        named = [f"{kernel}.c_str()"] if values == stems else [each for known_, each in known if known_ == values]
        return next(iter(named), None)
    for beginnings, name in known[:1] if use is _Use.STRING else reversed(known):
        rest = _find_rest(values, beginnings)
        if rest is not None and name:
            joined = " + " if use is _Use.STRING else ", "
            return f'{name}{joined}"{rest}"' if rest else name
    return None


def _find_rest(values: tuple[str, ...], beginnings: tuple[str, ...] | None) -> str | None:
    """What all values have behind these, from the end of a word."""
    if beginnings is None:
        return None
    pairs = list(zip(values, beginnings, strict=True))
    rests = {value[len(first) :] for value, first in pairs if value.startswith(first)}
    if len(rests) != 1 or not all(value.startswith(first) for value, first in pairs):
        return None
    rest = rests.pop()
    return rest if _PIECES.match(rest) else None


def list_plain(texts: Collection[str]) -> Iterator[str]:
    """Those of some arguments that are plain literals."""
    return (each for each in texts if [token.kind for token in Source.parse("", each).tokens] == [_STRING])
