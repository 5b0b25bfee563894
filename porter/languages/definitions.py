"""Finds definitions in ATen's sources by text search, without lexing whole files.

Definitions that file-local macros expand to are found as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from porter.core.edits import line_of
from porter.core.errors import Place, PorterError
from porter.languages import brackets
from porter.languages.cpp import Function, ParseError, TooDeep
from porter.languages.cpp_parser import parse_function
from porter.languages.depth import too_deep
from porter.languages.directives import Macro, parse_macro
from porter.languages.identifiers import in_word
from porter.languages.lexer import directives
from porter.languages.preprocessor import expand, expand_uses

_USE = re.compile(r"^[ \t]*([A-Z_]\w*)\(([^(){};\n]*(?:\n[^(){};]*)?)\)[ \t]*;?[ \t]*(?://[^\n]*)?\r?$", re.M)
_LEADING = re.compile(r"(?:\s+|//[^\n]*|#(?:[^\n\\]|\\\r?\n|\\.)*)*")
# Heads as most are asked for: found without a pattern of their own.
_PLAIN_HEAD = re.compile(r"\\b(\w+)\\s\*\\\(")
_WRAPPED_HEAD = re.compile(r"TORCH_IMPL_FUNC\\\(\\s\*(\w+)\\s\*\\\)\\s\*\\\(")
_WRAPPED = re.compile(r"TORCH_IMPL_FUNC\(\s*(\w+)\s*\)\s*\(")
_OPENER = re.compile(r"\s*\(")
_CALLS = bytes(each if re.match(r"[\w(]", chr(each), re.A) else ord(" ") for each in range(256))
_FIRST_WORD = re.compile(r"(?:\\b)?(\w+)(?![\w?*+{|])")
# What ends the declaration before.
_ENDINGS = (";", "}", "{", "\n\n", "\n\r\n", "*/", ")\n", ")\r\n")
_CONTINUED = re.compile(r"\\\r?\n")
_TEMPLATE = re.compile(r"template\s*<")
_WRAPPERS = ("TORCH_IMPL_FUNC", "TORCH_META_FUNC")


@dataclass(frozen=True)
class Definition:
    """The text of a C++ definition: from the file, or expanded from the use of a macro at `place`."""

    path: str
    text: str
    place: Place
    templates: tuple[str, ...] = ()
    expanded: bool = False

    def line_of(self, offset: int) -> Place:
        """Returns the place of an offset into `text`; for expanded text, the place of the macro use."""
        if self.expanded:
            return self.place
        return Place(self.path, self.place.line + self.text.count("\n", 0, offset))


@lru_cache(maxsize=256)
def find_macros(text: str) -> dict[str, Macro]:
    """Returns the macros a file defines. The first of two definitions wins: the second is for mobile builds."""
    found: dict[str, Macro] = {}
    for directive in directives(text):
        macro = parse_macro(directive)
        if macro:
            found.setdefault(macro.name, macro)
    return found


def expand_use(text: str, macro: Macro, arguments: Sequence[str]) -> str:
    """Expands a use of a macro, and in the result the file's other function-like macros, except variadic ones."""
    usable = {name: each for name, each in find_macros(text).items() if each.params and "..." not in each.params}
    return expand_uses(expand(macro, arguments), usable)


@lru_cache(maxsize=256)
def find_macro_uses(path: str, text: str) -> tuple[tuple[Macro, list[str], Place], ...]:
    """Returns the file-scope uses of function-like macros that the file defines."""
    return tuple(_find_macro_uses(path, text))


def _find_macro_uses(path: str, text: str) -> Iterator[tuple[Macro, list[str], Place]]:
    macros = find_macros(text)
    for match in _USE.finditer(text):
        macro = macros.get(match.group(1))
        arguments = [a.strip() for a in match.group(2).split(",")]
        if macro and len(arguments) == len(macro.params or ()):
            yield macro, arguments, Place(path, line_of(text, match.start(1)))


@lru_cache(maxsize=32768)
def find_definitions(path: str, text: str, pattern: str) -> tuple[Definition, ...]:
    """Returns the functions whose head (name or wrapper macro) matches `pattern`, including expanded macros."""
    head = rf"{pattern}\s*\("
    found = list(_find_stretches(path, text, head))
    for macro, arguments, place in find_macro_uses(path, text):
        if any(argument and argument in pattern for argument in arguments):
            made = _find_stretches(path, expand_use(text, macro, arguments), head)
            found += [Definition(path, f.text, place, f.templates, expanded=True) for f in made]
    return tuple(found)


def _find_stretches(path: str, text: str, head: str) -> Iterator[Definition]:
    for at, behind in _find_heads(text, head):
        outline = _find_declaration(text, at)
        end = _find_definition_end(text, behind - 1) if outline else None
        if outline and end is not None:
            start, templates = outline
            yield Definition(path, text[start:end], Place(path, line_of(text, start)), templates)


def _find_heads(text: str, head: str) -> Iterator[tuple[int, int]]:
    """Yields the spans of the matches of a pattern."""
    if plain := _PLAIN_HEAD.fullmatch(head):
        return _find_openers(text, plain[1])
    if wrapped := _WRAPPED_HEAD.fullmatch(head):
        return iter(_find_wrapped(text).get(wrapped[1], ()))
    return (match.span() for match in _find_matches(text, head))


def _find_openers(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Yields the spans of an identifier and the round bracket behind it."""
    called = _list_called(text)
    at = text.find(name) if called is None or name in called else -1
    while at >= 0:
        end = at + len(name)
        following = text[end : end + 1]
        if following == "(" or following.isspace():  # most are parts of other words, or not called
            bracket = _OPENER.match(text, end)
            if bracket and not (at and in_word(text[at - 1])):
                end = bracket.end()
                yield at, end
        at = text.find(name, end)


@lru_cache(maxsize=256)
def _list_called(text: str) -> frozenset[str] | None:
    """The last word before each round bracket; None for a text that is not all ASCII, of whose words `re` has more."""
    if not text.isascii():
        return None
    words = (part.rsplit(None, 1) for part in text.encode().translate(_CALLS).split(b"(")[:-1])
    return frozenset(each[-1].decode() for each in words if each)


@lru_cache(maxsize=256)
def _find_wrapped(text: str) -> Mapping[str, Sequence[tuple[int, int]]]:
    """The spans of the heads with TORCH_IMPL_FUNC, by name."""
    found: dict[str, list[tuple[int, int]]] = {}
    for match in _WRAPPED.finditer(text):
        found.setdefault(match[1], []).append(match.span())
    return found


def _find_matches(text: str, head: str) -> Iterator[re.Match[str]]:
    """Yields the matches of a pattern. Its first word is found by plain search, for speed: most texts lack it."""
    word = _FIRST_WORD.match(head)
    if word is None or "|" in head:
        yield from re.finditer(head, text)
        return
    at = text.find(word[1])
    pattern = _compile(head) if at >= 0 else None
    while pattern and at >= 0:
        match = pattern.match(text, at)
        if match:
            yield match
        at = text.find(word[1], match.end() if match else at + len(word[1]))


@lru_cache(maxsize=8192)
def _compile(pattern: str) -> re.Pattern[str]:
    """As `re.compile`, whose own cache is too small for the names of a fork."""
    return re.compile(pattern)


def _find_declaration(text: str, at: int) -> tuple[int, tuple[str, ...]] | None:
    """Returns the start and template parameters of the declaration whose name is at `at`.

    Returns None for a use, a comment or a macro's body.
    """
    line = text.rfind("\n", 0, at) + 1
    if "//" in text[line:at] or _CONTINUED.search(text[line : at + 200].split("{")[0]):
        return None
    begin = 0
    for mark in _ENDINGS:  # only one behind those that are found moves it
        place = text.rfind(mark, max(begin - len(mark) + 1, 0), at)
        begin = place + len(mark) if place >= 0 else begin
    before = _LEADING.match(text, begin, at)
    start = before.end() if before else begin
    templates: tuple[str, ...] = ()
    if _TEMPLATE.match(text, start):
        behind = brackets.find_closing_end(text, text.index("<", start), brackets.ANGLES)
        templates = tuple(p for p in split_parameters(text[text.index("<", start) + 1 : behind - 1]) if p) or ("",)
        start = behind + len(text[behind:at]) - len(text[behind:at].lstrip())
    outline = text[start:at]
    if "#" in outline or re.search(r"[=(,.!|]\s*$|\breturn\b|->\s*$|::\s*$", outline.rstrip("&* \n")):
        return None
    if not text.startswith(_WRAPPERS, at) and not re.search(r"\w", outline):
        return None
    return start, templates


def _find_definition_end(text: str, opener: int) -> int | None:
    """Returns the end of the body after the parameter list (or lists) at `opener`; None if there is no body."""
    at = opener
    while at < len(text) and text[at] == "(":
        at = brackets.find_closing_end(text, at)
        while at < len(text) and text[at].isspace():
            at += 1
    brace = re.compile(r"(?:\s|__\w+|noexcept|const|//[^\n]*)*\{").match(text, at)
    return brackets.find_closing_end(text, brace.end() - 1) if brace else None


def split_parameters(parameters: str) -> list[str]:
    """Splits a parameter list at its top-level commas, each part on one line."""
    return [" ".join(part.split()) for part in brackets.split_at_commas(parameters, "<>()")]


def parse_definition(found: Definition) -> Function:
    """Parses a definition as a function. Raises PTR070 if it is not one."""
    outcome = _parse_definition(found)
    if isinstance(outcome, PorterError):
        raise outcome.with_traceback(None)
    return outcome


@lru_cache(maxsize=4096)
def _parse_definition(found: Definition) -> Function | PorterError:
    """The function, or the error: it is asked for once for each element type, and a damaged one can be long."""
    try:
        return parse_function(found.path, found.text, found.templates)
    except TooDeep as error:
        return too_deep(found.line_of(error.start))
    except (ParseError, IndexError):
        return PorterError(
            "PTR070", "cannot parse this function", found.place, "Check that its brackets match, or port it by hand."
        )
