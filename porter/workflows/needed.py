"""What has to be ported before an operator whose shared code only calls others."""

from __future__ import annotations

from collections.abc import Iterator

from porter.aten.operator import Migration, Operator, find_called_operators, find_migrations
from porter.core.checkout import Checkout
from porter.core.errors import PorterError


def find_needed(checkout: Checkout, op: str) -> tuple[str, ...]:
    """The operators that build graphs and that the rows of one would call: ported first, they run no graph.

    None for an operator that a stub or a recording serves, or that cannot be read.
    """
    try:
        return tuple(_find_graphs(checkout, Operator.read(checkout, op)))
    except PorterError:
        return ()


def _find_graphs(checkout: Checkout, operator: Operator) -> Iterator[str]:
    found = find_migrations(checkout, operator)
    if found and all(isinstance(each, Migration) and not each.stubs and each.body is None for each in found):
        for base in find_called_operators(checkout, operator):
            if any(each.builds_graph for each in Operator.read(checkout, base).served):
                yield base
