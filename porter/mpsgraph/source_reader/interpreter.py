"""What the parts of the evaluator ask of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from porter.core.dtypes import DType
from porter.core.errors import Place
from porter.mpsgraph.graph import Expr
from porter.mpsgraph.source_reader.values import Closure, Paths, Scope


class Interpreter(Protocol):
    """One run of an implementation: one element type, one path through the conditions on arguments."""

    paths: Paths
    results: list[tuple[str, Expr]]
    anonymous: int
    out: DType

    def value(self, expr: Any, scope: Scope) -> Any:
        """The value of an expression."""

    def truth(self, value: Any, start: int) -> bool:
        """A condition as a bool; one on an argument forks."""

    def assign(self, target: Any, value: Any, scope: Scope) -> Any:
        """Stores a value under a name, in a record's field or under a key."""

    def call_closure(self, closure: Closure, values: Sequence[Any]) -> Any:
        """Calls a lambda or block."""

    def place(self, start: int) -> Place:
        """The line of an offset into the text that is being interpreted."""
