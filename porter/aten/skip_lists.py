"""The lists of expected failures, skips and supported complex operators of PyTorch's MPS tests.

Source: `torch/testing/_internal/common_mps.py` (2.8 on), `test/test_mps.py` (2.7 and before).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from porter.core.checkout import Checkout
from porter.core.dtypes import FLOAT2, SCALAR_TYPES
from porter.core.edits import Edit
from porter.core.errors import Place, PorterError
from porter.core.layout import TEST_LISTS
from porter.languages.python_brackets import (
    Brackets,
    Element,
    comments_above,
    line_end,
    line_start,
    own_comment,
    read_brackets,
    remove_elements,
)

KINDS = {"SUPPORTED": "allow", "SKIP": "skip", "XFAIL": "xfail"}
_ALIASES = {each.alias: each.torch for each in SCALAR_TYPES if each.alias}
# Lists whose entries have a reason that a port does not take away, by a word of their name or of their function's.
KEPT = {
    "grad": "the list is for backward tests",
    "error_inputs": "the list is for error inputs",
    "MACOS": "the list is for some versions of macOS",
    "SPARSE": "the list is for sparse tests",
    "UNDEFINED": "the list is for results that are undefined on any device",
}

_FUNCTION = re.compile(r"^([ \t]*)def (mps_ops_\w*modifier)\(", re.MULTILINE)
_LIST = re.compile(r"^[ \t]*(?P<name>[A-Z]\w*)(?:[ \t]*(?::[^=\n]*)?=\s*|\.update\(\s*)(?P<open>\{)", re.MULTILINE)
_ENTRY = re.compile(r"(['\"])(?P<name>[^'\"\n]*)\1\s*(?::\s*(?P<value>.*))?", re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """An operator in a list: `name` is the OpInfo's name and variant in one; `dtypes` are torch names, None for all.

    `readable` is false when the dtypes are not written out one by one. `comment` is that of its own line, else the
    lines above it.
    """

    name: str
    dtypes: tuple[str, ...] | None
    comment: str
    line: int
    readable: bool
    element: Element


@dataclass(frozen=True)
class SkipList:
    """One list: `kind` is skip, xfail or allow; `function` the modifier it belongs to; `condition` an enclosing if."""

    name: str
    kind: str
    function: str
    condition: str
    file: str
    text: str
    brackets: Brackets

    @property
    def span(self) -> tuple[int, int]:
        return self.brackets.open, self.brackets.end

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(_entries(self))

    @property
    def kept_because(self) -> str:
        """Why no entry of this list goes with a port, or nothing."""
        if self.condition:
            return f"the list holds only if {self.condition}"
        return next((why for word, why in KEPT.items() if word in self.function or word in self.name), "")


@dataclass(frozen=True)
class Decision:
    """What becomes of an entry: `change` is removed, narrowed, added or kept, `dtypes` those that go."""

    skip_list: SkipList
    name: str
    change: str
    dtypes: tuple[str, ...] | None
    why: str


def read_lists(checkout: Checkout) -> tuple[SkipList, ...]:
    """Every list of every modifier, in file order. Raises PTR067 (unclosed bracket), PTR068 (no modifier found)."""
    lists = [found for file in TEST_LISTS if checkout.exists(file) for found in _lists(file, checkout.read(file))]
    if not lists:
        raise PorterError("PTR068", "no list of MPS test expectations was found", Place(TEST_LISTS[0]))
    return tuple(lists)


def entries_for(lists: Iterable[SkipList], names: Collection[str]) -> tuple[tuple[SkipList, Entry], ...]:
    """The entries that name one of these tests (OpInfo name and variant in one word)."""
    return tuple((found, entry) for found in lists for entry in found.entries if entry.name in names)


def decide(found: SkipList, entry: Entry, ported: Collection[str]) -> Decision:
    """Whether an entry's reason goes when `ported` (torch dtype names) run natively and agree with the CPU."""
    if found.kind == "allow":
        return Decision(found, entry.name, "kept", (), "complex types stay allowed")
    if found.kept_because:
        return Decision(found, entry.name, "kept", (), found.kept_because)
    if not entry.readable:
        return Decision(found, entry.name, "kept", (), "its dtypes are not written out")
    if entry.dtypes is None:
        return Decision(found, entry.name, "removed", None, "every dtype of the operator is native now")
    gone = tuple(d for d in entry.dtypes if d in ported)
    if not gone:
        return Decision(found, entry.name, "kept", (), f"{', '.join(entry.dtypes)}: not part of the port")
    change = "removed" if len(gone) == len(entry.dtypes) else "narrowed"
    return Decision(found, entry.name, change, gone, f"{', '.join(gone)}: native now")


def decide_all(
    lists: Iterable[SkipList],
    names: Collection[str],
    ported: Collection[str],
    tested_complex: Collection[str] | None = None,
) -> tuple[Decision, ...]:
    """Every decision about these tests; with complex types ported, the allow-list that those of them which test
    complex types (all, unless said) are missing from too.
    """
    lists = tuple(lists)
    decisions = [decide(found, entry, ported) for found, entry in entries_for(lists, names)]
    allowing = [found for found in lists if found.kind == "allow" and not found.kept_because]
    if FLOAT2.torch in ported and allowing:
        known = {entry.name for found in lists if found.kind == "allow" for entry in found.entries}
        wanted = names if tested_complex is None else tested_complex
        missing = sorted(name for name in wanted if name not in known)
        decisions += [Decision(allowing[0], name, "added", (), "complex types are native now") for name in missing]
    return tuple(decisions)


def edits_of(decisions: Iterable[Decision]) -> tuple[Edit, ...]:
    """The edits that carry decisions out, list by list."""
    by_list: dict[tuple[str, int], list[Decision]] = {}
    for decision in decisions:
        by_list.setdefault((decision.skip_list.file, decision.skip_list.brackets.open), []).append(decision)
    return tuple(edit for group in by_list.values() for edit in _list_edits(group[0].skip_list, group))


def _list_edits(found: SkipList, decisions: list[Decision]) -> Iterator[Edit]:
    removed = {d.name for d in decisions if d.change == "removed"}
    yield from remove_entries(found, removed)
    for decision in decisions:
        if decision.change == "narrowed":
            yield from narrow_entry(found, decision.name, decision.dtypes or ())
        if decision.change == "added":
            yield add_entry(found, decision.name)


def remove_entries(found: SkipList, names: Collection[str]) -> list[Edit]:
    """The edits that take entries out, with their lines and the comments about them alone."""
    elements = found.brackets.elements
    gone = {elements.index(entry.element) for entry in found.entries if entry.name in names}
    return remove_elements(found.file, found.text, found.brackets, gone)


def narrow_entry(found: SkipList, name: str, dtypes: Collection[str]) -> list[Edit]:
    """The edits that take some dtypes out of an entry's list."""
    edits = []
    for entry in found.entries:
        if entry.name == name and entry.dtypes is not None and entry.readable:
            at = found.text.index("[", entry.element.start)
            inner = read_brackets(found.file, found.text, at)
            gone = {i for i, dtype in enumerate(entry.dtypes) if dtype in dtypes}
            edits += remove_elements(found.file, found.text, inner, gone)
    return edits


def add_entry(found: SkipList, name: str) -> Edit:
    """The edit that adds a name to an allow-list: where its neighbours are in order, else behind the last one."""
    if not found.entries:
        return Edit(found.file, found.brackets.open + 1, found.brackets.open + 1, f'"{name}"')
    names = [entry.name for entry in found.entries]
    if name < names[0] and names == sorted(names):
        return _added_before(found, found.entries[0], name)
    fits = [i for i, (one, two) in enumerate(pairwise(names)) if one <= name <= two]
    return _added_behind(found, found.entries[max(fits, key=lambda i: names[i], default=len(names) - 1)], name)


def _added_before(found: SkipList, first: Entry, name: str) -> Edit:
    quote, start = found.text[first.element.start], first.element.start
    indent = found.text[line_start(found.text, start) : start]
    if indent.strip():
        return Edit(found.file, start, start, f"{quote}{name}{quote}, ")
    return Edit(found.file, start, start, f"{quote}{name}{quote},{_newline(found.text, start)}{indent}")


def _added_behind(found: SkipList, previous: Entry, name: str) -> Edit:
    element, text = previous.element, found.text
    quoted = f"{text[element.start]}{name}{text[element.start]}"
    indent = text[line_start(text, element.start) : element.start]
    rest = text[element.after : line_end(text, element.after)].strip()
    comma = "" if element.has_comma else ","
    if indent.strip() or (rest and not rest.startswith("#")):
        return Edit(found.file, element.after, element.after, f"{comma} {quoted}{',' if element.has_comma else ''}")
    newline, end = _newline(text, element.start), line_end(text, element.after)
    if comma:
        return Edit(found.file, element.end, element.end, f",{newline}{indent}{quoted}")
    return Edit(found.file, end, end, f"{indent}{quoted},{newline}")


def _newline(text: str, at: int) -> str:
    return "\r\n" if text[: line_end(text, at)].endswith("\r\n") else "\n"


@lru_cache(maxsize=32)
def _lists(file: str, text: str) -> tuple[SkipList, ...]:
    return tuple(_scan(file, text))


def _scan(file: str, text: str) -> Iterator[SkipList]:
    for function in _FUNCTION.finditer(text):
        end = _function_end(text, function.end(), len(function[1]))
        for match in _LIST.finditer(text, function.end(), end):
            kind = next((kind for word, kind in KINDS.items() if word in match["name"]), "")
            if kind:
                brackets = read_brackets(file, text, match.start("open"))
                condition = _condition(text, match.start())
                yield SkipList(match["name"], kind, function[2], condition, file, text, brackets)


def _function_end(text: str, start: int, indent: int) -> int:
    """Where a line begins that is indented no deeper than the function: its closing parenthesis does not count."""
    found = re.compile(rf"^[ \t]{{0,{indent}}}[A-Za-z@]", re.MULTILINE).search(text, start)
    return found.start() if found else len(text)


def _condition(text: str, at: int) -> str:
    """The condition of the `if` that directly encloses a statement, or nothing."""
    line = text[line_start(text, at + 1) :].split("\n", 1)[0]
    indent = len(line) - len(line.lstrip())
    for above in reversed(text[:at].rstrip().split("\n")[-400:]):
        depth = len(above) - len(above.lstrip())
        if above.strip() and depth < indent and not above.lstrip().startswith("#"):
            return above.strip()[3:-1] if above.strip().startswith("if ") else ""
    return ""


def _entries(found: SkipList) -> Iterator[Entry]:
    for element in found.brackets.elements:
        match = _ENTRY.fullmatch(found.text, element.start, element.end)
        if match:
            dtypes, readable = _dtypes(found, match)
            line = found.text.count("\n", 0, element.start) + 1
            yield Entry(match["name"], dtypes, _comment(found.text, element), line, readable, element)


def _dtypes(found: SkipList, match: re.Match[str]) -> tuple[tuple[str, ...] | None, bool]:
    value = match["value"]
    if value is None or value == "None":
        return None, True
    if not value.startswith("["):
        return None, False
    inner = read_brackets(found.file, found.text, match.start("value"))
    names = [found.text[e.start : e.end] for e in inner.elements]
    readable = inner.end == match.end() and all(re.fullmatch(r"torch\.\w+", name) for name in names)
    return tuple(dtype_name(name) for name in names), readable


def dtype_name(text: str) -> str:
    """`torch.half` and `torch.float16` are both float16."""
    name = text.removeprefix("torch.")
    return _ALIASES.get(name, name)


def _comment(text: str, element: Element) -> str:
    above = text[comments_above(text, element.start) : line_start(text, element.start)]
    return own_comment(text, element) or " ".join(line.strip(" \t\r#") for line in above.splitlines())
