"""Functor bodies from the MSL definitions in the table of operations, which match the CPU's accuracy and limits.

Complex functions are defined in terms of their parts, and real ones where the obvious form loses digits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from porter.core.dtypes import FLOAT2, Kind
from porter.languages.brackets import is_balanced
from porter.metal.functor import Body
from porter.mpsgraph.operations import find_written_form, helpers

_WORDS = {
    Kind.COMPLEX: "the complex form of the function",
    Kind.FLOATING: "the form of the function that keeps its digits",
}


def form_body(kind: Kind, function: str, arguments: Sequence[str], result: str) -> Body | None:
    """Returns a functor body that computes a function of `arguments`, or None if the table has no definition.

    `result` is the functor's result type; `T` is the element type.
    """
    written = find_written_form(function, kind)
    if written is None or len(written.arguments) != len(arguments):
        return None
    *before, value = _statements(written.text)
    type_ = written.type
    given = {n: f"{type_}({argument})" for n, argument in zip(written.arguments, arguments, strict=True)}
    if not before:
        value = re.sub(r"\b\w+\b", lambda word: given.get(word[0], word[0]), value)
    lines = [*(f"const {type_} {name} = {argument};" for name, argument in given.items() if before), *before]
    last = f"return {_cast(kind, value) if result == 'T' else value};"
    texts = tuple(helpers()[name] for name in written.helpers)
    return Body((*lines, last), result, f"{_WORDS[kind]} ({written.path})", texts)


def _cast(kind: Kind, value: str) -> str:
    """Returns the value cast to the functor's element type."""
    if kind is Kind.FLOATING:
        return f"static_cast<T>({value})"
    parts = value.removeprefix(f"{FLOAT2.metal}(")
    return f"T({parts}" if parts != value and is_balanced(parts[:-1]) else f"T({value})"


def _statements(text: str) -> list[str]:
    """Returns the statements of a definition, the value last, one per line; the formatter breaks long ones."""
    parts = [" ".join(part.split()) for part in text.strip().split(";\n")]
    return [*(f"{part};" for part in parts[:-1]), parts[-1].rstrip(";")]
