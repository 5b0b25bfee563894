"""The table of operations, `operations/*.yaml`: their names in MPSGraph, C++ and MSL, and definitions in MSL.

The columns are described at the top of `operations/arithmetic.yaml`.
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
from porter.languages.identifiers import contains_identifier, find_called

_FOLDER = Path(__file__).with_name("operations")
_HELPERS = "helpers"
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class CppFunction:
    """The MSL forms of an operation's C++ functions, for floating, integral (including bool) and complex arguments.

    A form is empty if there is none. `exact` results are never rounded. `result` is `float` (rounded to the element
    type when stored), `same`, `bool` or `real`; `complex_result` is that of complex arguments, if different. `quiet`
    names the operation to use if the last argument is a literal, which is never NaN, `of_product` the helper for the
    product of a number below 1 and a small argument.
    """

    names: tuple[str, ...] = ()
    floating: str = ""
    integral: str = ""
    complex: str = ""
    exact: bool = False
    result: str = "float"
    complex_result: str = ""
    quiet: str = ""
    of_product: str = ""


@dataclass(frozen=True)
class WrittenForm:
    """A definition in MSL, in the file `path`: statements over `arguments` of type `type`, ending with the value."""

    path: str
    text: str
    type: str
    arguments: tuple[str, ...]

    @property
    def helpers(self) -> tuple[str, ...]:
        """The helper functions that it calls, callees first."""
        return find_called_helpers(self.text)


@dataclass(frozen=True)
class Operation:
    """An operation. `result` is the index of the argument whose element type the result has, or None for bool.

    With `takes_part`, the result for a complex argument has the type of its parts. With `is_real`, the MSL form is a
    function of real numbers, which would round an integer. `sends` are the operations that a method of PyTorch's own
    category on MPSGraph sends, for floating and for other types. `written` has the definitions in MSL. `instead_of` is
    a spelling of the MSL form that cancels digits.
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
    instead_of: str = ""


@lru_cache(maxsize=1)
def operations() -> dict[str, Operation]:
    """Returns every row by name."""
    rows: dict[str, tuple[str, dict[str, Any]]] = {}
    for path in sorted(_FOLDER.glob("*.yaml")):
        if path.stem != _HELPERS:
            rows |= {op: (path.name, row) for op, row in _load(path.stem).items()}
    forms = {op: str(row.get("metal", "")) for op, (_, row) in rows.items()}
    return {op: _read_operation(op, row, forms, file) for op, (file, row) in rows.items()}


@lru_cache(maxsize=1)
def by_op() -> dict[str, Operation]:
    """Returns the rows of MPSGraph operations, by operation."""
    return {op: row for op, row in operations().items() if row.selector}


@lru_cache(maxsize=1)
def by_selector() -> dict[str, Operation]:
    """Returns the rows of MPSGraph operations, by selector without the trailing `name:`."""
    return {row.selector: row for row in by_op().values()}


@lru_cache(maxsize=1)
def by_cpp_name() -> dict[str, Operation]:
    """Returns the rows of C++ functions, by each of their names."""
    return {name: row for row in operations().values() for name in row.cpp.names}


def find_written_form(name: str, kind: Kind) -> WrittenForm | None:
    """Returns the MSL definition of an operation or C++ function for a kind of element, or None."""
    row = operations().get(name) or by_cpp_name().get(name)
    return row.written.get(kind) if row else None


@lru_cache(maxsize=1)
def helpers() -> dict[str, str]:
    """Returns the helper functions that definitions call, callees first, without a final line feed."""
    return {name: str(text).rstrip("\n") for name, text in _load(_HELPERS).items()}


def find_headers(text: str) -> tuple[str, ...]:
    """Returns the extra headers that a kernel file needs for a text."""
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
        instead_of=row.get("instead_of", ""),
    )


def _find_form(written: str, forms: Mapping[str, str]) -> str:
    """Returns a form as written, or the form of the row that it names."""
    return forms.get(written, written)


def _read_cpp_function(written: Any, metal: str, forms: Mapping[str, str]) -> CppFunction:
    """Reads the column `cpp`. If it only has names, the form is the row's MSL form, for floating arguments."""
    fields: dict[str, Any] = {"floating": metal, **(written if isinstance(written, dict) else {"names": written})}
    names = fields.get("names", ())
    fields["names"] = (names,) if isinstance(names, str) else tuple(names)
    for kind in ("floating", "integral", "complex"):
        # Unqualified names, as after `using namespace metal`.
        fields[kind] = re.sub(r"(?<!\w)::(?=metal::)", "", _find_form(fields.get(kind, ""), forms))
    return CppFunction(**fields)


def _read_written_forms(row: Mapping[str, Any], path: str) -> Iterator[tuple[Kind, WrittenForm]]:
    for column, kind, type_, names in (
        ("real_body", Kind.FLOATING, FLOAT.metal, ("value", "other")),
        ("complex_body", Kind.COMPLEX, FLOAT2.metal, ("z", "w", "v")),
    ):
        if column in row:
            text = str(row[column])
            used = tuple(name for name in names if contains_identifier(text, name))
            yield kind, WrittenForm(path, text, type_, used)


@lru_cache(maxsize=128)
def find_called_helpers(text: str) -> tuple[str, ...]:
    """Returns the names of the helpers that a text calls, directly or not, callees first."""
    needed: set[str] = set()
    pending = [text]
    while pending:
        words = set(find_called(pending.pop())) & helpers().keys() - needed
        needed |= words
        pending += [helpers()[word] for word in words]
    return tuple(name for name in helpers() if name in needed)
