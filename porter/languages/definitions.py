"""Finding a definition in ATen's sources without lexing them: the file by text search, then the one stretch in it.

Definitions made by file-local macros are found too, by expanding the macro's use with `#` and `##`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from porter.core.errors import Place, PorterError
from porter.languages.cpp import Function, Unparsed
from porter.languages.cpp_parser import parse_function

_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\(([^)]*)\))?((?:[^\n\\]|\\\r?\n|\\.)*)", re.M)
_USE = re.compile(r"^[ \t]*([A-Z_]\w*)\(([^(){};\n]*(?:\n[^(){};]*)?)\)[ \t]*;?[ \t]*(?://[^\n]*)?\r?$", re.M)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_LEADING = re.compile(r"(?:\s+|//[^\n]*|#(?:[^\n\\]|\\\r?\n|\\.)*)*")
_FIRST_WORD = re.compile(r"(?:\\b)?(\w+)(?![\w?*+{|])")
_WRAPPERS = ("TORCH_IMPL_FUNC", "TORCH_META_FUNC")


@dataclass(frozen=True)
class Macro:
    """A `#define` with its parameters and its body, line continuations taken out."""

    name: str
    parameters: tuple[str, ...]
    body: str
    place: Place


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
def macros_of(path: str, text: str) -> dict[str, Macro]:
    """The macros a file defines. Of two definitions the first counts: the mobile build's comes second."""
    found: dict[str, Macro] = {}
    for match in _DEFINE.finditer(text):
        name, parameters, body = match.group(1), match.group(2), match.group(3)
        names = tuple(p.strip() for p in (parameters or "").replace("\\\n", " ").split(",") if p.strip())
        place = Place(path, text.count("\n", 0, match.start()) + 1)
        found.setdefault(name, Macro(name, names, re.sub(r"\\\r?\n", "\n", body), place))
    return found


def expand(text: str, macros: dict[str, Macro]) -> str:
    """`text` with every use of a plain (not variadic) function-like macro of the file replaced, recursively."""
    usable = {name: m for name, m in macros.items() if m.parameters and "..." not in m.parameters}
    return _expand(text, usable)


def _expand(text: str, usable: dict[str, Macro]) -> str:
    if not usable:
        return text
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, usable))})\(([^()]*)\)")

    def replace(match: re.Match[str]) -> str:
        macro = usable[match.group(1)]
        arguments = [a.strip() for a in match.group(2).split(",")]
        if len(arguments) != len(macro.parameters):
            return match.group(0)
        rest = {name: m for name, m in usable.items() if name != macro.name}
        return _expand(substitute(macro, arguments), rest)

    return pattern.sub(replace, text)


def substitute(macro: Macro, arguments: list[str]) -> str:
    """A macro's body with its arguments in place: `#x` becomes a string, `a##b` one token."""
    values = dict(zip(macro.parameters, arguments, strict=True))
    body = _COMMENT.sub(" ", macro.body)
    body = re.sub(r"(?<!#)#\s*(\w+)", lambda m: f'"{values[m[1]]}"' if m[1] in values else m[0], body)
    body = re.sub(r"\w+", lambda m: values.get(m[0], m[0]), body)
    return re.sub(r"\s*##\s*", "", body)


@lru_cache(maxsize=256)
def uses_of(path: str, text: str) -> tuple[tuple[Macro, list[str], Place], ...]:
    """The file-scope uses of the file's own function-like macros."""
    return tuple(_uses_of(path, text))


def _uses_of(path: str, text: str) -> Iterator[tuple[Macro, list[str], Place]]:
    macros = macros_of(path, text)
    for match in _USE.finditer(text):
        macro = macros.get(match.group(1))
        arguments = [a.strip() for a in match.group(2).split(",")]
        if macro and len(arguments) == len(macro.parameters):
            yield macro, arguments, Place(path, text.count("\n", 0, match.start(1)) + 1)


@lru_cache(maxsize=32768)
def definitions(path: str, text: str, pattern: str) -> tuple[Found, ...]:
    """Every function whose head (name or wrapper macro up to its parameters) matches `pattern`, macro-made ones too."""
    head = re.compile(rf"{pattern}\s*\(")
    found = list(_stretches(path, text, head))
    for macro, arguments, place in uses_of(path, text):
        if any(argument and argument in pattern for argument in arguments):
            expanded = expand(substitute(macro, arguments), macros_of(path, text))
            made = _stretches(path, expanded, head)
            found += [Found(path, f.text, place, f.templates, expanded=True) for f in made]
    return tuple(found)


def _stretches(path: str, text: str, head: re.Pattern[str]) -> Iterator[Found]:
    for match in _heads(text, head):
        outline = _declaration(text, match.start())
        end = _definition_end(text, match.end() - 1) if outline else None
        if outline and end is not None:
            start, templates = outline
            yield Found(path, text[start:end], Place(path, text.count("\n", 0, start) + 1), templates)


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
    if "//" in text[line:at] or "\\\n" in text[line : at + 200].split("{")[0]:
        return None
    begin = max(text.rfind(mark, 0, at) + len(mark) for mark in (";", "}", "{", "\n\n", "*/", ")\n"))
    before = _LEADING.match(text, begin, at)
    start = before.end() if before else begin
    templates: tuple[str, ...] = ()
    if text.startswith("template", start):
        behind = _behind_angles(text, text.index("<", start))
        templates = tuple(p for p in parameters_of(text[text.index("<", start) + 1 : behind - 1]) if p) or ("",)
        start = behind + len(text[behind:at]) - len(text[behind:at].lstrip())
    outline = text[start:at]
    if "#" in outline or re.search(r"[=(,.!|]\s*$|\breturn\b|->\s*$|::\s*$", outline.rstrip("&* \n")):
        return None
    if not text.startswith(_WRAPPERS, at) and not re.search(r"\w", outline):
        return None
    return start, templates


def _behind_angles(text: str, opener: int) -> int:
    depth = 0
    for at in range(opener, len(text)):
        depth += (text[at] == "<") - (text[at] == ">")
        if depth == 0:
            return at + 1
    return len(text)


def _definition_end(text: str, opener: int) -> int | None:
    """Behind the body that follows the parameter list (or lists) at `opener`; None for a mere declaration or call."""
    at = opener
    while at < len(text) and text[at] == "(":
        at = _behind(text, at)
        while at < len(text) and text[at].isspace():
            at += 1
    brace = re.compile(r"(?:\s|__\w+|noexcept|const|//[^\n]*)*\{").match(text, at)
    return _behind(text, brace.end() - 1) if brace else None


_BRACKETS = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+'|[()\[\]{}]", re.S)


def _behind(text: str, opener: int) -> int:
    depth = 0
    for match in _BRACKETS.finditer(text, opener):
        depth += (match[0] in "([{") - (match[0] in ")]}") if len(match[0]) == 1 else 0
        if depth == 0:
            return match.end()
    return len(text)


def parameters_of(parameters: str) -> Iterator[str]:
    """The parts between top-level commas of a parameter list, each on one line."""
    depth, start = 0, 0
    for at, character in enumerate(parameters + ","):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth <= 0:
            yield " ".join(parameters[start:at].split())
            start = at + 1


@lru_cache(maxsize=4096)
def parse(found: Found) -> Function:
    """The function at a found stretch. Raises PTR070 if its outline is not one."""
    try:
        return parse_function(found.path, found.text, found.templates)
    except Unparsed:
        raise PorterError(
            "PTR070", "this function cannot be read", found.place, "Check that its brackets pair, or port it by hand."
        ) from None
