"""Functions that MPS keeps because their rows are split by device: their bodies call the stub that is ported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from porter.aten.call_graph import parse_source
from porter.aten.operator import Migration
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.formatting import format_block
from porter.languages.definitions import split_parameters
from porter.languages.source import Function
from porter.metal.insertion import insert_includes
from porter.plan.removal import Rewrite

_ITERATOR_HEADER = "ATen/TensorIterator.h"


def rewrite_functions(fork: Checkout, migrations: Sequence[Migration]) -> Iterator[tuple[str, Rewrite]]:
    """Yields the functions that stay, each with its file and its new body."""
    for each in migrations:
        found = each.served.implementation
        if each.body is None or found is None or found.function is None:
            continue
        function = _find_again(fork, found.file, found.function)
        body = each.body.write(tuple(_read_names(function)))
        text = format_block(fork, found.file, f"{function.signature} {body}\n")
        yield found.file, Rewrite(function, text[text.index("{", len(function.params)) :].rstrip("\n"))


def include_what_bodies_use(fork: Checkout, migrations: Sequence[Migration]) -> Iterator[Edit]:
    """Yields the includes that the new bodies need."""
    needed: dict[str, dict[str, None]] = {}
    for each in migrations:
        if each.body and each.served.implementation:
            headers = needed.setdefault(each.served.implementation.file, {})
            headers[each.body.call.stub.header] = None
            if each.body.call.builder:
                headers[_ITERATOR_HEADER] = None
    for file, wanted in needed.items():
        yield from insert_includes(parse_source(file, fork.read(file)), tuple(sorted(wanted)))


def _find_again(fork: Checkout, file: str, function: Function) -> Function:
    """The function as it stands in the draft, where edits of other steps may have moved it."""
    found = parse_source(file, fork.read(file)).functions_by_name[function.name]
    return next(each for each in found if each.signature == function.signature)


def _read_names(function: Function) -> Iterator[str]:
    """The names of a function's parameters, empty for one without."""
    for parameter in split_parameters(function.params):
        name = re.search(r"[&*>\s](\w+)$", parameter)
        yield name[1] if name else ""
