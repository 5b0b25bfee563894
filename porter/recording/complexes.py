"""Complex numbers of a graph: split into their parts, and merged again if both are parts of one argument."""

from __future__ import annotations

from dataclasses import replace

from porter.core.dtypes import DType
from porter.mpsgraph.graph import Call, Cast, Constant, Expr, Scalar, Value

JOIN = "complexTensorWithRealTensor:imaginaryTensor"


def join_parts(real: Expr, imaginary: Expr, dtype: DType) -> Call:
    """The complex number with these parts."""
    return Call(JOIN, (real, imaginary), dtype)


def complex_constant(value: complex, dtype: DType) -> Call:
    """A complex constant as a pair of real ones, which may differ from run to run."""
    return join_parts(Constant(value.real, dtype.real), Constant(value.imag, dtype.real), dtype)


def argument_parts(name: str, value: complex) -> dict[str, Value]:
    """The parts of an argument, by the expressions host code reads them with."""
    return {f"{name}.real()": float(value.real), f"{name}.imag()": float(value.imag)}


def merge_parts(expr: Expr) -> Expr:
    """Merges the parts of each argument, and of each constant without an imaginary part."""
    if isinstance(expr, Cast):
        return replace(expr, arg=merge_parts(expr.arg))
    if not isinstance(expr, Call):
        return expr
    match expr.op, tuple(map(merge_parts, expr.args)):
        case op, (Constant() | Scalar() as real, Constant(value=0)) if op == JOIN:
            return replace(real, dtype=expr.dtype)
        case op, (Scalar(name=real), Scalar(name=imaginary)) if op == JOIN and _are_parts_of_one(real, imaginary):
            return Scalar(real.removesuffix(".real()"), expr.dtype)
        case _, args:
            return replace(expr, args=args)


def _are_parts_of_one(real: str, imaginary: str) -> bool:
    name = real.removesuffix(".real()")
    return (real, imaginary) == tuple(argument_parts(name, 0))
