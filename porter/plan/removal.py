"""Removes old code: implementations, then helpers, macros and includes that become unused."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from porter.aten.declarations import MPS_KEY
from porter.aten.implementations import Implementation, find_macro_expansions, list_host_sources
from porter.aten.native_functions import NativeFunction, NativeFunctions
from porter.core.checkout import Checkout
from porter.core.edits import Edit, find_next_line
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS
from porter.languages.brackets import find_closing_end
from porter.languages.identifiers import contains_identifier
from porter.languages.lexer import lex
from porter.languages.source import Function, Source, parse_source
from porter.metal.insertion import insert_includes

# A type of graphs, defined at the start of a line: none within a function.
_CACHED_GRAPH = re.compile(r"struct(?<=^struct) (?P<name>\w+) : public MPSCachedGraph \{.*?^\};", re.M | re.S)
# Other types there, none of which another file can name. Enumerators of an enumeration without a scope have names too.
_ALIAS = re.compile(r"^(?:using (?P<name>\w+) = |typedef [^;{}()]*\(\^(?P<block>\w+)\)\()[^;{}]*;", re.M)
_SCOPED_ENUM = re.compile(r"^enum class (?P<name>\w+)[^;{}]*\{[^{}]*\};", re.M)
_NATIVE_HEADER = re.compile(r"ATen/ops/(\w+)_native\.h")


@dataclass(frozen=True)
class Removal:
    """A removed symbol, and the edit that removes it."""

    file: str
    symbol: str
    edit: Edit


@dataclass(frozen=True)
class _Definition:
    """A definition that may become unused. It is `shared` if other files may refer to it."""

    name: str
    start: int
    end: int
    shared: bool


@dataclass(frozen=True)
class Rewrite:
    """A function that stays, and the body that it gets."""

    function: Function
    body: str


def find_removals(
    checkout: Checkout,
    implementations: Iterable[Implementation],
    declared: Mapping[str, Collection[str]],
    rewrites: Iterable[tuple[str, Rewrite]] = (),
) -> tuple[Removal, ...]:
    """Returns what can be removed with these implementations, and the bodies that are rewritten in their files.

    `declared` maps each operator to the kernels that its `_native.h` declares.
    """
    by_file: dict[str, dict[int, Implementation]] = {}
    for each in implementations:
        by_file.setdefault(each.file, {})[each.start] = each
    bodies: dict[str, list[Rewrite]] = {}
    for file, rewrite in rewrites:
        bodies.setdefault(file, []).append(rewrite)
    return tuple(
        removed
        for file in sorted({*by_file, *bodies})
        for removed in _without_empty_namespaces(
            checkout.read(file),
            _find_in_file(checkout, file, list(by_file.get(file, {}).values()), declared, bodies.get(file, ())),
        )
    )


def find_orphans(checkout: Checkout, file: str, before: str) -> Iterator[Removal]:
    """The helpers, macros and types of a file that were used in its text `before`, and no longer are."""
    source = parse_source(file, checkout.read(file))
    used = _find_referenced(parse_source(file, before), {})
    is_row = partial(contains_identifier, checkout.read(NATIVE_FUNCTIONS))
    removed: dict[tuple[int, int], str] = {}

    def is_kept(definition: _Definition) -> bool:
        return definition.shared and (_is_used_elsewhere(checkout, file, definition.name) or is_row(definition.name))

    _remove_unused(source, used, removed, is_kept)
    yield from _without_empty_namespaces(source.text, _cut_all(source, removed, {}))


def _remove_unused(
    source: Source, used: Collection[str], removed: dict[tuple[int, int], str], is_kept: Callable[[_Definition], bool]
) -> None:
    """Adds to `removed` the definitions that were used and that nothing which stays uses, until there are no more."""
    while True:
        before = {**removed}
        for definition in _find_definitions(source):
            span = (definition.start, definition.end)
            if span in before or definition.name not in used or _is_referenced(source, definition, removed):
                continue
            if not is_kept(definition):
                removed[span] = definition.name
        if removed == before:
            return


def _without_empty_namespaces(text: str, removals: Iterable[Removal]) -> Iterator[Removal]:
    made = list(removals)
    inside = sorted((each.edit for each in made), key=lambda edit: edit.start)
    grown = dict(zip(inside, remove_empty_namespaces(text, inside), strict=True))
    for removal in made:
        yield replace(removal, edit=grown[removal.edit])


def _find_in_file(
    checkout: Checkout,
    file: str,
    implementations: list[Implementation],
    declared: Mapping[str, Collection[str]],
    rewrites: Sequence[Rewrite],
) -> Iterator[Removal]:
    source = parse_source(file, checkout.read(file))
    removed = {(i.start, i.end): i.symbol for i in implementations}
    removed |= dict(_find_registrations(source, removed.values()))
    removed |= _find_overloads(source, implementations, removed)
    bodies = {(each.function.body_start, each.function.body_end): each for each in rewrites}
    removed |= {span: f"the body of {each.function.name}" for span, each in bodies.items()}
    needed_before = _find_referenced(source, {})

    def is_kept(definition: _Definition) -> bool:
        name, start = definition.name, definition.start
        if any(contains_identifier(r.body, name) or r.function.start == start for r in rewrites):
            return True
        return definition.shared and _is_used_elsewhere(checkout, file, name)

    _remove_unused(source, needed_before, removed, is_kept)
    yield from _cut_all(source, removed, bodies)
    for include in source.includes():
        match = _NATIVE_HEADER.fullmatch(include.path)
        if match and match[1] in declared and not _still_implemented(source, declared[match[1]], removed):
            line_end = source.text.find("\n", include.end) + 1
            yield Removal(file, f"#include <{include.path}>", Edit(file, include.start, line_end, ""))


def _list_outermost(removed: Mapping[tuple[int, int], str]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yields what is removed, in order, without what is removed with it: a type's constructor."""
    last = 0
    for (start, end), symbol in sorted(removed.items(), key=lambda each: (each[0][0], -each[0][1])):
        if end > last:
            yield (start, end), symbol
            last = end


def _cut_all(
    source: Source, removed: dict[tuple[int, int], str], bodies: Mapping[tuple[int, int], Rewrite]
) -> Iterator[Removal]:
    """Yields what is removed, in order, and the bodies that are rewritten."""
    top = last = 0  # of the definitions side by side that are cut as one
    for (start, end), symbol in _list_outermost(removed):
        if (start, end) in bodies:
            yield Removal(source.path, symbol, Edit(source.path, start, end, bodies[start, end].body))
            top = last = end
            continue
        edit = _cut(source, start, end, removed, top, last)
        top = top if edit.start <= last else edit.start
        edit = replace(edit, start=max(last, edit.start))  # the blank line between two that go is cut once
        last = edit.end
        yield Removal(source.path, symbol, edit)


def _find_registrations(source: Source, kernels: Iterable[str]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yields the lines that register removed kernels for a stub."""
    for use in source.macro_uses():
        named = use.arguments[1].lstrip("& ").rpartition("::")[2] if len(use.arguments) == 2 else ""
        if named in kernels and use.name.endswith("_DISPATCH"):
            yield (use.start, use.end), f"{use.name}({use.arguments[0]})"


def _find_overloads(
    source: Source, implementations: Iterable[Implementation], removed: Mapping[tuple[int, int], str]
) -> dict[tuple[int, int], str]:
    """The overloads of removed implementations, where only they and these call each other.

    Rows of one kernel name have a function each, of which one often calls another.
    """
    names = {each.function.name for each in implementations if each.function and each.function.wrapper is None}
    found = [each for each in _find_definitions(source) if each.name in names]
    all_removed = {**removed, **{(each.start, each.end): each.name for each in found}}
    return {
        (each.start, each.end): each.name
        for each in found
        if not _is_referenced(source, each, all_removed) and (each.start, each.end) not in removed
    }


def _find_definitions(source: Source) -> Iterator[_Definition]:
    """Yields the helpers and macros of a file, which can be removed if unused."""
    for function in source.functions():
        if function.wrapper is None:
            yield _Definition(function.name, function.start, function.end, not function.static)
    for macro in source.macros():
        yield _Definition(macro.name, macro.start, macro.end, False)
    for pattern in (_CACHED_GRAPH, _ALIAS, _SCOPED_ENUM):
        for match in pattern.finditer(source.text):
            yield _Definition(match["name"] or match.groupdict()["block"], match.start(), match.end(), False)


def _find_referenced(source: Source, removed: dict[tuple[int, int], str]) -> set[str]:
    """Returns the names of the definitions in use. What was unused before the port is left alone."""
    return {each.name for each in _find_definitions(source) if _is_referenced(source, each, removed)}


def _is_referenced(source: Source, definition: _Definition, removed: dict[tuple[int, int], str]) -> bool:
    """Whether a name is used, or pasted by a macro, outside its own definition and the removed code."""
    outside = [(definition.start, definition.end), *removed]
    if any(not _within(token.start, outside) for token in source.references(definition.name)):
        return True
    return any(
        "##" in macro.body and contains_identifier(made, definition.name) and not _within(use.start, outside)
        for use, macro, made in find_macro_expansions(source.path, source.text)
    )


def _within(offset: int, spans: Iterable[tuple[int, int]]) -> bool:
    return any(start <= offset < end for start, end in spans)


def _is_used_elsewhere(checkout: Checkout, file: str, name: str) -> bool:
    """Whether another file of the MPS backend contains a name."""
    folder = file.rsplit("/", 1)[0]
    parent = folder.rsplit("/", 1)[0]
    others = [*checkout.list(folder, ".mm", ".h", ".cpp"), *checkout.list(parent, ".mm", ".h", ".cpp")]
    return any(contains_identifier(checkout.read(path), name) for path in others if path != file)


def _still_implemented(source: Source, kernels: Collection[str], removed: dict[tuple[int, int], str]) -> bool:
    """Whether the file still defines one of the kernels that the header declares, directly or by a macro line."""
    if any(function.name in kernels and not _within(function.start, removed) for function in source.functions()):
        return True
    return any(
        any(argument in kernels for argument in use.arguments) and not _within(use.start, removed)
        for use in source.macro_uses()
    )


def _cut(source: Source, start: int, end: int, removed: dict[tuple[int, int], str], top: int, last: int) -> Edit:
    """Returns the edit that removes a definition with its comment and lines, leaving one blank line in their place.

    What is cut above it starts at `top` and ends at `last`.
    """
    text = source.text
    first, stop = start, end
    start = _find_comment_start(source, start, removed)
    end = find_next_line(text, end)
    if _is_heading(source, text[start:first], start, removed):
        return Edit(source.path, first, find_next_line(text, end), "")
    start = _find_own_heading(source, start, removed[first, stop], removed)
    above = text.endswith(("\n\n", "\n\r\n"), 0, top if start <= last else start)
    if above and text.startswith(("\n", "\r\n"), end):
        end = find_next_line(text, end)
    elif above and text[end:].lstrip(" ").startswith("}"):
        start -= 2 if text.endswith("\r\n", 0, start) else 1
    return Edit(source.path, start, end, "")


def _find_comment_start(source: Source, start: int, removed: dict[tuple[int, int], str]) -> int:
    """Returns the start of the comment directly above, unless it is a heading over macro lines that stay."""
    for function in source.functions():
        if function.start == start:
            return function.leading
    line = text_start = source.text.rfind("\n", 0, start) + 1
    following = find_next_line(source.text, source.text.find("\n", start))
    while line > 0:
        previous = source.text.rfind("\n", 0, line - 1) + 1
        if not source.text[previous:line].lstrip().startswith("//"):
            break
        line = previous
    alone = not source.text[following : following + 1].strip() or _within(following, removed)
    return line if alone and line != text_start and not _in_run(source, start, removed) else text_start


def _is_heading(source: Source, comment: str, start: int, removed: dict[tuple[int, int], str]) -> bool:
    """Whether a comment is over all the functions of a namespace, of which others stay: after another one's end."""
    if not comment.startswith("// ") or not source.text[:start].rstrip().split("\n")[-1].startswith("} // namespace"):
        return False
    end = source.text.find("} // namespace", start)
    inside = [each for each in source.functions() if start < each.start < end]
    named = any(contains_identifier(comment, word) for each in inside for word in each.name.split("_"))
    return not named and any(not _within(each.start, removed) for each in inside[1:])


def _find_own_heading(source: Source, start: int, symbol: str, removed: dict[tuple[int, int], str]) -> int:
    """Returns the start of a comment above a blank line that only names what is removed: `// Hardtanh backward`."""
    lines = source.text[:start].splitlines(keepends=True)
    first = max(len(lines) - 1, 0)
    while first > 0 and lines[first - 1].startswith("//"):
        first -= 1
    words = re.findall(r"[a-z0-9]+", "".join(lines[first:]).lower())
    if not words or lines[-1].strip() or not _names(words, symbol):
        return start
    below = (each.name for each in source.functions() if each.start > start and not _within(each.start, removed))
    return start if _names(words, next(below, "")) else sum(map(len, lines[:first]))


def _names(words: Sequence[str], symbol: str) -> bool:
    """Whether words are those of a symbol, in any order, or as one word its start: `HuberLoss` of `huber_loss_out`."""
    parts = symbol.lower().split("_")
    return {*words} <= {*parts} or "".join(parts).startswith("".join(words))


def _in_run(source: Source, start: int, removed: dict[tuple[int, int], str]) -> bool:
    """Whether another macro use that stays follows the one at `start`, so that a comment above belongs to both."""
    for this, following in pairwise(use for use in source.macro_uses() if use.start >= start):
        if source.text[this.end : following.start].strip(" ;\r") != "\n":
            return False
        if not _within(following.start, removed):
            return True
    return False


_NAMESPACE = re.compile(r"^(?:[ \t]*//[^\n]*\n)*[ \t]*namespace (?!at\b)[\w:]* ?\{[ \t]*\r?$", re.M)


def remove_empty_namespaces(text: str, edits: Sequence[Edit]) -> list[Edit]:
    """Returns the edits, which are in order, of which some also remove the namespace around what they remove."""
    made = list(edits)
    for match in _NAMESPACE.finditer(text):
        first = next((edit for edit in made if match.end() <= edit.start), None)
        if first is None or text[match.end() : first.start].strip():
            continue
        close = find_closing_end(text, text.rindex("{", 0, match.end()), "{}")
        inside = [at for at, edit in enumerate(made) if match.end() <= edit.start and edit.end < close]
        if not inside or any(made[at].text for at in inside) or _leaves_text(text, match.end(), close - 1, made):
            continue
        ends = [*(made[at].start for at in inside[1:]), _find_end(text, match.start(), close)]
        starts = [match.start(), *(made[at].start for at in inside[1:])]
        for at, start, end in zip(inside, starts, ends, strict=True):
            made[at] = replace(made[at], start=start, end=end)
    return made


def _leaves_text(text: str, start: int, end: int, edits: Sequence[Edit]) -> bool:
    for edit in edits:
        if start <= edit.start and edit.end <= end:
            if text[start : edit.start].strip():
                return True
            start = edit.end
    return bool(text[start:end].strip())


def _find_end(text: str, start: int, close: int) -> int:
    """Returns the end of the line that closes a namespace, and of a blank one after it if one is before it too."""
    end = text.find("\n", close) + 1 or len(text)
    if text.endswith("\n\n", 0, start) and text.startswith("\n", end):
        end += 1
    return end


_EMPTY_NAMESPACE = re.compile(r"(?:inline )?namespace (?:\w+ (?::: \w+ )*)?\{ \} ?")


def delete_empty_files(checkout: Checkout, files: Iterable[str]) -> Iterator[Edit]:
    """The edits that leave no text in those of some host files that define nothing: such a file is deleted."""
    for file in sorted(set(files)):
        text = checkout.read(file)
        if file.endswith(".mm") and text and defines_nothing(file, text):
            yield Edit(file, 0, len(text), "")


def defines_nothing(file: str, text: str) -> bool:
    """Whether a file has nothing but comments, directives that include no code, and namespaces without anything."""
    if any(token.text == ";" for token in lex(text)):  # stops early in most files
        return False
    source = parse_source(file, text)
    if not all(include.path.endswith(".h") for include in source.includes()):
        return False
    code, before = " ".join(token.text for token in source.code), ""
    while code != before:
        code, before = _EMPTY_NAMESPACE.sub("", code), code
    return not code


# Calls of implementations that a port removes, in code that stays: they call the operator instead.
#
# A `_native.h` header declares what native_functions.yaml names, so that such a call would not compile after the port.


@dataclass(frozen=True)
class Gone:
    """A function that was removed, and the operator that it computed for MPS."""

    symbol: str
    function: NativeFunction


def redirect_calls(checkout: Checkout, gone: Iterable[Gone]) -> Iterator[Edit]:
    """The edits of what still calls removed functions. Raises PTR362 for a call that is not one of the operator."""
    removed = {each.symbol: each.function for each in gone}
    for path in list_host_sources(checkout) if removed else ():
        text = checkout.read(path)
        if not any(contains_identifier(text, symbol) for symbol in removed):
            continue
        source = parse_source(path, text)
        called = dict[str, None]()
        for start, end, function, arguments in _find_calls(source, removed):
            if len(arguments) != len(function.arguments):
                what = f"a call of {function.base}'s MPS code, which the port removes, is not one of the operator"
                raise PorterError("PTR362", what, source.place(start), "Call the operator there, or port it by hand.")
            yield Edit(path, start, end, _call_operator(function, arguments))
            called[function.base] = None
        yield from _include_operators(checkout, source, called)


def _include_operators(checkout: Checkout, source: Source, called: Iterable[str]) -> Iterator[Edit]:
    """Includes the operators' headers, in place of those of their implementations where nothing else needs these."""
    included = {each.path: each for each in source.includes()}
    missing = []
    for base in called:
        rows = NativeFunctions.read(checkout).find_overloads(base)
        kernels = [entry.kernel.rpartition("::")[2] for row in rows if (entry := row.entry_for(MPS_KEY))]
        own = included.get(f"ATen/ops/{base}_native.h")
        header = f"ATen/ops/{base}.h"
        if header in included:
            continue
        if own and not any(contains_identifier(source.text, each) for each in kernels):
            yield Edit(source.path, own.start, own.end, f"#include <{header}>")
        else:
            missing.append(header)
    yield from insert_includes(source.path, source.text, tuple(sorted(missing)))


def _find_calls(
    source: Source, removed: dict[str, NativeFunction]
) -> Iterator[tuple[int, int, NativeFunction, tuple[str, ...]]]:
    """Start, end, operator and arguments of each call within a function's body."""
    bodies = [(each.body_start, each.body_end) for each in source.functions()]
    for at, token in enumerate(source.code[:-1]):
        if token.text not in removed or source.code[at + 1].text != "(":
            continue
        if not any(start <= token.start < end for start, end in bodies):
            continue
        first = at
        while first and source.code[first - 1].text == "::":
            scoped = first > 1 and source.code[first - 2].end == source.code[first - 1].start
            first -= 2 if scoped else 1
        end = source.code[source.partners[at + 1]].end
        yield source.code[first].start, end, removed[token.text], source.arguments(at + 1)


def _call_operator(function: NativeFunction, arguments: tuple[str, ...]) -> str:
    """The call of at:: with the arguments of the implementation: results are first where they are given."""
    name = function.name.partition(".")[0]
    given = list(zip(function.arguments, arguments, strict=True))
    results = [text for each, text in given if each.is_result]
    if name.endswith("_"):
        [own, *rest] = arguments
        return f"{own}.{name}({', '.join(rest)})"
    others = [text for each, text in given if not each.is_result]
    suffix = "_out" if results else ""
    return f"at::{name}{suffix}({', '.join((*results, *others))})"
