"""The old graph as the body of a functor."""

from __future__ import annotations

from porter.core.dtypes import DType, Kind
from porter.metal.expression import Printer
from porter.metal.functor import Body
from porter.metal.functor_spec import FunctorSpec
from porter.mpsgraph.graph import Call, Cast, Constant, Expr, Input, Literal, Scalar, UnknownValue
from porter.mpsgraph.operations import by_op


def find_single_call(spec: FunctorSpec, dtype: DType) -> Call | None:
    """The one call that the old graph is, of the inputs and scalars in order; None where it is more than that."""
    expr = _find_unbranched(spec, dtype)
    expr = expr.arg if isinstance(expr, Cast) else expr
    named = (*spec.inputs, *spec.scalars)
    if isinstance(expr, Call) and tuple(getattr(a, "name", "") for a in expr.args) == named:
        return expr
    return None


def translate_graph(spec: FunctorSpec, dtype: DType, result: str) -> Body | None:
    """The old graph itself, when it does not branch, computes in the type it should, and of the functor's arguments."""
    expr = _find_unbranched(spec, dtype)
    if expr is None or _misses_width(expr, dtype):
        return None
    if dtype.kind is not Kind.COMPLEX and _takes_parts(expr):
        return None
    floating = dtype.kind is Kind.FLOATING
    names = {n: spec.as_float(p) if floating else p for n, p in zip(spec.inputs, spec.params, strict=True)}
    names |= {name: name for name in spec.scalars}
    printer = Printer(names, lambda call: by_op()[call.op].msl)
    wrap = (lambda value: f"static_cast<T>({value})") if result == "T" else str
    return Body(printer.statements(expr, wrap), result, "the old graph, translated")


def _find_unbranched(spec: FunctorSpec, dtype: DType) -> Expr | None:
    """What the old graph computes for a type; None where it is not read, branches, or is not element by element."""
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
    """Whether an integer result goes through floating point on the way."""
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
    """Whether the real or the imaginary part of something is taken, which a real number does not have in MSL."""
    match expr:
        case Cast(arg=arg):
            return _takes_parts(arg)
        case Call(op=op, args=args):
            return by_op()[op].takes_part or any(map(_takes_parts, args))
        case Constant() | Input() | Scalar() | Literal() | UnknownValue():
            return False
