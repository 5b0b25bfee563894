"""The typed expression graph of an operator, the same whether read from source or recorded."""

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

    It is `wrapped` if host code first puts it in a tensor of the number's own type, and then promotes.
    """

    name: str
    dtype: DType
    wrapped: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Constant:
    """A literal number, with its element type in the graph."""

    value: float | int | bool
    dtype: DType


@dataclass(frozen=True)
class Literal:
    """A non-tensor argument of an operation: an axis, a shape, a flag, the properties of a descriptor.

    `dtype` is that of the operation.
    """

    value: Value
    dtype: DType


@dataclass(frozen=True)
class UnknownValue:
    """A number that differs between runs in an unknown way; `values` are those recorded."""

    values: tuple[Value, ...]
    dtype: DType


@dataclass(frozen=True)
class Call:
    """An MPSGraph operation: `op` is its name in the table of operations, `dtype` the type of its result.

    In a recorded graph, the `op` of an operation that is not in the table is its selector, followed by `[1]` for the
    second result. `results` joins the results of an operator with several.
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
    """Returns the direct operands of an expression."""
    return expr.args if isinstance(expr, Call) else (expr.arg,) if isinstance(expr, Cast) else ()


def nodes(expr: Expr) -> Iterator[Expr]:
    """Yields an expression and all its operands, from left to right, shared ones once per use."""
    yield expr
    for part in parts(expr):
        yield from nodes(part)


@dataclass(frozen=True)
class Case:
    """What is computed for one input dtype, if all of `when` hold."""

    dtype: DType
    when: tuple[Condition, ...]
    expr: Expr


@dataclass(frozen=True)
class Refusal:
    """An element type that the implementation rejects, with the message of its check."""

    dtype: DType
    text: str
    place: Place


@dataclass(frozen=True)
class Graph:
    """The cases of an operator, in the order of `porter.core.dtypes.ALL`, and the element types it rejects."""

    inputs: tuple[str, ...]
    scalars: tuple[str, ...]
    cases: tuple[Case, ...]
    refusals: tuple[Refusal, ...] = ()

    def of(self, dtype: DType) -> tuple[Case, ...]:
        """Returns the cases of an element type."""
        return tuple(case for case in self.cases if case.dtype == dtype)
