"""Taking old code out: an implementation, then whatever nothing refers to any more, and nothing that something still
needs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from porter.aten.implementations import Implementation, expansions
from porter.aten.reach import parsed
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.languages.identifiers import mentions
from porter.languages.source import Source

_NATIVE_HEADER = re.compile(r"ATen/ops/(\w+)_native\.h")


@dataclass(frozen=True)
class Removed:
    """Something that goes, and the edit that takes it out."""

    file: str
    symbol: str
    edit: Edit


@dataclass(frozen=True)
class _Definition:
    """A named stretch of a file that may become unused: `shared` when other files may refer to it."""

    name: str
    start: int
    end: int
    shared: bool


def removals(
    checkout: Checkout, implementations: Iterable[Implementation], declared: Mapping[str, Collection[str]]
) -> tuple[Removed, ...]:
    """What goes with these implementations. `declared` names, for each operator, the kernels its `_native.h`
    declares.
    """
    by_file: dict[str, dict[int, Implementation]] = {}
    for each in implementations:
        by_file.setdefault(each.file, {})[each.start] = each
    return tuple(
        gone for file in sorted(by_file) for gone in _in_file(checkout, file, list(by_file[file].values()), declared)
    )


def _in_file(
    checkout: Checkout, file: str, implementations: list[Implementation], declared: Mapping[str, Collection[str]]
) -> Iterator[Removed]:
    source = parsed(file, checkout.read(file))
    gone = {(i.start, i.end): i.symbol for i in implementations}
    needed_before = _reachable(source, {})
    while True:
        known = {**gone}
        for each in _definitions(source):
            span = (each.start, each.end)
            if span in known or each.name not in needed_before or _referenced(source, each, gone):
                continue
            if not (each.shared and _elsewhere(checkout, file, each.name)):
                gone[span] = each.name
        if gone == known:
            break
    for (start, end), symbol in sorted(gone.items()):
        yield Removed(file, symbol, _cut(source, start, end, gone))
    for include in source.includes():
        match = _NATIVE_HEADER.fullmatch(include.path)
        if match and match[1] in declared and not _still_implemented(source, declared[match[1]], gone):
            line_end = source.text.find("\n", include.end) + 1
            yield Removed(file, f"#include <{include.path}>", Edit(file, include.start, line_end, ""))


def _definitions(source: Source) -> Iterator[_Definition]:
    """The helpers, macros and type aliases of a file that can go when nothing refers to them."""
    for function in source.functions():
        if function.wrapper is None:
            yield _Definition(function.name, function.start, function.end, not function.static)
    for macro in source.macros():
        yield _Definition(macro.name, macro.start, macro.end, False)


def _reachable(source: Source, gone: dict[tuple[int, int], str]) -> set[str]:
    """The definitions that something refers to; one that nothing did before the port is not the port's to remove."""
    return {each.name for each in _definitions(source) if _referenced(source, each, gone)}


def _referenced(source: Source, definition: _Definition, gone: dict[tuple[int, int], str]) -> bool:
    """Whether a name is used outside its own definition and outside what goes, macros that paste it included."""
    outside = [(definition.start, definition.end), *gone]
    if any(not _within(token.start, outside) for token in source.references(definition.name)):
        return True
    return any(
        "##" in macro.body and mentions(made, definition.name) and not _within(use.start, outside)
        for use, macro, made in expansions(source.path, source.text)
    )


def _within(offset: int, spans: Iterable[tuple[int, int]]) -> bool:
    return any(start <= offset < end for start, end in spans)


def _elsewhere(checkout: Checkout, file: str, name: str) -> bool:
    """Whether another file of the MPS backend mentions a name that is not private to its file."""
    folder = file.rsplit("/", 1)[0]
    parent = folder.rsplit("/", 1)[0]
    others = [*checkout.list(folder, ".mm", ".h", ".cpp"), *checkout.list(parent, ".mm", ".h", ".cpp")]
    return any(mentions(checkout.read(path), name) for path in others if path != file)


def _still_implemented(source: Source, kernels: Collection[str], gone: dict[tuple[int, int], str]) -> bool:
    """Whether the file still defines one of the kernels that the header declares, in so many words or by a macro
    line.
    """
    if any(function.name in kernels and not _within(function.start, gone) for function in source.functions()):
        return True
    return any(
        any(argument in kernels for argument in use.arguments) and not _within(use.start, gone)
        for use in source.macro_uses()
    )


def _cut(source: Source, start: int, end: int, gone: dict[tuple[int, int], str]) -> Edit:
    """The definition with its own comment and line, leaving one blank line between its neighbours."""
    text = source.text
    start = _leading(source, start, gone)
    end = _line_end(text, end)
    above = text.endswith(("\n\n", "\n\r\n"), 0, start)
    if above and text.startswith(("\n", "\r\n"), end):
        end = _line_end(text, end)
    elif above and text[end:].lstrip(" ").startswith("}"):
        start -= 2 if text.endswith("\r\n", 0, start) else 1
    return Edit(source.path, start, end, "")


def _leading(source: Source, start: int, gone: dict[tuple[int, int], str]) -> int:
    """The start of the comment directly above; a heading over several macro lines stays while one of them does."""
    for function in source.functions():
        if function.start == start:
            return function.leading
    line = text_start = source.text.rfind("\n", 0, start) + 1
    following = _line_end(source.text, source.text.find("\n", start))
    while line > 0:
        previous = source.text.rfind("\n", 0, line - 1) + 1
        if not source.text[previous:line].lstrip().startswith("//"):
            break
        line = previous
    alone = not source.text[following : following + 1].strip() or _within(following, gone)
    return line if alone and line != text_start and not _in_run(source, start) else text_start


def _in_run(source: Source, start: int) -> bool:
    """Whether the macro use at `start` has a neighbour directly below it, so that a comment above heads them both."""
    uses = source.macro_uses()
    for this, following in pairwise(uses):
        if this.start == start:
            return source.text[this.end : following.start].strip(" \r") == "\n"
    return False


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return end + 1 if end >= 0 else len(text)
