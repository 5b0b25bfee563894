"""The one table of operations, `operations/*.yaml`: what MPSGraph, C++ and MSL call each, and written-out meanings.

The columns are described at the head of `operations/arithmetic.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from porter.core.dtypes import FLOAT, FLOAT2, Kind

_FOLDER = Path(__file__).with_name("operations")
_HELPERS = "helpers"
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class CppFunction:
    """What an operation's C++ functions are in MSL: forms for floating, integral (bool too) and complex arguments.

    An empty form: there is none. `exact`: the result is never rounded. `result` is `float` (rounded to the element type
    when stored), `same`, `bool` or `real`; `complex_result` that of complex arguments, where it is another. `quiet`
    names the operation that is the same where the last argument is a number as written, which is no NaN.
    """

    names: tuple[str, ...] = ()
    floating: str = ""
    integral: str = ""
    complex: str = ""
    exact: bool = False
    result: str = "float"
    complex_result: str = ""
    quiet: str = ""


@dataclass(frozen=True)
class WrittenForm:
    """A meaning written out in MSL, in the file `path`: statements over `arguments` of a type, the value last."""

    path: str
    text: str
    type: str
    arguments: tuple[str, ...]

    @property
    def helpers(self) -> tuple[str, ...]:
        """The helper functions that it needs, callees first."""
        return _find_called_helpers(self.text)


@dataclass(frozen=True)
class Operation:
    """One operation. `result` is the index of the argument whose element type the result has, None for bool.

    `takes_part`: of a complex argument the result has the type of its parts. `is_real`: the MSL form is a function of
    real numbers, to which an integer would be rounded. `sends` are the operations that a category of PyTorch's own
    sends instead, for floating types and for others. `written` holds the meanings that are written out.
    """

    op: str
    selector: str = ""
    result: int | None = 0
    takes_part: bool = False
    msl: str = ""
    complex_msl: str = ""
    is_real: bool = False
    header: str = ""
    sends: tuple[str, ...] = ()
    cpp: CppFunction = CppFunction()
    written: Mapping[Kind, WrittenForm] = field(default_factory=dict, hash=False)


@lru_cache(maxsize=1)
def operations() -> dict[str, Operation]:
    """Every row, by its name."""
    rows: dict[str, tuple[str, dict[str, Any]]] = {}
    for path in sorted(_FOLDER.glob("*.yaml")):
        if path.stem != _HELPERS:
            rows |= {op: (path.name, row) for op, row in _load(path.stem).items()}
    forms = {op: str(row.get("metal", "")) for op, (_, row) in rows.items()}
    return {op: _read_operation(op, row, forms, file) for op, (file, row) in rows.items()}


@lru_cache(maxsize=1)
def by_op() -> dict[str, Operation]:
    """The rows that MPSGraph has, by operation."""
    return {op: row for op, row in operations().items() if row.selector}


@lru_cache(maxsize=1)
def by_selector() -> dict[str, Operation]:
    """The rows that MPSGraph has, by selector, without the trailing `name:`."""
    return {row.selector: row for row in by_op().values()}


@lru_cache(maxsize=1)
def by_cpp_name() -> dict[str, Operation]:
    """The rows that C++ has, by each name of the function."""
    return {name: row for row in operations().values() for name in row.cpp.names}


def find_written_form(name: str, kind: Kind) -> WrittenForm | None:
    """The meaning written out for a kind of element, of an operation or of a C++ function; None where there is none."""
    row = operations().get(name) or by_cpp_name().get(name)
    return row.written.get(kind) if row else None


@lru_cache(maxsize=1)
def helpers() -> dict[str, str]:
    """The functions that written-out meanings call, callees first; the texts have no last line feed."""
    return {name: str(text).rstrip("\n") for name, text in _load(_HELPERS).items()}


def find_headers(text: str) -> tuple[str, ...]:
    """The headers that a kernel file needs for a text besides those it includes anyway."""
    needed = (row.header for row in operations().values() if row.header and row.msl.partition("(")[0] in text)
    return tuple(dict.fromkeys(needed))


def _load(section: str) -> dict[str, Any]:
    return dict(yaml.load((_FOLDER / f"{section}.yaml").read_text(), Loader=_Loader))


def _read_operation(op: str, row: Mapping[str, Any], forms: Mapping[str, str], file: str) -> Operation:
    result = row.get("result", 0)
    path = f"porter/mpsgraph/operations/{file}"
    return Operation(
        op,
        selector=row.get("selector", ""),
        result=None if result == "bool" else 0 if result == "part" else int(result),
        takes_part=result == "part",
        msl=_find_form(row.get("metal", ""), forms),
        complex_msl=_find_form(row.get("complex", ""), forms),
        is_real=row.get("real", False),
        header=row.get("header", ""),
        sends=tuple(row.get("sends", ())),
        cpp=_read_cpp_function(row.get("cpp", {}), row.get("metal", ""), forms),
        written=dict(_read_written_forms(row, path)),
    )


def _find_form(written: str, forms: Mapping[str, str]) -> str:
    """A form as it is written, or that of the row it names."""
    return forms.get(written, written)


def _read_cpp_function(written: Any, metal: str, forms: Mapping[str, str]) -> CppFunction:
    """The column `cpp`: only names, where the form is that of the row and takes floating arguments."""
    fields: dict[str, Any] = {"floating": metal, **(written if isinstance(written, dict) else {"names": written})}
    names = fields.get("names", ())
    fields["names"] = (names,) if isinstance(names, str) else tuple(names)
    for kind in ("floating", "integral", "complex"):
        # Behind `using namespace metal`, as C++'s `std::` is left out.
        fields[kind] = re.sub(r"(?<!\w)::(?=metal::)", "", _find_form(fields.get(kind, ""), forms))
    return CppFunction(**fields)


def _read_written_forms(row: Mapping[str, Any], path: str) -> Iterator[tuple[Kind, WrittenForm]]:
    for column, kind, type_, names in (
        ("real_body", Kind.FLOATING, FLOAT.metal, ("value", "other")),
        ("complex_body", Kind.COMPLEX, FLOAT2.metal, ("z", "w")),
    ):
        if column in row:
            text = str(row[column])
            used = tuple(name for name in names if re.search(rf"\b{name}\b", text))
            yield kind, WrittenForm(path, text, type_, used)


@lru_cache(maxsize=128)
def _find_called_helpers(text: str) -> tuple[str, ...]:
    """The names of the helpers that a text calls, and those that these call: in the table's order, callees first."""
    needed: set[str] = set()
    pending = [text]
    while pending:
        words = set(re.findall(r"\b(\w+)\(", pending.pop())) & helpers().keys() - needed
        needed |= words
        pending += [helpers()[word] for word in words]
    return tuple(name for name in helpers() if name in needed)
