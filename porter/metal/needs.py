"""The instances that the functor of an operator needs from the REGISTER macros of c10/metal/indexing.h."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.metal.functor import Functor
from porter.metal.functor_spec import FunctorSpec
from porter.metal.macros import Instance, MacroBook, MacroFamily
from porter.metal.registration import Need, find_base_macro

_ARITHMETIC = re.compile(r"\b[abc]\w*\)? [-+*/] \(?[abc]")


def list_needs(
    spec: FunctorSpec, functor: Functor, family: MacroFamily, book: MacroBook, castout: bool
) -> Iterator[Need]:
    """Yields the instances for every supported dtype; with opmath if the functor computes in the element type, or the
    CPU with a scalar that has more digits than elements have.

    With `castout`, each also from the macro whose kernels write outputs of any type.
    """
    plain: list[Instance] = []
    opmath: list[Instance] = []
    several = family in (MacroFamily.BINARY, MacroFamily.TERNARY)
    has_opmath = several and find_base_macro(book, family, True).opmath
    raw = _find_raw_kinds(functor) if has_opmath else set()
    wide = raw | {Kind.FLOATING} if has_opmath and spec.cpu.keeps_scalars else raw
    for dtype in spec.served:
        result = spec.result(dtype)
        assert result is not None
        instance = Instance(dtype.metal, result.metal, _choose_alpha(spec, dtype, result))
        is_whole = dtype is dtypes.FLOAT2 and Kind.FLOATING not in raw
        (opmath if dtype.kind in wide and not is_whole else plain).append(instance)
    if plain:
        yield Need(family, tuple(plain))
    if opmath:
        yield Need(family, tuple(opmath), opmath=True)
    if castout:
        yield Need(family, (*plain, *opmath), castout=True)


def _find_raw_kinds(functor: Functor) -> set[Kind]:
    """Returns the kinds computed in their own type, so that halves would be rounded between operations."""
    own = [(o.kinds, o.body.statements) for o in functor.overloads if o.body.result == "T"]
    floating = [o.body for o in functor.overloads if Kind.FLOATING in o.kinds and o.body.result == "T"]
    lines = (line for body in floating for line in body.statements)
    if any(map(_ARITHMETIC.search, lines)) and not any(body.rounds for body in floating):
        return {Kind.FLOATING, Kind.COMPLEX}
    as_they_are = [
        lines for kinds, lines in own if Kind.COMPLEX in kinds and f"{dtypes.FLOAT2.metal}(" not in "".join(lines)
    ]
    return {Kind.COMPLEX} if as_they_are else set()


def _choose_alpha(spec: FunctorSpec, dtype: DType, result: DType) -> str | None:
    """Returns the type of a scalar, `at::toOpMathType` of the type computed in, or the struct of several."""
    if not spec.scalars or spec.struct:
        return spec.struct.alias(dtype) if spec.struct else None
    if result.kind is Kind.COMPLEX:
        return dtypes.FLOAT2.metal
    return dtypes.FLOAT.metal if result.kind is Kind.FLOATING else dtype.metal
