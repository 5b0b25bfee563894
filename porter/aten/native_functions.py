"""`native_functions.yaml`: what ATen declares about an operator, with the exact span of every dispatch line.

Reading composes row by row with PyYAML's marks; writing is only ever an `Edit` of a span (ATen/native/README.md has the
format).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import pairwise

import yaml

from porter.aten.names import base_of
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import Place, PorterError
from porter.core.layout import NATIVE_FUNCTIONS

MPS_KEY = "MPS"
SHARING_KEYS = ("CPU", "CUDA")
_COMPOSITE = "Composite"
_SCHEMA = re.compile(r"\w[\w.]*\([^\n]*\) -> ")
_ROW = re.compile(r"^- ", re.M)
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Argument:
    """One argument of a schema: `Tensor(a!) out`, `Scalar alpha=1`. `default` is None where the schema has none."""

    type: str
    name: str
    default: str | None = None

    @property
    def is_tensor(self) -> bool:
        return self.type.startswith("Tensor") and "[" not in self.type


@dataclass(frozen=True)
class DispatchEntry:
    """`CPU, CUDA: atan2_out`: `start` to `end` is the whole line with its line ending, `keys_end` the end of the key
    list.
    """

    keys: tuple[str, ...]
    kernel: str
    start: int
    keys_start: int
    keys_end: int
    end: int
    place: Place

    def moved(self, offset: int, lines: int) -> DispatchEntry:
        """The same line so many characters and lines further down."""
        return DispatchEntry(
            self.keys,
            self.kernel,
            self.start + offset,
            self.keys_start + offset,
            self.keys_end + offset,
            self.end + offset,
            Place(self.place.file, self.place.line + lines),
        )


@dataclass(frozen=True)
class _Row:
    """One row by itself: spans and lines count from the start of the text it was read from.

    Rows are kept by their text, so that an edit of the file costs the reading of the rows it touches.
    """

    schema: str
    dispatch: tuple[DispatchEntry, ...]
    structured: bool
    delegate: str | None
    line: int

    @cached_property
    def name(self) -> str:
        return self.schema.split("(", 1)[0]

    @cached_property
    def base(self) -> str:
        return base_of(self.name)

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        return tuple(_arguments(self.schema))


@dataclass(frozen=True)
class NativeFunction:
    """One `- func:` row, `offset` characters and `line` lines into the file."""

    row: _Row
    offset: int
    line: int

    @property
    def schema(self) -> str:
        return self.row.schema

    @property
    def structured(self) -> bool:
        return self.row.structured

    @property
    def delegate(self) -> str | None:
        """The row whose structured kernel serves this one."""
        return self.row.delegate

    @property
    def name(self) -> str:
        """`atan2.out`: the name with its overload."""
        return self.row.name

    @property
    def base(self) -> str:
        """`atan2`, also for the in-place `atan2_`: dunder names keep theirs."""
        return self.row.base

    @property
    def is_inplace(self) -> bool:
        """Whether it is a variant such as `atan2_`."""
        return self.name.split(".")[0].endswith("_")

    @property
    def place(self) -> Place:
        return Place(NATIVE_FUNCTIONS, self.line + self.row.line)

    @cached_property
    def dispatch(self) -> tuple[DispatchEntry, ...]:
        """The dispatch lines, with their spans in the file."""
        return tuple(line.moved(self.offset, self.line) for line in self.row.dispatch)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return self.row.arguments

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The arguments without those written to."""
        return tuple(a for a in self.arguments if not (a.name == "out" or (a.type.endswith("!)") and a.name != "self")))

    @property
    def results(self) -> int:
        """How many tensors it returns."""
        return self.schema.rpartition(" -> ")[2].count("Tensor")

    def entry_for(self, key: str) -> DispatchEntry | None:
        """The dispatch line that serves a dispatch key."""
        serves = next((at for at, line in enumerate(self.row.dispatch) if key in line.keys), None)
        return None if serves is None else self.dispatch[serves]

    @property
    def is_composite(self) -> bool:
        """Whether no backend has a kernel of its own."""
        return not self.delegate and all(k.startswith(_COMPOSITE) for line in self.row.dispatch for k in line.keys)


@dataclass(frozen=True)
class NativeFunctions:
    """Every row of the file, in order."""

    entries: tuple[NativeFunction, ...]

    @staticmethod
    def read(checkout: Checkout) -> NativeFunctions:
        """Reads and checks the yaml of a checkout. Raises PTR010 (malformed yaml) or PTR011 (a row that is not one)."""
        return _read(checkout.read(NATIVE_FUNCTIONS))

    @cached_property
    def by_name(self) -> dict[str, NativeFunction]:
        return {entry.name: entry for entry in self.entries}

    @cached_property
    def _by_base(self) -> dict[str, list[NativeFunction]]:
        found: dict[str, list[NativeFunction]] = {}
        for entry in self.entries:
            found.setdefault(entry.base, []).append(entry)
        return found

    def has(self, base: str) -> bool:
        """Whether an operator has this base name."""
        return base in self._by_base

    def family(self, op: str) -> tuple[NativeFunction, ...]:
        """The rows of an operator: all of a base name, or those that share a kernel with an overload such as
        `atan2.out`.

        Raises PTR012, with near names, for an operator that does not exist.
        """
        if op in self._by_base:
            return tuple(self._by_base[op])
        if op not in self.by_name:
            raise self._unknown(op)
        entry = self.by_name[op]
        head = entry.delegate or entry.name
        return tuple(e for e in self._by_base[entry.base] if head in (e.name, e.delegate))

    def near(self, op: str) -> tuple[str, ...]:
        """The names most like one that is not there: overloads where it names one, else base names."""
        overloads = [name for name in self.by_name if "." in name] if "." in op else []
        return tuple(get_close_matches(op, overloads or self._by_base, n=3))

    def _unknown(self, op: str) -> PorterError:
        near = self.near(op)
        hint = f"Did you mean {', '.join(near)}?" if near else "Use a name from native_functions.yaml."
        return PorterError("PTR012", f"there is no operator named {op}", Place(NATIVE_FUNCTIONS), hint)

    @cached_property
    def _key_order(self) -> Counter[tuple[str, str]]:
        """How often the file writes one dispatch key somewhere before another on the same line."""
        order: Counter[tuple[str, str]] = Counter()
        for entry in self.entries:
            for line in entry.row.dispatch:
                if MPS_KEY in line.keys:
                    at = line.keys.index(MPS_KEY)
                    order.update((key, MPS_KEY) for key in line.keys[:at])
                    order.update((MPS_KEY, key) for key in line.keys[at + 1 :])
        return order

    def with_mps(self, keys: Sequence[str]) -> tuple[str, ...]:
        """The key list with MPS added where this file's other lines put it; after CPU and CUDA where they do not
        say.
        """

        def misplaced(at: int) -> tuple[int, int]:
            before = sum(self._key_order[MPS_KEY, key] - self._key_order[key, MPS_KEY] for key in keys[:at])
            after = sum(self._key_order[key, MPS_KEY] - self._key_order[MPS_KEY, key] for key in keys[at:])
            natural = 1 + max((keys.index(key) for key in SHARING_KEYS if key in keys), default=len(keys) - 1)
            return before + after, abs(at - natural)

        at = min(range(len(keys) + 1), key=misplaced)
        return (*keys[:at], MPS_KEY, *keys[at:])


def functional_variant(functions: Iterable[NativeFunction], delegate: NativeFunction) -> NativeFunction | None:
    """The function of a structured group whose delegate is its out= variant; None where it has none."""
    return next((each for each in functions if each.delegate == delegate.name and not each.is_inplace), None)


def share_edits(functions: NativeFunctions, entry: NativeFunction, target: DispatchEntry) -> tuple[Edit, ...]:
    """MPS leaves its own line, if it has one, and joins `target`, the line of the shared implementation; all else stays
    untouched.
    """
    own = entry.entry_for(MPS_KEY)
    if own == target:
        return ()
    join = Edit(NATIVE_FUNCTIONS, target.keys_start, target.keys_end, ", ".join(functions.with_mps(target.keys)))
    if own is None:
        return (join,)
    left = tuple(key for key in own.keys if key != MPS_KEY)
    leave = (
        Edit(NATIVE_FUNCTIONS, own.keys_start, own.keys_end, ", ".join(left))
        if left
        else Edit(NATIVE_FUNCTIONS, own.start, own.end, "")
    )
    return tuple(sorted((leave, join), key=lambda edit: edit.start))


@lru_cache(maxsize=4)
def _read(text: str) -> NativeFunctions:
    return NativeFunctions(tuple(_entries(text)))


def _entries(text: str) -> Iterator[NativeFunction]:
    """The rows one by one: a line that starts with `- ` starts one, as yaml has it for a list at the margin."""
    starts = [match.start() for match in _ROW.finditer(text)][1:]
    line = 0
    for start, end in pairwise((0, *starts, len(text))):
        part = text[start:end]
        try:
            for row in _rows(part):
                yield NativeFunction(row, start, line)
        except PorterError as error:
            assert error.place is not None
            place = Place(NATIVE_FUNCTIONS, error.place.line + line)
            raise PorterError(error.code, error.what, place, error.hint) from error
        line += part.count("\n")


@lru_cache(maxsize=16384)
def _rows(text: str) -> tuple[_Row, ...]:
    try:
        root = yaml.compose(text, Loader=_Loader)
    except (UnicodeEncodeError, RecursionError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else "it is not UTF-8"
        raise PorterError("PTR010", f"invalid YAML: {what}", Place(NATIVE_FUNCTIONS, 1), "Fix this line.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error)
        place = Place(NATIVE_FUNCTIONS, mark.line + 1 if mark else 0)
        raise PorterError("PTR010", f"invalid YAML: {what}", place, "Fix this line.") from error
    if not isinstance(root, yaml.SequenceNode):
        raise PorterError("PTR011", "the file is not a list of '- func:' rows", Place(NATIVE_FUNCTIONS, 1))
    return tuple(_row(node, text) for node in root.value)


def _row(node: yaml.Node, text: str) -> _Row:
    place = Place(NATIVE_FUNCTIONS, node.start_mark.line + 1)
    fields = _fields(node)
    if "func" not in fields:
        raise PorterError(
            "PTR011", "this row has no 'func:'", place, "Every row starts with '- func: name(...) -> ...'."
        )
    schema, dispatch = _scalar(fields["func"]), fields.get("dispatch")
    if not _SCHEMA.match(schema):
        raise PorterError("PTR011", "'func:' is not a schema", place, "Write 'func: name(arguments) -> results'.")
    return _Row(
        schema=schema,
        dispatch=tuple(_dispatch_lines(dispatch, text)) if dispatch else (),
        structured=_scalar(fields.get("structured")).lower() == "true",
        delegate=_scalar(fields.get("structured_delegate")) or None,
        line=place.line,
    )


def _fields(node: yaml.Node) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        raise PorterError("PTR011", "this row is not a mapping", Place(NATIVE_FUNCTIONS, node.start_mark.line + 1))
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _scalar(node: yaml.Node | None) -> str:
    return node.value if isinstance(node, yaml.ScalarNode) else ""


def _dispatch_lines(node: yaml.Node, text: str) -> Iterator[DispatchEntry]:
    if not isinstance(node, yaml.MappingNode):
        raise PorterError(
            "PTR011",
            "'dispatch:' must map dispatch keys to kernels",
            Place(NATIVE_FUNCTIONS, node.start_mark.line + 1),
        )
    for key, kernel in node.value:
        line = Place(NATIVE_FUNCTIONS, key.start_mark.line + 1)
        if not isinstance(key, yaml.ScalarNode) or not isinstance(kernel, yaml.ScalarNode) or not kernel.value:
            raise PorterError(
                "PTR011", "a dispatch line must map dispatch keys to the name of one kernel", line, "Write 'CPU: name'."
            )
        start, stop = key.start_mark.index, key.end_mark.index
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", kernel.end_mark.index) + 1 or len(text)
        yield DispatchEntry(
            keys=tuple(part.strip() for part in key.value.split(",")),
            kernel=kernel.value,
            start=line_start,
            keys_start=start,
            keys_end=stop,
            end=line_end,
            place=line,
        )


_DEFAULT = re.compile(r"^(?P<type>.+?)\s+(?P<name>\w+)(?:=(?P<default>.*))?$", re.S)


def _arguments(schema: str) -> Iterator[Argument]:
    """Splits the argument list at its top-level commas; the `*` that starts the keyword-only ones is no argument."""
    inside = schema[schema.index("(") + 1 : schema.rindex(" -> ")].rstrip()[:-1]
    depth, start = 0, 0
    for at, character in enumerate(inside + ","):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            match = _DEFAULT.match(inside[start:at].strip())
            if match:
                yield Argument(match["type"], match["name"], match["default"])
            start = at + 1
