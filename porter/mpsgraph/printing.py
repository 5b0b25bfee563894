"""Prints graphs. Element types with the same expression share a line."""

from __future__ import annotations

from collections.abc import Iterator

from porter.core.dtypes import DType
from porter.mpsgraph.graph import Call, Cast, Constant, Expr, Graph, Input, Literal, Scalar, UnknownValue, Value


def graph_lines(graph: Graph) -> Iterator[str]:
    """Returns lines such as `float, half: T(squareRoot(addition(self, other)))`, with T for the case's type, followed
    by the rejected types.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for case in graph.cases:
        when = " and ".join(map(str, case.when))
        groups.setdefault((when, format_expr(case.expr, case.dtype)), []).append(case.dtype.metal)
    for (when, text), names in groups.items():
        yield f"{', '.join(names)}{f' if {when}' if when else ''}: {text}"
    for refusal in graph.refusals:
        yield f"{refusal.dtype}: refused at {refusal.place}: {refusal.text}"


def format_expr(expr: Expr, own: DType | None = None) -> str:
    """Returns the expression as nested calls. A cast to the type `own` prints as `T`; unknown values print as `?`."""
    match expr:
        case Input(name=name) | Scalar(name=name):
            return name
        case Constant(value=value):
            return str(value)
        case Literal(value=literal):
            return _format_literal(literal)
        case UnknownValue():
            return "?"
        case Cast(arg=arg, dtype=dtype):
            return f"{'T' if dtype == own else dtype}({format_expr(arg, own)})"
        case Call(op=op, args=args):
            return f"{op}({', '.join(format_expr(arg, own) for arg in args)})"


def _format_literal(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_format_literal, value))}]"
    return "nil" if value is None else str(value)
