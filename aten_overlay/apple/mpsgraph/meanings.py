"""What every MPSGraph operation means, in torch: of `meta` tensors its result's shape and type, of others its value.

A family of operations has a module; each meaning is registered under the operation's selector, without `name:`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from porter.errors import PorterError

Meaning = Callable[..., Any]
_TABLE: dict[str, Meaning] = {}


def means(*selectors: str) -> Callable[[Meaning], Meaning]:
    """Registers a function as the meaning of these selectors."""

    def register(function: Meaning) -> Meaning:
        for selector in selectors:
            assert selector not in _TABLE, selector
            _TABLE[selector] = function
        return function

    return register


def find(selector: str) -> Meaning:
    """The meaning of an operation. Raises PTR131 for one that has none."""
    _load()
    if selector not in _TABLE:
        near = difflib.get_close_matches(selector, _TABLE, n=1)
        hint = f"The nearest that is known is {near[0]}." if near else "Report it with the operator."
        raise PorterError("PTR131", f"MPSGraph's `{selector}` is not known here", hint=hint)
    return _TABLE[selector]


def known() -> tuple[str, ...]:
    """Every selector that has a meaning, sorted."""
    _load()
    return tuple(sorted(_TABLE))


def _load() -> None:
    from aten_overlay.apple.mpsgraph import arithmetic, indexing, networks, reductions, shapes

    assert all((arithmetic, indexing, networks, reductions, shapes))
