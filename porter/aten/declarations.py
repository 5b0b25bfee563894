"""What the rows of `native_functions.yaml` declare, with the exact span of every dispatch entry.

Each row is parsed on its own, with PyYAML's marks; a change is always an `Edit` of a span. The format is described in
ATen/native/README.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import yaml
from yaml.reader import Reader

from porter.core.errors import Place, PorterError
from porter.core.layout import NATIVE_FUNCTIONS
from porter.core.yaml_text import choose_loader

# A value that YAML takes as it stands: no comment, no mapping, nothing that starts another kind of scalar.
_PLAIN = r"[A-Za-z_][^:#]*(?:(?::(?! |$)|(?<! )#)[^:#]*)*"
_LIST = r"\[\w+(?:, *\w+)*\]"
_COMMENT = r" *(?:(?<= )#.*)?$"
_FUNC = re.compile(rf"- func: ({_PLAIN}){_COMMENT}")
_LINE = re.compile(
    rf"  (?P<field>[a-z_]+):(?: +(?P<value>{_PLAIN}|{_LIST}))?{_COMMENT}"
    rf"|    (?P<keys>\w+(?:, ?\w+)*): +(?P<kernel>[A-Za-z_][\w:<>]*(?<!:)){_COMMENT}"
    r"|(?: *#.*)?$"
)


class PlainEntry(NamedTuple):
    """A line of `dispatch:`, with the offsets of its line and of its keys, and its line from 1."""

    keys: tuple[str, ...]
    kernel: str
    start: int
    keys_start: int
    keys_end: int
    end: int
    line: int


class PlainRow(NamedTuple):
    """The fields of a row, and the entries of its `dispatch:` and of `ufunc_inner_loop:`."""

    fields: dict[str, str]
    dispatch: tuple[PlainEntry, ...]


def read_plain_row(text: str) -> PlainRow | None:
    """Returns a row, or None if it is not plain."""
    if not text.isascii() or "\t" in text or "\r" in text:
        return None
    fields: dict[str, str] = {}
    entries: list[PlainEntry] = []
    section, offset = "", 0
    for number, line in enumerate(text.split("\n")):
        start, offset = offset, offset + len(line) + 1
        if number == 0:
            head = _FUNC.match(line)
            if head is None:
                return None
            fields["func"] = head[1].rstrip(" ")
            continue
        if not line:
            continue
        found = _LINE.match(line)
        if found is None:
            return None
        field, value, keys, kernel = found.groups()
        if field:
            if field in fields:
                return None
            fields[field], section = (value or "").rstrip(" "), "" if value else field
        elif keys:
            if section != "dispatch":
                return None
            names, end = tuple(part.strip() for part in keys.split(",")), min(offset, len(text))
            entries.append(PlainEntry(names, kernel, start, start + 4, start + found.end("keys"), end, number + 1))
    return PlainRow(fields, tuple(entries)) if _is_plain(fields, entries) else None


def _is_plain(fields: dict[str, str], entries: list[PlainEntry]) -> bool:
    """Whether each field has the value that it needs: `dispatch` entries, any other one a scalar."""
    valued = all(fields.values()) or all(value for name, value in fields.items() if name != "dispatch")
    return valued and ("dispatch" in fields) == bool(entries) and len({each.keys for each in entries}) == len(entries)


MPS_KEY = "MPS"
# The arguments of a function that makes a tensor which its out= variant is given instead.
TENSOR_OPTIONS = frozenset({"dtype", "layout", "device", "pin_memory", "memory_format"})
_SCHEMA = re.compile(r"\w[\w.]*\([^\n]*\) -> ")


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
class Declaration:
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


@lru_cache(maxsize=16384)
def parse_declarations(text: str) -> tuple[Declaration, ...]:
    """What the rows of a text declare. Raises as `parse_yaml` does."""
    plain = read_plain_row(text)
    return (_declare(plain),) if plain and _SCHEMA.match(plain.fields["func"]) else parse_yaml(text)


def _declare(row: PlainRow) -> Declaration:
    dispatch = (
        DispatchEntry(e.keys, e.kernel, e.start, e.keys_start, e.keys_end, e.end, Place(NATIVE_FUNCTIONS, e.line))
        for e in row.dispatch
    )
    structured = row.fields.get("structured", "").lower() == "true"
    return Declaration(
        row.fields["func"],
        tuple(dispatch),
        structured,
        row.fields.get("structured_delegate") or None,
        "ufunc_inner_loop" in row.fields,
        1,
    )


def parse_yaml(text: str) -> tuple[Declaration, ...]:
    """Parses rows as YAML. Raises PTR010 (malformed) or PTR011 (an item that is no function)."""
    try:
        root = yaml.compose(text, Loader=choose_loader(text))
    except (UnicodeEncodeError, RecursionError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else "it is not UTF-8"
        raise PorterError("PTR010", f"invalid YAML: {what}", Place(NATIVE_FUNCTIONS, 1), "Fix this line.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        place = Place(NATIVE_FUNCTIONS, mark.line + 1 if mark else _find_unprintable(text))
        raise PorterError("PTR010", f"invalid YAML: {what}", place, "Fix this line.") from error
    if not isinstance(root, yaml.SequenceNode):
        hint = "Restore it: a checkout has one row for each function."
        raise PorterError("PTR011", "the file is not a list of '- func:' rows", Place(NATIVE_FUNCTIONS, 1), hint)
    return tuple(_parse_declaration(node, text) for node in root.value)


def _find_unprintable(text: str) -> int:
    """The line of the first character that YAML does not allow: its readers count in bytes or characters, no lines."""
    found = Reader.NON_PRINTABLE.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _parse_declaration(node: yaml.Node, text: str) -> Declaration:
    place = Place(NATIVE_FUNCTIONS, node.start_mark.line + 1)
    fields = _read_fields(node)
    if "func" not in fields:
        raise PorterError(
            "PTR011", "this row has no 'func:'", place, "Every row starts with '- func: name(...) -> ...'."
        )
    schema, dispatch = _read_scalar(fields["func"]), fields.get("dispatch")
    if not _SCHEMA.match(schema):
        raise PorterError("PTR011", "'func:' is not a schema", place, "Write 'func: name(arguments) -> results'.")
    return Declaration(
        schema=schema,
        dispatch=tuple(_read_dispatch(dispatch, text)) if dispatch else (),
        structured=_read_scalar(fields.get("structured")).lower() == "true",
        delegate=_read_scalar(fields.get("structured_delegate")) or None,
        loops="ufunc_inner_loop" in fields,
        line=place.line,
    )


def _read_fields(node: yaml.Node) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        place = Place(NATIVE_FUNCTIONS, node.start_mark.line + 1)
        raise PorterError("PTR011", "this row is not a mapping", place, "Start it with '- func: name(...) -> ...'.")
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _read_scalar(node: yaml.Node | None) -> str:
    return node.value if isinstance(node, yaml.ScalarNode) else ""


def _read_dispatch(node: yaml.Node, text: str) -> Iterator[DispatchEntry]:
    if not isinstance(node, yaml.MappingNode):
        raise PorterError(
            "PTR011",
            "'dispatch:' must map dispatch keys to kernels",
            Place(NATIVE_FUNCTIONS, node.start_mark.line + 1),
            "Write each as 'CPU: name' on a line of its own.",
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

# torchgen.model.AUGMENTED_ASSIGNMENT_NAMES
_AUGMENTED = re.compile(r"__i(add|sub|mul|div|mod|pow|lshift|rshift|and|xor|or)__")


def parse_base_name(name: str) -> str:
    """Returns the operator's base name: `atan2` for `atan2_` and `atan2.out`, `__and__` for `__iand__.Tensor`."""
    root = name.split(".", 1)[0]
    augmented = root.startswith("__i") and _AUGMENTED.fullmatch(root)
    if augmented:
        return f"__{augmented[1]}__"
    return root[:-1] if root.endswith("_") and not root.endswith("__") else root


def split_arguments(schema: str) -> Iterator[tuple[str, str, str | None]]:
    """Yields the type, name and default of each argument of a schema, leaving out the `*` before keyword-only ones."""
    inside = schema[schema.index("(") + 1 : schema.rindex(" -> ")].rstrip()[:-1]
    depth, start = 0, 0
    for at, character in enumerate(inside + ","):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            match = _DEFAULT.match(inside[start:at].strip())
            if match:
                yield match["type"], match["name"], match["default"]
            start = at + 1
