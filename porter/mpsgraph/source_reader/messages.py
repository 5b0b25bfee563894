"""Evaluates messages to MPSGraph and to Foundation objects."""

from __future__ import annotations

from typing import Any

from porter.core import dtypes
from porter.core.dtypes import DType
from porter.languages.objcpp_parser import Send
from porter.mpsgraph.graph import Call, Expr
from porter.mpsgraph.operations import Operation, by_selector
from porter.mpsgraph.source_reader import leaves
from porter.mpsgraph.source_reader.interpreter import Interpreter
from porter.mpsgraph.source_reader.values import (
    EXPRESSIONS,
    GraphHandle,
    Record,
    Scope,
    format_value,
    make_unsupported_error,
)


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
