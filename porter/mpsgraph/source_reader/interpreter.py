"""The interface of the evaluator that its parts use."""

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
        """Returns the value of an expression."""

    def truth(self, value: Any, start: int) -> bool:
        """Returns a condition as a bool. One on an argument forks the evaluation."""

    def assign(self, target: Any, value: Any, scope: Scope) -> Any:
        """Assigns a value to a name, a record's field or a dictionary's key."""

    def call_closure(self, closure: Closure, values: Sequence[Any]) -> Any:
        """Calls a lambda or block."""

    def place(self, start: int) -> Place:
        """Returns the line of an offset into the text being interpreted."""
