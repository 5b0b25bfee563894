"""What the evaluator does with operators and with messages, by the interface that its parts use.

Arithmetic on known values is done, and tests on arguments are kept; everything else is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from porter.core import dtypes
from porter.core.dtypes import DType
from porter.core.errors import Place
from porter.languages import cpp
from porter.languages.objcpp_parser import Send
from porter.mpsgraph.graph import Call, Expr
from porter.mpsgraph.operations import Operation, by_selector
from porter.mpsgraph.source_reader import leaves
from porter.mpsgraph.source_reader.values import (
    EXPRESSIONS,
    Argument,
    Closure,
    GraphHandle,
    Paths,
    Record,
    Scope,
    Test,
    Unknown,
    format_value,
    make_unsupported_error,
)


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


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "&": lambda a, b: a & b,
}


def apply(run: Interpreter, expr: cpp.Unary | cpp.Binary, scope: Scope) -> Any:
    """Returns the value of an operation. `&&` and `||` short-circuit; assignments change the scope."""
    if isinstance(expr, cpp.Unary):
        return _unary(run, expr, scope)
    if expr.op == "=":
        return run.assign(expr.left, run.value(expr.right, scope), scope)
    left = run.value(expr.left, scope)
    if expr.op in ("&&", "||"):
        return _logical(run, expr, left, scope)
    right = run.value(expr.right, scope)
    if expr.op in ("==", "!=") and not isinstance(left, Unknown) and not isinstance(right, Unknown):
        return _equal(run, expr.op, left, right)
    if expr.op == "==" and isinstance(left, Unknown) and isinstance(right, Unknown) and "::" in left.text:
        return left.text == right.text
    if isinstance(left, Argument) or isinstance(right, Argument):
        return Test(f"{format_value(left)} {expr.op} {format_value(right)}")
    if isinstance(left, DType) and expr.op == "&":
        return int(left.kind in (dtypes.Kind.FLOATING, dtypes.Kind.COMPLEX))
    if isinstance(left, (int, float)) and isinstance(right, (int, float)) and expr.op in _ARITHMETIC:
        return _ARITHMETIC[expr.op](left, right)
    if isinstance(left, str) and isinstance(right, str) and expr.op == "+":
        return left + right
    return (
        left
        if isinstance(left, str) and expr.op == "+"
        else Unknown(f"{format_value(left)} {expr.op} {format_value(right)}")
    )


def _logical(run: Interpreter, expr: cpp.Binary, left: Any, scope: Scope) -> Any:
    """Evaluates `&&` and `||`, which short-circuit."""
    decides = expr.op == "||"
    if isinstance(left, Unknown):
        right = run.value(expr.right, scope)
        if not isinstance(right, (Unknown, Test, Argument)) and bool(right) is decides:
            return decides
        return left
    if run.truth(left, expr.start) is decides:
        return decides
    right = run.value(expr.right, scope)
    return right if isinstance(right, Unknown) else run.truth(right, expr.start)


def _equal(run: Interpreter, op: str, left: Any, right: Any) -> Any:
    if isinstance(left, Argument) or isinstance(right, Argument):
        argument, other = (left, right) if isinstance(left, Argument) else (right, left)
        test = Test(f"{argument.name} == {format_value(other)}")
        return test if op == "==" else not run.paths.decide(test.text)
    return (left == right) is (op == "==")


def _unary(run: Interpreter, expr: cpp.Unary, scope: Scope) -> Any:
    value = run.value(expr.value, scope)
    if expr.op == "!":
        return value if isinstance(value, Unknown) else not run.truth(value, expr.start)
    if expr.op == "-" and isinstance(value, (int, float)):
        return -value
    if expr.op == "-" and isinstance(value, Argument):
        return Call("negative", (leaves.as_expr(value, value.dtype),), value.dtype)  # type: ignore[arg-type]
    return value


def send(run: Interpreter, expr: Send, scope: Scope) -> Any:
    """Returns the value of a message. A message to the graph creates a node."""
    receiver = run.value(expr.receiver, scope)
    if expr.selector in leaves.OBJECTIVE_C:
        return receiver
    if expr.selector == "new":
        return Record()
    if not isinstance(receiver, GraphHandle):
        return leaves.member(receiver, expr.selector)
    selector = expr.selector.removesuffix("name:").removesuffix(":")
    values = [run.value(argument, scope) for argument in expr.arguments]
    if selector.startswith("constantWithScalar"):
        return _node(run, values[0], values[-1], expr.start)
    if selector == "castTensor:toType":
        return leaves.cast(_operand(run, values[0], expr.start), values[1])
    if selector == "broadcastTensor:toShape":
        return _operand(run, values[0], expr.start)
    row = by_selector().get(selector)
    if row is None:
        raise make_unsupported_error(f"the MPSGraph operation {expr.selector}", run.place(expr.start))
    count = len(selector.split(":"))
    operands = tuple(_operand(run, value, expr.start) for value in values[:count])
    return Call(row.op, operands, _result(row, operands))


def _node(run: Interpreter, value: Any, dtype: Any, start: int) -> Expr:
    node = leaves.as_expr(value, dtype) if isinstance(dtype, DType) else None
    if node is None:
        raise make_unsupported_error(f"the constant {format_value(value)}", run.place(start))
    return node


def _operand(run: Interpreter, value: Any, start: int) -> Expr:
    if isinstance(value, EXPRESSIONS):
        return value
    raise make_unsupported_error(f"the operand {format_value(value)}", run.place(start))


def _result(row: Operation, operands: tuple[Expr, ...]) -> DType:
    if row.result is None:
        return dtypes.BOOL
    dtype = operands[row.result].dtype
    return dtype.real if row.takes_part else dtype
