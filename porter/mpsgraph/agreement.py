"""Compares two readings of an implementation: the graph read from its source, and the one recorded from its calls."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.mpsgraph.conditions import Undecided, holds
from porter.mpsgraph.graph import (
    RESULTS,
    Call,
    CallSummary,
    Case,
    Cast,
    Constant,
    Expr,
    Graph,
    Input,
    Recording,
    Scalar,
    format_expr,
    nodes,
)
from porter.mpsgraph.operations import by_op


@dataclass(frozen=True)
class Agreement:
    """The number of calls that both readings cover, and one line for each difference."""

    calls: int
    differences: tuple[str, ...]

    def __str__(self) -> str:
        if not self.calls:
            return "nothing was run that the source's reading speaks of"
        if not self.differences:
            return f"the readings agree on all {self.calls} calls"
        return "the readings differ: " + "; ".join(self.differences)


def compare_readings(source: Graph, recording: Recording, through_stub: bool) -> Agreement:
    """Compares the source's graph with every recorded call.

    With `through_stub`, calls that only copy are skipped: ATen answers those itself, before it calls the stub.
    """
    calls, differences = 0, dict[str, None]()
    for call in recording.seen:
        case = _find_case(source, call)
        if case is None:
            continue
        ran = recording.graph.cases[call.case]
        if (through_stub and isinstance(ran.expr, Input)) or (_is_mixed(call, case) and not _reads_mixed(case)):
            continue
        calls += 1
        read, recorded = (
            tuple(format_expr(_normalize(_substitute_arguments(each, call))) for each in _results(expr))
            for expr in (case.expr, ran.expr)
        )
        if read != recorded:
            differences[f"{call.dtype}: the source has {format_expr(case.expr)}, the run {format_expr(ran.expr)}"] = (
                None
            )
    return Agreement(calls, tuple(differences))


def _results(expr: Expr) -> tuple[Expr, ...]:
    """Returns the results of an operator, one or several."""
    return expr.args if isinstance(expr, Call) and expr.op == RESULTS else (expr,)


def _find_case(source: Graph, call: CallSummary) -> Case | None:
    """Returns the source's case for a call, or None if it has none.

    The source is read for calls with every tensor given, under conditions that the call's arguments decide.
    """
    if any(name in call.arguments and call.arguments[name] is None for name in source.inputs):
        return None
    for case in source.of(call.dtype):
        try:
            if all(holds(each.text, call.arguments) is each.holds for each in case.when):
                return case
        except Undecided:
            return None
    return None


def _is_mixed(call: CallSummary, case: Case) -> bool:
    """Whether a call's tensors, including numbers that host code wraps in one, have different types."""
    if any("scalar_type()" in name and value is False for name, value in call.arguments.items()):
        return True
    wrapped = (node.name for node in nodes(case.expr) if isinstance(node, Scalar) and node.wrapped)
    return any(_own_type(name, call) != case.dtype for name in wrapped)


def _own_type(name: str, call: CallSummary) -> DType:
    """Returns the element type of the tensor that wraps a number argument. The device has no float64."""
    if call.arguments.get(f"{name}.isBoolean()"):
        return dtypes.BOOL
    return dtypes.FLOAT if call.arguments.get(f"{name}.isFloatingPoint()") else dtypes.LONG


def _reads_mixed(case: Case) -> bool:
    """Whether the source's case itself reads tensors of several types, such as a condition and its two choices."""
    return any(isinstance(node, Input) and node.dtype != case.dtype for node in nodes(case.expr))


def _substitute_arguments(expr: Expr, call: CallSummary) -> Expr:
    """Replaces the scalar arguments in an expression with the call's numbers."""
    match expr:
        case Scalar(name=name, dtype=dtype):
            value = call.arguments.get(name)
            return Constant(_convert_number(value, dtype), dtype) if isinstance(value, (int, float)) else expr
        case Cast(arg=arg):
            return replace(expr, arg=_substitute_arguments(arg, call))
        case Call(args=args):
            return replace(expr, args=tuple(_substitute_arguments(arg, call) for arg in args))
        case _:
            return expr


def _convert_number(value: float, dtype: DType) -> float:
    """Converts a number to an element type: integers drop the fraction, bool is whether it is nonzero."""
    if dtype.kind is Kind.BOOL:
        return float(bool(value))
    return float(math.trunc(value)) if dtype.kind is Kind.INTEGRAL and math.isfinite(value) else float(value)


def _normalize(expr: Expr) -> Expr:
    """Normalizes numbers to floats, and drops copies and casts that change nothing.

    Every tensor gets a cast to the type it is read in, since host code may convert it before the graph does.
    """
    match expr:
        case Constant(value=value):
            return replace(expr, value=float(value))
        case Input() | Cast(arg=Input()):
            source = expr if isinstance(expr, Input) else expr.arg
            return Cast(source, expr.dtype)
        case Cast(arg=arg, dtype=dtype):
            inner = _normalize(arg)
            return inner if getattr(inner, "dtype", None) == dtype else Cast(inner, dtype)
        case Call(op="identity", args=(arg,)):
            return _normalize(arg)
        case Call(op=op, args=args, dtype=dtype):
            return replace(expr, op=_find_sent_op(op, dtype), args=tuple(map(_normalize, args)))
        case _:
            return expr


def _find_sent_op(op: str, dtype: DType) -> str:
    """Returns the MPSGraph operation that one of PyTorch's category on MPSGraph sends for an element type."""
    sends = by_op()[op].sends if op in by_op() else ()
    return sends[dtype.kind is not Kind.FLOATING] if sends else op
