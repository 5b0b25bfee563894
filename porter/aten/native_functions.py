"""Reads `native_functions.yaml`: what ATen declares about an operator, with the exact span of every dispatch entry.

Each function is parsed on its own, with PyYAML's marks; a change is always an `Edit` of a span. The format is described
in ATen/native/README.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import chain, pairwise

import yaml

from porter.aten.names import parse_base_name, split_arguments
from porter.aten.plain_rows import PlainRow, read_plain_row
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
    """An argument of a schema: `Tensor(a!) out`, `Scalar alpha=1`. `default` is None if it has no default value."""

    type: str
    name: str
    default: str | None = None

    @property
    def is_tensor(self) -> bool:
        return self.type.startswith("Tensor") and "[" not in self.type

    @property
    def is_result(self) -> bool:
        """Whether it is there to be written, as `Tensor(a!) out` is and the self of an in-place function is not."""
        return self.type.endswith("!)") and self.name != "self"


@dataclass(frozen=True)
class DispatchEntry:
    """A dispatch entry such as `CPU, CUDA: atan2_out`.

    `start` to `end` is the whole line with its line ending, `keys_start` to `keys_end` its list of dispatch keys.
    """

    keys: tuple[str, ...]
    kernel: str
    start: int
    keys_start: int
    keys_end: int
    end: int
    place: Place

    def moved(self, offset: int, lines: int) -> DispatchEntry:
        """Returns the same entry, moved down by a number of characters and lines."""
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
class _Declaration:
    """What one `- func:` declares. Spans and lines count from the start of its own text.

    Cached by that text, so that after an edit of the file only the changed functions are parsed again.
    """

    schema: str
    dispatch: tuple[DispatchEntry, ...]
    structured: bool
    delegate: str | None
    loops: bool
    line: int

    @cached_property
    def name(self) -> str:
        return self.schema.split("(", 1)[0]

    @cached_property
    def base(self) -> str:
        return parse_base_name(self.name)

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        return tuple(Argument(*each) for each in split_arguments(self.schema))

    @cached_property
    def key_order(self) -> tuple[tuple[str, str], ...]:
        """Which dispatch keys stand before MPS, and behind it, on the same line."""
        return tuple(
            (key, MPS_KEY) if at < line.keys.index(MPS_KEY) else (MPS_KEY, key)
            for line in self.dispatch
            if MPS_KEY in line.keys
            for at, key in enumerate(line.keys)
            if key != MPS_KEY
        )


@dataclass(frozen=True)
class NativeFunction:
    """A native function, declared `offset` characters and `line` lines into the file."""

    declaration: _Declaration
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
    """Every native function of the file, in order."""

    all: tuple[NativeFunction, ...]

    @staticmethod
    def read(checkout: Checkout) -> NativeFunctions:
        """Reads the yaml of a checkout. Raises PTR010 (malformed yaml) or PTR011 (an item that is no function)."""
        return _parse(checkout.read(NATIVE_FUNCTIONS))

    @cached_property
    def by_name(self) -> dict[str, NativeFunction]:
        return {function.name: function for function in self.all}

    @cached_property
    def _by_base(self) -> dict[str, list[NativeFunction]]:
        found: dict[str, list[NativeFunction]] = {}
        for function in self.all:
            found.setdefault(function.base, []).append(function)
        return found

    def has(self, base: str) -> bool:
        """Whether some operator has this base name."""
        return base in self._by_base

    def find_overloads(self, op: str) -> tuple[NativeFunction, ...]:
        """Returns the functions of an operator: all of a base name, or for an overload such as `atan2.out` those that
        share its kernel.

        Raises PTR012, with suggestions, for an operator that does not exist.
        """
        if op in self._by_base:
            return tuple(self._by_base[op])
        if op not in self.by_name:
            raise self._unknown(op)
        function = self.by_name[op]
        head = function.delegate or function.name
        return tuple(e for e in self._by_base[function.base] if head in (e.name, e.delegate))

    def suggest(self, op: str) -> tuple[str, ...]:
        """Returns the names closest to an unknown one: overloads if it names an overload, else base names."""
        overloads = [name for name in self.by_name if "." in name] if "." in op else []
        return tuple(get_close_matches(op, overloads or self._by_base, n=3))

    def _unknown(self, op: str) -> PorterError:
        near = self.suggest(op)
        hint = f"Did you mean {', '.join(near)}?" if near else "Use a name from native_functions.yaml."
        return PorterError("PTR012", f"there is no operator named {op}", Place(NATIVE_FUNCTIONS), hint)

    @cached_property
    def _key_order(self) -> Counter[tuple[str, str]]:
        """How often one dispatch key precedes another on the same line of the file."""
        return Counter(chain.from_iterable(function.declaration.key_order for function in self.all))

    def add_mps_key(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Returns the keys with MPS added where other entries of the file put it, by default after CPU and CUDA."""

        def misplaced(at: int) -> tuple[int, int]:
            before = sum(self._key_order[MPS_KEY, key] - self._key_order[key, MPS_KEY] for key in keys[:at])
            after = sum(self._key_order[key, MPS_KEY] - self._key_order[MPS_KEY, key] for key in keys[at:])
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


@lru_cache(maxsize=4)
def _parse(text: str) -> NativeFunctions:
    return NativeFunctions(tuple(_parse_functions(text)))


def _parse_functions(text: str) -> Iterator[NativeFunction]:
    """Yields the functions one by one: each starts at a line that begins with `- `."""
    starts = [match.start() for match in _ROW.finditer(text)][1:]
    line = 0
    for start, end in pairwise((0, *starts, len(text))):
        part = text[start:end]
        try:
            for declaration in _parse_declarations(part):
                yield NativeFunction(declaration, start, line)
        except PorterError as error:
            assert error.place is not None
            place = Place(NATIVE_FUNCTIONS, error.place.line + line)
            raise PorterError(error.code, error.what, place, error.hint) from error
        line += part.count("\n")


@lru_cache(maxsize=16384)
def _parse_declarations(text: str) -> tuple[_Declaration, ...]:
    plain = read_plain_row(text)
    return (_declare(plain),) if plain and _SCHEMA.match(plain.fields["func"]) else parse_yaml(text)


def _declare(row: PlainRow) -> _Declaration:
    dispatch = (
        DispatchEntry(e.keys, e.kernel, e.start, e.keys_start, e.keys_end, e.end, Place(NATIVE_FUNCTIONS, e.line))
        for e in row.dispatch
    )
    structured = row.fields.get("structured", "").lower() == "true"
    return _Declaration(
        row.fields["func"],
        tuple(dispatch),
        structured,
        row.fields.get("structured_delegate") or None,
        "ufunc_inner_loop" in row.fields,
        1,
    )


def parse_yaml(text: str) -> tuple[_Declaration, ...]:
    """Parses rows as YAML. Raises PTR010 (malformed) or PTR011 (an item that is no function)."""
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
    return tuple(_parse_declaration(node, text) for node in root.value)


def _parse_declaration(node: yaml.Node, text: str) -> _Declaration:
    place = Place(NATIVE_FUNCTIONS, node.start_mark.line + 1)
    fields = _read_fields(node)
    if "func" not in fields:
        raise PorterError(
            "PTR011", "this row has no 'func:'", place, "Every row starts with '- func: name(...) -> ...'."
        )
    schema, dispatch = _read_scalar(fields["func"]), fields.get("dispatch")
    if not _SCHEMA.match(schema):
        raise PorterError("PTR011", "'func:' is not a schema", place, "Write 'func: name(arguments) -> results'.")
    return _Declaration(
        schema=schema,
        dispatch=tuple(_read_dispatch(dispatch, text)) if dispatch else (),
        structured=_read_scalar(fields.get("structured")).lower() == "true",
        delegate=_read_scalar(fields.get("structured_delegate")) or None,
        loops="ufunc_inner_loop" in fields,
        line=place.line,
    )


def _read_fields(node: yaml.Node) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        raise PorterError("PTR011", "this row is not a mapping", Place(NATIVE_FUNCTIONS, node.start_mark.line + 1))
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _read_scalar(node: yaml.Node | None) -> str:
    return node.value if isinstance(node, yaml.ScalarNode) else ""


def _read_dispatch(node: yaml.Node, text: str) -> Iterator[DispatchEntry]:
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
