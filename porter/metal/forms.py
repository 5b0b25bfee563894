"""Meanings that the table of operations writes out in MSL, as bodies of functors: accurate and with the CPU's limits.

Of a complex number they are from its parts; of reals they stand where the obvious form loses digits.
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
    """The body of a functor over `arguments` that computes a function; None where the table does not write it out.

    `result` is the functor's result type, `T` for the element's own.
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
    """The value as an element of the functor's own type."""
    if kind is Kind.FLOATING:
        return f"static_cast<T>({value})"
    parts = value.removeprefix(f"{FLOAT2.metal}(")
    return f"T({parts}" if parts != value and is_balanced(parts[:-1]) else f"T({value})"


def _statements(text: str) -> list[str]:
    """The statements of a row, the value last, each on one line: the formatter breaks them again."""
    parts = [" ".join(part.split()) for part in text.strip().split(";\n")]
    return [*(f"{part};" for part in parts[:-1]), parts[-1].rstrip(";")]
