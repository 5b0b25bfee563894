"""Finding a definition in ATen's sources without lexing them: the file by text search, then the one stretch in it.

Definitions made by file-local macros are found too, by expanding the macro's use with `#` and `##`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from porter.core.edits import line_of
from porter.core.errors import Place, PorterError
from porter.languages import brackets
from porter.languages.cpp import Function, TooDeep, Unparsed
from porter.languages.cpp_parser import parse_function
from porter.languages.depth import too_deep
from porter.languages.lexer import directives
from porter.languages.preprocessor import expand, expand_uses
from porter.languages.source import Macro, macro_of

_USE = re.compile(r"^[ \t]*([A-Z_]\w*)\(([^(){};\n]*(?:\n[^(){};]*)?)\)[ \t]*;?[ \t]*(?://[^\n]*)?\r?$", re.M)
_LEADING = re.compile(r"(?:\s+|//[^\n]*|#(?:[^\n\\]|\\\r?\n|\\.)*)*")
_FIRST_WORD = re.compile(r"(?:\\b)?(\w+)(?![\w?*+{|])")
# What ends the declaration before.
_ENDINGS = (";", "}", "{", "\n\n", "\n\r\n", "*/", ")\n", ")\r\n")
_CONTINUED = re.compile(r"\\\r?\n")
_WRAPPERS = ("TORCH_IMPL_FUNC", "TORCH_META_FUNC")


@dataclass(frozen=True)
class Found:
    """A stretch of C++ that defines something: real text, or what a macro makes of its use at `place`."""

    path: str
    text: str
    place: Place
    templates: tuple[str, ...] = ()
    expanded: bool = False

    def line_of(self, offset: int) -> Place:
        """The place of an offset into `text`; for expanded text that of the macro's use."""
        if self.expanded:
            return self.place
        return Place(self.path, self.place.line + self.text.count("\n", 0, offset))


@lru_cache(maxsize=256)
def macros_of(text: str) -> dict[str, Macro]:
    """The macros a file defines. Of two definitions the first counts: the mobile build's comes second."""
    found: dict[str, Macro] = {}
    for directive in directives(text):
        macro = macro_of(directive)
        if macro:
            found.setdefault(macro.name, macro)
    return found


def expanded(text: str, macro: Macro, arguments: Sequence[str]) -> str:
    """What a use of a macro makes, its plain (not variadic) function-like macros of the file expanded too."""
    usable = {name: each for name, each in macros_of(text).items() if each.params and "..." not in each.params}
    return expand_uses(expand(macro, arguments), usable)


@lru_cache(maxsize=256)
def uses_of(path: str, text: str) -> tuple[tuple[Macro, list[str], Place], ...]:
    """The file-scope uses of the file's own function-like macros."""
    return tuple(_uses_of(path, text))


def _uses_of(path: str, text: str) -> Iterator[tuple[Macro, list[str], Place]]:
    macros = macros_of(text)
    for match in _USE.finditer(text):
        macro = macros.get(match.group(1))
        arguments = [a.strip() for a in match.group(2).split(",")]
        if macro and len(arguments) == len(macro.params or ()):
            yield macro, arguments, Place(path, line_of(text, match.start(1)))


@lru_cache(maxsize=32768)
def definitions(path: str, text: str, pattern: str) -> tuple[Found, ...]:
    """Every function whose head (name or wrapper macro up to its parameters) matches `pattern`, macro-made ones too."""
    head = re.compile(rf"{pattern}\s*\(")
    found = list(_stretches(path, text, head))
    for macro, arguments, place in uses_of(path, text):
        if any(argument and argument in pattern for argument in arguments):
            made = _stretches(path, expanded(text, macro, arguments), head)
            found += [Found(path, f.text, place, f.templates, expanded=True) for f in made]
    return tuple(found)


def _stretches(path: str, text: str, head: re.Pattern[str]) -> Iterator[Found]:
    for match in _heads(text, head):
        outline = _declaration(text, match.start())
        end = _definition_end(text, match.end() - 1) if outline else None
        if outline and end is not None:
            start, templates = outline
            yield Found(path, text[start:end], Place(path, line_of(text, start)), templates)


def _heads(text: str, head: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Where a pattern matches; its first word is looked for by plain search."""
    word = _FIRST_WORD.match(head.pattern)
    if word is None or "|" in head.pattern:
        yield from head.finditer(text)
        return
    at = text.find(word[1])
    while at >= 0:
        match = head.match(text, at)
        if match:
            yield match
        at = text.find(word[1], match.end() if match else at + len(word[1]))


def _declaration(text: str, at: int) -> tuple[int, tuple[str, ...]] | None:
    """Start and template parameters of the declaration named at `at`; None for a use, a comment or a macro's body."""
    line = text.rfind("\n", 0, at) + 1
    if "//" in text[line:at] or _CONTINUED.search(text[line : at + 200].split("{")[0]):
        return None
    ends = ((text.rfind(mark, 0, at), len(mark)) for mark in _ENDINGS)
    begin = max((place + length for place, length in ends if place >= 0), default=0)
    before = _LEADING.match(text, begin, at)
    start = before.end() if before else begin
    templates: tuple[str, ...] = ()
    if text.startswith("template", start):
        behind = brackets.behind(text, text.index("<", start), brackets.ANGLES)
        templates = tuple(p for p in parameters_of(text[text.index("<", start) + 1 : behind - 1]) if p) or ("",)
        start = behind + len(text[behind:at]) - len(text[behind:at].lstrip())
    outline = text[start:at]
    if "#" in outline or re.search(r"[=(,.!|]\s*$|\breturn\b|->\s*$|::\s*$", outline.rstrip("&* \n")):
        return None
    if not text.startswith(_WRAPPERS, at) and not re.search(r"\w", outline):
        return None
    return start, templates


def _definition_end(text: str, opener: int) -> int | None:
    """Behind the body that follows the parameter list (or lists) at `opener`; None for a mere declaration or call."""
    at = opener
    while at < len(text) and text[at] == "(":
        at = brackets.behind(text, at)
        while at < len(text) and text[at].isspace():
            at += 1
    brace = re.compile(r"(?:\s|__\w+|noexcept|const|//[^\n]*)*\{").match(text, at)
    return brackets.behind(text, brace.end() - 1) if brace else None


def parameters_of(parameters: str) -> list[str]:
    """The parts between top-level commas of a parameter list, each on one line."""
    return [" ".join(part.split()) for part in brackets.split(parameters, "<>()")]


@lru_cache(maxsize=4096)
def parse(found: Found) -> Function:
    """The function at a found stretch. Raises PTR070 if its outline is not one."""
    try:
        return parse_function(found.path, found.text, found.templates)
    except TooDeep as error:
        raise too_deep(found.line_of(error.start)) from None
    except (Unparsed, IndexError):
        raise PorterError(
            "PTR070", "cannot parse this function", found.place, "Check that its brackets match, or port it by hand."
        ) from None
