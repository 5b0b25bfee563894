"""Reads `native_functions.yaml`: every native function, with the place of its row."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import chain, pairwise

from porter.aten.declarations import MPS_KEY, Argument, Declaration, DispatchEntry, parse_declarations
from porter.core.checkout import Checkout
from porter.core.edits import Edit, common_end, common_start
from porter.core.errors import Place, PorterError
from porter.core.layout import NATIVE_FUNCTIONS

SHARING_KEYS = ("CPU", "CUDA")
_COMPOSITE = "Composite"
_START = "- "
_ROW = re.compile(r"\n- ")
_Rows = tuple[tuple[Declaration, ...], tuple[int, ...], tuple[int, ...]]  # with their offsets and lines


@dataclass(frozen=True)
class NativeFunction:
    """A native function, declared `offset` characters and `line` lines into the file."""

    declaration: Declaration
    offset: int
    line: int

    @property
    def schema(self) -> str:
        return self.declaration.schema

    @property
    def structured(self) -> bool:
        return self.declaration.structured

    @property
    def delegate(self) -> str | None:
        """The function whose structured kernel this one uses."""
        return self.declaration.delegate

    @property
    def loops(self) -> bool:
        """Whether torchgen makes its CPU and CUDA kernels from a function of one element (`ufunc_inner_loop`)."""
        return self.declaration.loops

    @property
    def name(self) -> str:
        """The name with its overload, such as `atan2.out`."""
        return self.declaration.name

    @property
    def base(self) -> str:
        """The base name: `atan2`, also for the in-place `atan2_`. Dunder names keep their underscores."""
        return self.declaration.base

    @property
    def is_inplace(self) -> bool:
        """Whether it is an in-place variant such as `atan2_`."""
        return self.name.split(".")[0].endswith("_")

    @property
    def place(self) -> Place:
        return Place(NATIVE_FUNCTIONS, self.line + self.declaration.line)

    @cached_property
    def dispatch(self) -> tuple[DispatchEntry, ...]:
        """The dispatch entries, with their spans in the file."""
        return tuple(line.moved(self.offset, self.line) for line in self.declaration.dispatch)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return self.declaration.arguments

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The arguments, except those written to."""
        return tuple(a for a in self.arguments if not (a.name == "out" or a.is_result))

    @property
    def results(self) -> int:
        """The number of tensors it returns."""
        return self.schema.rpartition(" -> ")[2].count("Tensor")

    def entry_for(self, key: str) -> DispatchEntry | None:
        """Returns the dispatch entry for a dispatch key, or None."""
        serves = next((at for at, line in enumerate(self.declaration.dispatch) if key in line.keys), None)
        return None if serves is None else self.dispatch[serves]

    @property
    def is_composite(self) -> bool:
        """Whether no backend has a kernel of its own."""
        return not self.delegate and all(
            k.startswith(_COMPOSITE) for line in self.declaration.dispatch for k in line.keys
        )


@dataclass(frozen=True)
class NativeFunctions:
    """Every native function of the file, in order: their declarations, and where each stands."""

    rows: _Rows
    positions: Mapping[str, Sequence[int]] = field(repr=False, compare=False)  # in `all`, by base name
    key_order: Counter[tuple[str, str]] = field(repr=False, compare=False)
    """How often one dispatch key precedes another on the same line of the file."""

    @staticmethod
    def read(checkout: Checkout) -> NativeFunctions:
        """Reads the yaml of a checkout. Raises as `parse`."""
        return _parse(checkout.read(NATIVE_FUNCTIONS))

    @staticmethod
    def parse(text: str) -> NativeFunctions:
        """Reads the text of a yaml.

        Raises PTR010 (malformed yaml), PTR011 (an item that is no function) or PTR500 (two rows of one name).
        """
        return _parse(text)

    @cached_property
    def kernels(self) -> frozenset[str]:
        """What rows dispatch to, for any backend, without namespaces."""
        return frozenset(entry.kernel.rsplit("::", 1)[-1] for function in self.all for entry in function.dispatch)

    @cached_property
    def all(self) -> tuple[NativeFunction, ...]:
        return tuple(map(NativeFunction, *self.rows))

    @cached_property
    def by_name(self) -> dict[str, NativeFunction]:
        return {function.name: function for function in self.all}

    def has(self, base: str) -> bool:
        """Whether some operator has this base name."""
        return base in self.positions

    def find_overloads(self, op: str) -> tuple[NativeFunction, ...]:
        """Returns the functions of an operator: all of a base name, or for an overload such as `atan2.out` those that
        share its kernel.

        Raises PTR012, with suggestions, for an operator that does not exist.
        """
        if op in self.positions:
            return tuple(map(self._get, self.positions[op]))
        if op not in self.by_name:
            raise self._unknown(op)
        function = self.by_name[op]
        head = function.delegate or function.name
        return tuple(e for e in self.find_overloads(function.base) if head in (e.name, e.delegate))

    def suggest(self, op: str) -> tuple[str, ...]:
        """Returns the names closest to an unknown one: the overloads of an operator that has no such overload, the
        operator that is meant by `torch.atan2` or `ATAN2`, else overloads if it names an overload, or base names.
        """
        meant = op.replace("::", ".").rpartition(".")[2].lower()
        overloads = [name for name in self.by_name if "." in name] if "." in op else []
        own = [name for name in overloads if name.split(".")[0] == op.split(".")[0]]
        if not own and self.has(meant):
            return (meant,)
        return tuple(get_close_matches(op, own or overloads or self.positions, n=3, cutoff=0.0 if own else 0.6))

    def _unknown(self, op: str) -> PorterError:
        near = self.suggest(op)
        hint = f"Did you mean {', '.join(near)}?" if near else "Use a name from native_functions.yaml."
        return PorterError("PTR012", f"there is no operator named {op}", Place(NATIVE_FUNCTIONS), hint)

    def _get(self, at: int) -> NativeFunction:
        """One function, without making all of them: each operator that is planned edits the file."""
        if at not in self._made:
            declarations, offsets, lines = self.rows
            self._made[at] = NativeFunction(declarations[at], offsets[at], lines[at])
        return self._made[at]

    @cached_property
    def _made(self) -> dict[int, NativeFunction]:
        return {}

    def add_mps_key(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Returns the keys with MPS added where other entries of the file put it, by default after CPU and CUDA."""

        def misplaced(at: int) -> tuple[int, int]:
            before = sum(self.key_order[MPS_KEY, key] - self.key_order[key, MPS_KEY] for key in keys[:at])
            after = sum(self.key_order[key, MPS_KEY] - self.key_order[MPS_KEY, key] for key in keys[at:])
            natural = 1 + max((keys.index(key) for key in SHARING_KEYS if key in keys), default=len(keys) - 1)
            return before + after, abs(at - natural)

        at = min(range(len(keys) + 1), key=misplaced)
        return (*keys[:at], MPS_KEY, *keys[at:])


def functional_variant(functions: Iterable[NativeFunction], delegate: NativeFunction) -> NativeFunction | None:
    """Returns the functional variant whose structured delegate is this out= variant, or None."""
    return next((each for each in functions if each.delegate == delegate.name and not each.is_inplace), None)


def share_edits(functions: NativeFunctions, function: NativeFunction, target: DispatchEntry) -> tuple[Edit, ...]:
    """Returns the edits that move MPS from its own entry, if it has one, to `target`, that of the shared kernel."""
    own = function.entry_for(MPS_KEY)
    if own == target:
        return ()
    join = Edit(NATIVE_FUNCTIONS, target.keys_start, target.keys_end, ", ".join(functions.add_mps_key(target.keys)))
    if own is None:
        return (join,)
    left = tuple(key for key in own.keys if key != MPS_KEY)
    leave = (
        Edit(NATIVE_FUNCTIONS, own.keys_start, own.keys_end, ", ".join(left))
        if left
        else Edit(NATIVE_FUNCTIONS, own.start, own.end, "")
    )
    return tuple(sorted((leave, join), key=lambda edit: edit.start))


_latest: dict[str, NativeFunctions] = {}  # by the text that was parsed last: the next is mostly an edit of it


@lru_cache(maxsize=4)
def _parse(text: str) -> NativeFunctions:
    [(before, known)] = _latest.items() or [("", NativeFunctions(((), (), ()), {}, Counter()))]
    found = _parse_edited(before, known, text)
    _latest.clear()
    _latest[text] = found
    return found


def _find_positions(declarations: Sequence[Declaration]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for at, declaration in enumerate(declarations):
        found.setdefault(declaration.base, []).append(at)
    return found


def _refuse_duplicates(rows: _Rows) -> None:
    """Raises PTR500 if two rows have one name."""
    first: dict[str, int] = {}
    for declaration, _, line in zip(*rows, strict=True):
        name, at = declaration.name, declaration.line + line
        if first.setdefault(name, at) != at:
            what = f"{name} has a row in line {first[name]} already"
            raise PorterError("PTR500", what, Place(NATIVE_FUNCTIONS, at), "Remove one of the two.")


def _count_keys(declarations: Iterable[Declaration]) -> Counter[tuple[str, str]]:
    return Counter(chain.from_iterable(each.key_order for each in declarations))


def _parse_edited(before: str, known: NativeFunctions, text: str) -> NativeFunctions:
    """The functions of a text, of which those in rows that are the same in another text are known."""
    declarations, offsets, lines = known.rows
    same = common_start(before, text)
    behind = len(before) - common_end(before, text, same)
    first, last = _find_row(offsets, same - len(_START)), bisect_right(offsets, behind)
    if first <= 0 or last == len(offsets):
        rows = _read_rows(text)
        _refuse_duplicates(rows)
        return NativeFunctions(rows, _find_positions(rows[0]), _count_keys(rows[0]))
    start, end = offsets[first], offsets[last]
    moved = len(text) - len(before)
    middle = text[start : end + moved]
    more = middle.count("\n") - before.count("\n", start, end)
    made, at, on = _read_rows(middle, start, lines[first])
    gone = declarations[first:last]
    every = (*declarations[:first], *made, *declarations[last:])
    rows = (
        every,
        (*offsets[:first], *at, *[each + moved for each in offsets[last:]]),
        (*lines[:first], *on, *[each + more for each in lines[last:]]),
    )
    alike = [each.base for each in made] == [each.base for each in gone]
    order = known.key_order.copy()
    order.subtract(_count_keys(gone))
    order.update(_count_keys(made))
    return NativeFunctions(rows, known.positions if alike else _find_positions(every), order)


def _find_row(offsets: Sequence[int], offset: int) -> int:
    """The first function of the last row that starts at an offset or before it; -1 if there is none."""
    at = bisect_right(offsets, offset) - 1
    return bisect_left(offsets, offsets[at]) if at >= 0 else -1


def _read_rows(text: str, offset: int = 0, line: int = 0) -> _Rows:
    found = list(_parse_functions(text, offset, line))
    return tuple(each for each, _, _ in found), tuple(at for _, at, _ in found), tuple(on for _, _, on in found)


def _parse_functions(text: str, offset: int, line: int) -> Iterator[tuple[Declaration, int, int]]:
    """Yields the functions one by one, with their offsets and lines: each starts at a line that begins with `- `."""
    starts = [match.start() + 1 for match in _ROW.finditer(text)][not text.startswith(_START) :]
    for start, end in pairwise((0, *starts, len(text))):
        part = text[start:end]
        try:
            for declaration in parse_declarations(part):
                yield declaration, offset + start, line
        except PorterError as error:
            assert error.place is not None
            place = Place(NATIVE_FUNCTIONS, error.place.line + line)
            raise PorterError(error.code, error.what, place, error.hint) from error
        line += part.count("\n")
