"""PyTorch's MPS test lists: expected failures, skips, and operators that support complex types or do not.

Source: `torch/testing/_internal/common_mps.py` (2.8 on), `test/test_mps.py` (2.7 and before).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from itertools import pairwise

from porter.core.checkout import Checkout
from porter.core.dtypes import ALL, FLOAT2, SCALAR_TYPES, Kind
from porter.core.edits import Edit
from porter.core.errors import Place, PorterError
from porter.core.layout import TEST_LISTS
from porter.languages.identifiers import is_word
from porter.languages.python_calls import (
    Expression,
    find_expression,
    insert_strings,
    read_items,
    read_string,
    remove_items,
)


class ListKind(Enum):
    """The meaning of a list, from the first of these words in its name.

    `UNSUPPORTED_COMPLEX_OPS` (2.14 on) names operators whose complex tests are expected to fail; before it,
    `SUPPORTED_COMPLEX_OPS` names those that are tested with complex types at all.
    """

    REFUSE = "UNSUPPORTED"
    ALLOW = "SUPPORTED"
    SKIP = "SKIP"
    XFAIL = "XFAIL"


class Change(Enum):
    """What happens to a test expectation."""

    REMOVED = "removed"
    NARROWED = "narrowed"
    ADDED = "added"
    KEPT = "kept"


_ALIASES = {each.alias: each.torch for each in SCALAR_TYPES if each.alias}
# Lists that a port does not affect, by a word in their own name or their function's name, with the reason.
PERMANENT = {
    "grad": "the list is for backward tests",
    "error_inputs": "the list is for error inputs",
    "MACOS": "the list is for some versions of macOS",
    "SPARSE": "the list is for sparse tests",
    "UNDEFINED": "the list is for results that are undefined on any device",
}

_ABOVE = 60_000  # characters in which the `if` around a list stands
_FUNCTION = re.compile(r"^([ \t]*)def (mps_ops_\w*modifier)\(", re.MULTILINE)
_LIST = re.compile(r"^[ \t]*(?P<name>[A-Z]\w*)(?:[ \t]*(?::[^=\n]*)?=\s*|\.update\(\s*)(?P<open>\{)", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """An operator in a list, at position `index`. `name` is the OpInfo's name and variant in one word.

    `dtypes` are torch names; None means all of them, or if not `readable`, unknown ones.
    """

    name: str
    dtypes: tuple[str, ...] | None
    line: int
    readable: bool
    index: int


@dataclass(frozen=True)
class SkipList:
    """One list. `function` is the modifier it belongs to, `condition` that of an enclosing `if`."""

    name: str
    kind: ListKind
    function: str
    condition: str
    expression: Expression

    @property
    def file(self) -> str:
        return self.expression.file

    @property
    def text(self) -> str:
        """The text of the whole file."""
        return self.expression.text

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(_read_entries(self))

    @property
    def kept_because(self) -> str:
        """Why a port never removes an entry of this list; empty if it may."""
        if self.condition:
            return f"the list holds only if {self.condition}"
        return next((why for word, why in PERMANENT.items() if word in self.function or word in self.name), "")


@dataclass(frozen=True)
class Decision:
    """What happens to an entry, and why; `dtypes` are those removed."""

    skip_list: SkipList
    name: str
    change: Change
    dtypes: tuple[str, ...] | None
    why: str


def read_lists(checkout: Checkout) -> tuple[SkipList, ...]:
    """Returns the lists of all modifiers, in file order. Raises PTR067 (unclosed bracket) or PTR068 (no modifier)."""
    lists = [found for file in TEST_LISTS if checkout.exists(file) for found in _find_lists(file, checkout.read(file))]
    if not lists:
        hint = f"Check out {' and '.join(TEST_LISTS)}: a port removes what they say of an operator."
        raise PorterError("PTR068", "found no list of MPS test expectations", Place(TEST_LISTS[0]), hint)
    return tuple(lists)


def find_entries(lists: Iterable[SkipList], names: Collection[str]) -> tuple[tuple[SkipList, Entry], ...]:
    """Returns the entries for these tests (OpInfo name and variant in one word)."""
    return tuple((found, entry) for found in lists for entry in found.entries if entry.name in names)


def decide(found: SkipList, entry: Entry, ported: Collection[str], failing: Collection[str] = ()) -> Decision:
    """Decides whether an entry is obsolete once the dtypes `ported` (torch names) run natively and match the CPU.

    It stays for the dtypes of those of its tests that are `failing` still.
    """
    if found.kind is ListKind.ALLOW:
        return Decision(found, entry.name, Change.KEPT, (), "complex types stay allowed")
    if found.kept_because:
        return Decision(found, entry.name, Change.KEPT, (), found.kept_because)
    if found.kind is ListKind.REFUSE:
        return _decide_refused(found, entry, ported, failing)
    if not entry.readable:
        return Decision(found, entry.name, Change.KEPT, (), "its dtypes are not written out")
    if entry.dtypes is None:
        if any(_names_test(entry, each) for each in failing):
            return Decision(found, entry.name, Change.KEPT, (), "its test fails still")
        return Decision(found, entry.name, Change.REMOVED, None, "every dtype of the operator is native now")
    still = tuple(d for d in entry.dtypes if any(_names_test(entry, each, d) for each in failing))
    gone = tuple(d for d in entry.dtypes if d in ported and d not in still)
    if still and not gone:
        return Decision(found, entry.name, Change.KEPT, (), f"{', '.join(still)}: its test fails still")
    if not gone:
        return Decision(found, entry.name, Change.KEPT, (), f"{', '.join(entry.dtypes)}: not part of the port")
    change = Change.REMOVED if len(gone) == len(entry.dtypes) else Change.NARROWED
    return Decision(found, entry.name, change, gone, f"{', '.join(gone)}: native now")


def _decide_refused(skip_list: SkipList, entry: Entry, ported: Collection[str], failing: Collection[str]) -> Decision:
    """Decides on an entry without types, which stands for all complex ones: it goes whole or stays."""
    complex_types = [dtype.torch for dtype in ALL if dtype.kind is Kind.COMPLEX]
    still = [dtype for dtype in complex_types if any(_names_test(entry, each, dtype) for each in failing)]
    if still:
        return Decision(skip_list, entry.name, Change.KEPT, (), f"{', '.join(still)}: its test fails still")
    if FLOAT2.torch not in ported:
        return Decision(skip_list, entry.name, Change.KEPT, (), f"{FLOAT2.torch}: not part of the port")
    return Decision(skip_list, entry.name, Change.REMOVED, None, "complex types are native now")


def _names_test(entry: Entry, test: str, dtype: str = "") -> bool:
    """Whether an entry (`divtrunc_rounding`) is for a test (`X.test_output_match_div_trunc_rounding_mps_float16`)."""
    called, _, tested = test.rpartition("_mps_")
    return called.replace("_", "").endswith(entry.name.replace(".", "").replace("_", "")) and dtype in ("", tested)


def decide_all(
    lists: Iterable[SkipList],
    names: Collection[str],
    ported: Collection[str],
    tested_complex: Collection[str] | None = None,
    failing: Collection[str] = (),
) -> tuple[Decision, ...]:
    """Returns the decisions on all entries for these tests; those of tests that are `failing` still stay.

    If a complex type is ported, the allow-list also gains the tests in `tested_complex` (default: all) it lacks.
    """
    lists = tuple(lists)
    decisions = [decide(found, entry, ported, failing) for found, entry in find_entries(lists, names)]
    allowing = [found for found in lists if found.kind is ListKind.ALLOW and not found.kept_because]
    if FLOAT2.torch in ported and allowing:
        known = {entry.name for found in lists if found.kind is ListKind.ALLOW for entry in found.entries}
        wanted = names if tested_complex is None else tested_complex
        missing = sorted(name for name in wanted if name not in known)
        decisions += [Decision(allowing[0], name, Change.ADDED, (), "complex types are native now") for name in missing]
    return tuple(decisions)


def edit_lists(decisions: Iterable[Decision]) -> tuple[Edit, ...]:
    """Returns the edits for these decisions, one per list. Raises PTR050 if a list both gains and loses entries."""
    by_list: dict[tuple[str, int], list[Decision]] = {}
    for decision in decisions:
        by_list.setdefault((decision.skip_list.file, decision.skip_list.expression.start), []).append(decision)
    return tuple(edit for group in by_list.values() for edit in _list_edits(group[0].skip_list, group))


def _list_edits(found: SkipList, decisions: Sequence[Decision]) -> Iterator[Edit]:
    yield from remove_items(found.expression, {path for decision in decisions for path in _paths(found, decision)})
    # The edit that adds names to an allow-list, in order between sorted neighbors, else at the end
    added: dict[int, list[str]] = {}
    for decision in decisions:
        if decision.change is Change.ADDED:
            added.setdefault(_find_index(found.entries, decision.name), []).append(decision.name)
    yield from insert_strings(found.expression, added)


def _paths(found: SkipList, decision: Decision) -> Iterator[tuple[int, ...]]:
    """Yields the paths to remove from a list: entries of this name, or some of their dtypes."""
    for entry in found.entries:
        if entry.name == decision.name and decision.change is Change.REMOVED:
            yield (entry.index,)
        if entry.name == decision.name and decision.change is Change.NARROWED and entry.dtypes is not None:
            yield from ((entry.index, i) for i, dtype in enumerate(entry.dtypes) if dtype in (decision.dtypes or ()))


def _find_index(entries: Sequence[Entry], name: str) -> int:
    names = [entry.name for entry in entries]
    if not names or (name < names[0] and names == sorted(names)):
        return 0
    fits = [i for i, (one, two) in enumerate(pairwise(names)) if one <= name <= two]
    return entries[max(fits, key=lambda i: names[i], default=len(names) - 1)].index + 1


@lru_cache(maxsize=32)
def _find_lists(file: str, text: str) -> tuple[SkipList, ...]:
    return tuple(_scan(file, text))


def _scan(file: str, text: str) -> Iterator[SkipList]:
    for function in _FUNCTION.finditer(text):
        # Returns the start of the first line indented no deeper than the function, its closing parenthesis aside.
        found = re.compile(rf"^[ \t]{{0,{len(function[1])}}}[A-Za-z@]", re.MULTILINE).search(text, function.end())
        end = found.start() if found else len(text)
        for match in _LIST.finditer(text, function.end(), end):
            kind = next((kind for kind in ListKind if kind.value in match["name"]), None)
            if kind:
                expression = find_expression(file, text, match.start("open"), match.start("open"))
                yield SkipList(match["name"], kind, function[2], _find_condition(text, match.start()), expression)


def _find_condition(text: str, at: int) -> str:
    """The condition of the `if` that directly encloses a statement, or nothing."""
    start = text.rfind("\n", 0, at + 1) + 1
    line = text[start : start + _ABOVE].split("\n", 1)[0]
    indent = len(line) - len(line.lstrip())
    for above in reversed(text[max(at - _ABOVE, 0) : at].rstrip().split("\n")[1 if at > _ABOVE else 0 :][-400:]):
        depth = len(above) - len(above.lstrip())
        if above.strip() and depth < indent and not above.lstrip().startswith("#"):
            return above.strip()[3:-1] if above.strip().startswith("if ") else ""
    return ""


def _read_entries(found: SkipList) -> Iterator[Entry]:
    expression = found.expression
    first = expression.line(expression.node) - expression.node.lineno
    for each in _read_displayed(expression.node):
        yield Entry(each.name, each.dtypes, first + each.line, each.readable, each.index)


@lru_cache(maxsize=256)
def _read_displayed(node: ast.expr) -> tuple[Entry, ...]:
    """The entries of a list, their lines counted from its first: an edit of a file leaves most lists as they are."""
    return tuple(_list_displayed(node))


def _list_displayed(node: ast.expr) -> Iterator[Entry]:
    for index, item in enumerate(read_items(node)):
        named = item.key if isinstance(node, ast.Dict) else item.value
        if named is None or not read_string(named):
            continue
        limit = item.value if item.key and not _is_none(item.value) else None
        dtypes = read_dtype_names(limit) if isinstance(limit, ast.List) else None
        readable = limit is None or dtypes is not None
        yield Entry(read_string(named), dtypes, named.lineno, readable, index)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def read_dtype_names(node: ast.expr) -> tuple[str, ...] | None:
    """Returns the torch names of the dtypes in a list, tuple or set literal, or None if it has other elements."""
    if not isinstance(node, ast.List | ast.Tuple | ast.Set):
        return None
    names = [ast.unparse(element) for element in node.elts]
    are_types = all(name.startswith("torch.") and is_word(name.removeprefix("torch.")) for name in names)
    return tuple(map(dtype_name, names)) if are_types else None


def dtype_name(text: str) -> str:
    """Returns the canonical name of a dtype: `float16` for both `torch.half` and `torch.float16`."""
    name = text.removeprefix("torch.")
    return _ALIASES.get(name, name)
