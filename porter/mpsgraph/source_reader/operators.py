"""The evaluator's operators: arithmetic on known values and tests on arguments. Everything else is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.core import dtypes
from porter.core.dtypes import DType
from porter.languages import cpp
from porter.mpsgraph.graph import Call
from porter.mpsgraph.source_reader import leaves
from porter.mpsgraph.source_reader.interpreter import Interpreter
from porter.mpsgraph.source_reader.values import Argument, Scope, Test, Unknown, format_value

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
