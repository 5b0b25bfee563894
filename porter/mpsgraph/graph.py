"""The typed expression graph of one operator: one form, whoever read it (source evaluator or recorder)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from porter.aten.condition import Condition
from porter.core.dtypes import DType
from porter.core.errors import Place

Value = bool | int | float | str | None | tuple["Value", ...]


@dataclass(frozen=True)
class Input:
    """A tensor argument, by its name in the schema (`self`, `other`)."""

    name: str
    dtype: DType


@dataclass(frozen=True)
class Scalar:
    """A scalar argument of the operator, by its name in the schema (`alpha`, `eps`).

    It is `wrapped` where host code makes a tensor of it first, of the number's own type, and then promotes.
    """

    name: str
    dtype: DType
    wrapped: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Constant:
    """A literal, in the element type the graph gives it."""

    value: float | int | bool
    dtype: DType


@dataclass(frozen=True)
class Literal:
    """An argument of an operation that is no tensor: an axis, a shape, a flag, a descriptor's properties. `dtype` is
    that of the operation.
    """

    value: Value
    dtype: DType


@dataclass(frozen=True)
class UnknownValue:
    """A number that differs from run to run, and nothing tells how; `values` are those seen."""

    values: tuple[Value, ...]
    dtype: DType


@dataclass(frozen=True)
class Call:
    """An MPSGraph operation: `op` is a row of `operations.py`, `dtype` that of its result.

    A recorded graph has others too: `op` is then the selector, with `[1]` behind it for the second result, and
    `results` joins the results of an operator that has several.
    """

    op: str
    args: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True)
class Cast:
    """`castTensor:toType:`."""

    arg: Expr
    dtype: DType


Expr = Input | Scalar | Constant | Literal | UnknownValue | Call | Cast
RESULTS = "results"


def parts(expr: Expr) -> tuple[Expr, ...]:
    """What an expression is directly made of."""
    return expr.args if isinstance(expr, Call) else (expr.arg,) if isinstance(expr, Cast) else ()


def nodes(expr: Expr) -> Iterator[Expr]:
    """An expression and all that it is made of, from left to right, once for each place."""
    yield expr
    for part in parts(expr):
        yield from nodes(part)


@dataclass(frozen=True)
class Case:
    """What is computed for one dtype of the inputs, when all of `when` hold."""

    dtype: DType
    when: tuple[Condition, ...]
    expr: Expr


@dataclass(frozen=True)
class Refusal:
    """An element type that the implementation refuses, with the message of its check."""

    dtype: DType
    text: str
    place: Place


@dataclass(frozen=True)
class Graph:
    """Every case of an operator, in the order of `porter.core.dtypes.ALL`, and the element types it refuses."""

    inputs: tuple[str, ...]
    scalars: tuple[str, ...]
    cases: tuple[Case, ...]
    refusals: tuple[Refusal, ...] = ()

    def of(self, dtype: DType) -> tuple[Case, ...]:
        """The cases of one element type."""
        return tuple(case for case in self.cases if case.dtype == dtype)
