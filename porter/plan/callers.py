"""Calls of implementations that a port removes, in code that stays: they call the operator instead.

A `_native.h` header declares what native_functions.yaml names, so that such a call would not compile after the port.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from porter.aten.declarations import MPS_KEY
from porter.aten.implementations import list_host_sources
from porter.aten.native_functions import NativeFunction, NativeFunctions
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.languages.identifiers import contains_identifier
from porter.languages.source import Source, parse_source
from porter.metal.insertion import insert_includes


@dataclass(frozen=True)
class Gone:
    """A function that was removed, and the operator that it computed for MPS."""

    symbol: str
    function: NativeFunction


def redirect_calls(checkout: Checkout, gone: Iterable[Gone]) -> Iterator[Edit]:
    """The edits of what still calls removed functions. Raises PTR362 for a call that is not one of the operator."""
    removed = {each.symbol: each.function for each in gone}
    for path in list_host_sources(checkout) if removed else ():
        text = checkout.read(path)
        if not any(contains_identifier(text, symbol) for symbol in removed):
            continue
        source = parse_source(path, text)
        called = dict[str, None]()
        for start, end, function, arguments in _find_calls(source, removed):
            if len(arguments) != len(function.arguments):
                what = f"a call of {function.base}'s MPS code, which the port removes, is not one of the operator"
                raise PorterError("PTR362", what, source.place(start), "Call the operator there, or port it by hand.")
            yield Edit(path, start, end, _call_operator(function, arguments))
            called[function.base] = None
        yield from _include_operators(checkout, source, called)


def _include_operators(checkout: Checkout, source: Source, called: Iterable[str]) -> Iterator[Edit]:
    """Includes the operators' headers, in place of those of their implementations where nothing else needs these."""
    included = {each.path: each for each in source.includes()}
    missing = []
    for base in called:
        rows = NativeFunctions.read(checkout).find_overloads(base)
        kernels = [entry.kernel.rpartition("::")[2] for row in rows if (entry := row.entry_for(MPS_KEY))]
        own = included.get(f"ATen/ops/{base}_native.h")
        header = f"ATen/ops/{base}.h"
        if header in included:
            continue
        if own and not any(contains_identifier(source.text, each) for each in kernels):
            yield Edit(source.path, own.start, own.end, f"#include <{header}>")
        else:
            missing.append(header)
    yield from insert_includes(source.path, source.text, tuple(sorted(missing)))


def _find_calls(
    source: Source, removed: dict[str, NativeFunction]
) -> Iterator[tuple[int, int, NativeFunction, tuple[str, ...]]]:
    """Start, end, operator and arguments of each call within a function's body."""
    bodies = [(each.body_start, each.body_end) for each in source.functions()]
    for at, token in enumerate(source.code[:-1]):
        if token.text not in removed or source.code[at + 1].text != "(":
            continue
        if not any(start <= token.start < end for start, end in bodies):
            continue
        first = at
        while first and source.code[first - 1].text == "::":
            scoped = first > 1 and source.code[first - 2].end == source.code[first - 1].start
            first -= 2 if scoped else 1
        end = source.code[source.partners[at + 1]].end
        yield source.code[first].start, end, removed[token.text], source.arguments(at + 1)


def _call_operator(function: NativeFunction, arguments: tuple[str, ...]) -> str:
    """The call of at:: with the arguments of the implementation: results are first where they are given."""
    name = function.name.partition(".")[0]
    given = list(zip(function.arguments, arguments, strict=True))
    results = [text for each, text in given if each.is_result]
    if name.endswith("_"):
        [own, *rest] = arguments
        return f"{own}.{name}({', '.join(rest)})"
    others = [text for each, text in given if not each.is_result]
    suffix = "_out" if results else ""
    return f"at::{name}{suffix}({', '.join((*results, *others))})"
