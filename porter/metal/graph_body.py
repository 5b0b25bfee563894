"""Translates the old graph to a functor body."""

from __future__ import annotations

from porter.core.dtypes import DType, Kind
from porter.metal.expression import Printer
from porter.metal.functor import Body
from porter.metal.functor_spec import FunctorSpec
from porter.mpsgraph.graph import Call, Cast, Constant, Expr, Input, Literal, Scalar, UnknownValue
from porter.mpsgraph.operations import by_op


def find_single_call(spec: FunctorSpec, dtype: DType) -> Call | None:
    """Returns the only call of the old graph if it takes the inputs and scalars in order, else None."""
    expr = _find_unbranched(spec, dtype)
    expr = expr.arg if isinstance(expr, Cast) else expr
    named = (*spec.inputs, *spec.scalars)
    if isinstance(expr, Call) and tuple(getattr(a, "name", "") for a in expr.args) == named:
        return expr
    return None


def translate_graph(spec: FunctorSpec, dtype: DType, result: str) -> Body | None:
    """Translates the old graph, or returns None if it branches, or computes in another type or of other arguments."""
    expr = _find_unbranched(spec, dtype)
    if expr is None or _misses_width(expr, dtype):
        return None
    if dtype.kind is not Kind.COMPLEX and _takes_parts(expr):
        return None
    floating = dtype.kind is Kind.FLOATING
    names = {n: spec.as_float(p) if floating else p for n, p in zip(spec.inputs, spec.params, strict=True)}
    names |= dict(zip(spec.scalars, spec.given, strict=True))
    printer = Printer(names, lambda call: by_op()[call.op].msl)
    wrap = (lambda value: f"static_cast<T>({value})") if result == "T" else str
    return Body(printer.statements(expr, wrap), result, "the old graph, translated")


def _find_unbranched(spec: FunctorSpec, dtype: DType) -> Expr | None:
    """Returns the old graph's expression for a type, or None if it is unknown, branches or is not elementwise."""
    cases = spec.graph.of(dtype) if spec.graph else ()
    if len(cases) != 1 or cases[0].when or not _is_elementwise(cases[0].expr, spec):
        return None
    return cases[0].expr


def _is_elementwise(expr: Expr, spec: FunctorSpec) -> bool:
    match expr:
        case Input(name=name):
            return name in spec.inputs
        case Scalar(name=name):
            return name in (*spec.scalars, *spec.inputs)
        case Cast(arg=arg):
            return _is_elementwise(arg, spec)
        case Call(op=op, args=args):
            return op in by_op() and all(_is_elementwise(arg, spec) for arg in args)
        case _:
            return isinstance(expr, Constant)


def _misses_width(expr: Expr, dtype: DType) -> bool:
    """Whether an integer result is computed in floating point, and so may lose digits."""
    if dtype.kind is Kind.FLOATING:
        return False
    match expr:
        case Cast(arg=arg, dtype=to):
            return to.kind is Kind.FLOATING or _misses_width(arg, dtype)
        case Call(op=op, args=args):
            return (dtype.kind is not Kind.COMPLEX and by_op()[op].is_real) or any(
                _misses_width(arg, dtype) for arg in args
            )
        case Constant() | Input() | Scalar() | Literal() | UnknownValue():
            return False


def _takes_parts(expr: Expr) -> bool:
    """Whether the expression takes a real or imaginary part, which a real number does not have in MSL."""
    match expr:
        case Cast(arg=arg):
            return _takes_parts(arg)
        case Call(op=op, args=args):
            return by_op()[op].takes_part or any(map(_takes_parts, args))
        case Constant() | Input() | Scalar() | Literal() | UnknownValue():
            return False
