"""Functions written out in MSL, accurate and with the CPU's limits: of a complex number from its parts (complex.yaml),
and of reals where the obvious form loses digits (real.yaml).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from porter.core.formatting import one_call
from porter.metal.functor import Body

COMPLEX, REAL = "complex.yaml", "real.yaml"
# What the arguments are called in the rows of a table.
_NAMES = {COMPLEX: ("z", "w"), REAL: ("value", "other")}
_TYPES = {COMPLEX: "float2", REAL: "float"}
_WORDS = {COMPLEX: "the complex form of the function", REAL: "the form of the function that keeps its digits"}


@lru_cache(maxsize=2)
def _table(name: str) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return dict(yaml.load(Path(__file__).with_name(name).read_text(), Loader=loader))


@dataclass(frozen=True)
class _Row:
    """One function: its statements, the value last, and the helpers that they call."""

    body: str
    arity: int
    uses: tuple[str, ...]

    @staticmethod
    def of(value: Any) -> _Row:
        """A row that is only text takes one argument and no helper."""
        if isinstance(value, str):
            return _Row(value, 1, ())
        return _Row(value["body"], value.get("arity", 1), tuple(value.get("uses", ())))


def rows(table: str) -> tuple[tuple[str, int], ...]:
    """The functions of a table and how many arguments each takes."""
    return tuple((name, _Row.of(value).arity) for name, value in _table(table)["functions"].items())


def form_body(table: str, function: str, arguments: Sequence[str], result: str) -> Body | None:
    """The body of a functor over `arguments` that computes a function of the table; None where it has no such row.

    `result` is the functor's result type, `T` for the element's own.
    """
    found = _table(table)["functions"].get(function)
    row = _Row.of(found) if found else None
    if row is None or row.arity != len(arguments):
        return None
    *before, value = _statements(row.body)
    type_ = _TYPES[table]
    names = zip(_NAMES[table], arguments, strict=False)
    given = {name: f"{type_}({argument})" for name, argument in names}
    if not before:
        value = re.sub(r"\b\w+\b", lambda word: given.get(word[0], word[0]), value)
    lines = [*(f"const {type_} {name} = {argument};" for name, argument in given.items() if before), *before]
    last = f"return {_cast(table, value) if result == 'T' else value};"
    origin = f"{_WORDS[table]} (porter/metal/{table})"
    return Body((*lines, last), result, origin, tuple(_helpers(row.uses)))


def _cast(table: str, value: str) -> str:
    """The value as an element of the functor's own type."""
    if table == REAL:
        return f"static_cast<T>({value})"
    parts = value.removeprefix("float2(")
    return f"T({parts}" if parts != value and one_call(parts[:-1]) else f"T({value})"


def _statements(text: str) -> list[str]:
    """The statements of a row, the value last, each on one line: the formatter breaks them again."""
    parts = [" ".join(part.split()) for part in text.strip().split(";\n")]
    return [*(f"{part};" for part in parts[:-1]), parts[-1].rstrip(";")]


def helper(name: str) -> str | None:
    """The text of a helper function, without the last line feed; None where no table has it."""
    found = (_table(table).get("helpers", {}).get(name) for table in (COMPLEX, REAL))
    return next((str(text).rstrip("\n") for text in found if text), None)


def _helpers(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        text = helper(name)
        assert text is not None, f"no table has the helper {name}"
        yield text
