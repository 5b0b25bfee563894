"""Elements between Python brackets, with exact spans, and the edits that take elements out.

A scan of the one bracket pair that matters: parsing PyTorch's test files as a whole takes seconds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from porter.core.edits import Edit, line_of
from porter.core.errors import Place, PorterError

TOKEN = re.compile(
    r"(?P<string>\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<comment>\#[^\n]*)|(?P<mark>[()\[\]{},])",
    re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Element:
    """One element: its text is `start` to `end`; `after` is behind its comma, or `end` when it has none."""

    start: int
    end: int
    after: int

    @property
    def has_comma(self) -> bool:
        return self.after > self.end


@dataclass(frozen=True)
class Brackets:
    """A bracket pair: `open` at the bracket, `end` behind the closing one, and what stands between."""

    open: int
    end: int
    elements: tuple[Element, ...]


def read_brackets(file: str, text: str, at: int) -> Brackets:
    """The bracket pair that opens at `at`. Raises PTR067 if it never closes."""
    elements: list[Element] = []
    pending, behind = [text[at]], at + 1
    for token in TOKEN.finditer(text, at + 1):
        mark = token["mark"]
        if mark is None:
            continue
        if mark in _CLOSING:
            pending.append(mark)
        elif mark != ",":
            if _CLOSING[pending.pop()] != mark:
                break
            if not pending:
                elements += _element(text, behind, token.start(), token.start())
                return Brackets(at, token.end(), tuple(elements))
        elif len(pending) == 1:
            elements += _element(text, behind, token.start(), token.end())
            behind = token.end()
    raise PorterError("PTR067", "this bracket is never closed", Place(file, line_of(text, at)), "Close it.")


def remove_elements(file: str, text: str, brackets: Brackets, gone: Collection[int]) -> list[Edit]:
    """The edits that take out the elements with these indexes: with their commas, their lines where they fill them,
    the comment on such a line, and comment lines above that speak of nothing else. A tuple of one keeps its comma.
    """
    edits = [_removal(file, text, brackets, run, gone) for run in _runs(text, brackets, gone)]
    if edits and len(gone) == len(brackets.elements) and not _rest(text, brackets, edits):
        return [Edit(file, brackets.open + 1, brackets.end - 1, "")]
    kept = [e for i, e in enumerate(brackets.elements) if i not in gone]
    one_left = text[brackets.open] == "(" and len(kept) == 1 and "=" not in text[kept[0].start : kept[0].end]
    if one_left and not kept[0].has_comma and gone and _is_tuple(text, brackets):
        edits.append(Edit(file, kept[0].end, kept[0].end, ","))
    return edits


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """The offset behind the line feed of the line that holds `at`."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def own_comment(text: str, element: Element) -> str:
    """The comment behind an element on its last line, without the hash."""
    match = re.compile(r"[ \t]*#[ \t]*([^\r\n]*)").match(text, element.after)
    return match[1].rstrip() if match else ""


def comments_above(text: str, at: int) -> int:
    """Where the comment lines begin that stand directly above the line of `at`; that line's start when none do."""
    start = line_start(text, at)
    while start and re.match(r"[ \t]*#", line := text[line_start(text, start - 1) : start]):
        start -= len(line)
    return start


def _element(text: str, start: int, end: int, after: int) -> Iterator[Element]:
    """The element in a stretch between commas: comments before it are not part of it."""
    skipped = re.compile(r"(?:\s|#[^\n]*)*").match(text, start, end)
    begin = skipped.end() if skipped else start
    if begin < end:
        last = begin
        for token in re.finditer(r"#[^\n]*|\"[^\"\n]*\"|'[^'\n]*'|\S", text[begin:end]):
            last = last if token[0].startswith("#") else begin + token.end()
        yield Element(begin, last, after if after > end else last)


def _rest(text: str, brackets: Brackets, edits: list[Edit]) -> str:
    """What the edits leave between the brackets, without white space."""
    at, parts = brackets.open + 1, []
    for edit in edits:
        parts.append(text[at : edit.start])
        at = edit.end
    return "".join([*parts, text[at : brackets.end - 1]]).strip()


def _is_tuple(text: str, brackets: Brackets) -> bool:
    return not re.search(r"[\w\])]$", text[: brackets.open].rstrip(" ")[-1:])


def _runs(text: str, brackets: Brackets, gone: Collection[int]) -> Iterator[tuple[int, int]]:
    """First and last index of every run of removed elements that begin on one another's line."""
    run: tuple[int, int] | None = None
    for i in sorted(gone):
        element = brackets.elements[i]
        if run and i == run[1] + 1 and "\n" not in text[brackets.elements[run[1]].end : element.start]:
            run = (run[0], i)
            continue
        if run:
            yield run
        run = (i, i)
    if run:
        yield run


def _removal(file: str, text: str, brackets: Brackets, run: tuple[int, int], gone: Collection[int]) -> Edit:
    elements = brackets.elements
    first, last = elements[run[0]], elements[run[1]]
    blank_before = not text[line_start(text, first.start) : first.start].strip()
    rest = text[last.after : line_end(text, last.after)].strip()
    if blank_before and (not rest or rest.startswith("#")):
        return _lines(file, text, brackets, run, gone)
    following = elements[run[1] + 1] if run[1] + 1 < len(elements) else None
    previous = elements[run[0] - 1] if run[0] else None
    if following and "\n" not in text[last.end : following.start]:
        return Edit(file, first.start, following.start, "")
    if following and previous and "\n" not in text[previous.end : first.start]:
        return Edit(file, previous.after, last.after, "")
    if following and run[1] + 1 in gone:
        return Edit(file, first.start, last.after + len(text[last.after : line_end(text, last.after)].rstrip()), "")
    if following:
        return Edit(file, first.start, following.start, "")
    kept = [e for i, e in enumerate(elements) if i not in gone]
    if not kept or previous is None or kept[-1] != previous or "#" in text[previous.after : first.start]:
        return Edit(file, first.start, last.after, "")
    if len(kept) == 1 and text[brackets.open] == "(" and _is_tuple(text, brackets):
        return Edit(file, previous.after, last.after, "")
    return Edit(file, previous.end, last.end, "")


def _lines(file: str, text: str, brackets: Brackets, run: tuple[int, int], gone: Collection[int]) -> Edit:
    """Whole lines: with the comment above when no neighbour shares it, and one of two blank lines that would meet."""
    first, last = brackets.elements[run[0]], brackets.elements[run[1]]
    start, end = line_start(text, first.start), line_end(text, last.after)
    following = run[1] + 1
    while following in gone:
        following += 1
    below = text[line_end(text, brackets.elements[following - 1].after) :].split("\n", 1)[0].strip()
    if not below or below[0] in "#)]}" or following == len(brackets.elements):
        start = comments_above(text, first.start)
    if not below and following == run[1] + 1 and _is_blank_above(text, brackets, run[0], gone):
        end = line_end(text, end) if text[end : line_end(text, end)].strip() == "" else end
    if below[:1] in (")", "]", "}") and run[0] - 1 not in gone and _is_blank_above(text, brackets, run[0], gone):
        start = line_start(text, start - 1)
    return Edit(file, max(start, brackets.open + 1), end, "")


def _is_blank_above(text: str, brackets: Brackets, first: int, gone: Collection[int]) -> bool:
    """Whether a blank line stands above the removed elements that end with this one, and the comment about them."""
    while first - 1 in gone:
        first -= 1
    start = comments_above(text, brackets.elements[first].start)
    return start > brackets.open + 1 and not text[line_start(text, start - 1) : start].strip()
