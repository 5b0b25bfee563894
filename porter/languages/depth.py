"""How deeply code may be nested: every reader of a tree calls itself, and Python's stack has an end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from porter.core.errors import Place, PorterError
from porter.languages.cpp import TooDeep

# Of nested statements and expressions while parsing, and of nodes below each other in a tree.
DEEPEST = 80
DEEPEST_TREE = 150
_LEAVES = frozenset({str, int, bool, type(None)})  # what has no parts: a subclass of these takes only more time


def too_deep(place: Place) -> PorterError:
    """PTR034."""
    return PorterError("PTR034", "this is nested too deeply to read", place, "Split it into smaller statements.")


@contextmanager
def bounded(place: Place) -> Iterator[None]:
    """Gives what a reader of many nested functions can run into, the end of the stack, its code (PTR034)."""
    try:
        yield
    except RecursionError as error:
        raise too_deep(place) from error


def check_depth(tree: Any, start: int) -> None:
    """Raises TooDeep for a tree that is too deep to walk: a chain of operators is read in a loop, but nests too."""
    pending: list[tuple[Any, int]] = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        if depth > DEEPEST_TREE:
            raise TooDeep(getattr(node, "start", start))
        if isinstance(node, tuple):
            pending += [(each, depth) for each in node if type(each) not in _LEAVES]
        elif hasattr(node, "__dict__"):
            pending += [(each, depth + 1) for each in vars(node).values() if type(each) not in _LEAVES]
