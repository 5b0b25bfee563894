"""Means of rows, and sums of squared differences from them, that one pass finds together, as Welford's algorithm does.

Source: c10/metal/reduction_utils.h (`welford_combine` of a mean, a sum of squares and a count).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from porter.core.dtypes import FLOAT
from porter.loops.expressions import Expr, Loop, Op, ReductionKind, walk
from porter.loops.fusion import LoopNest
from porter.loops.host_values import Named
from porter.metal.codegen.scan import put_loop

TYPE = "float3"


@dataclass(frozen=True)
class Moments:
    """Of the elements of a row: their sum, the mean that is made of it, and the sum of squares around that."""

    total: Expr
    mean: Expr
    squares: Expr


def find_moments(nest: LoopNest) -> list[Moments]:
    """The moments of a nest whose sums nothing but the means uses."""
    values = [each for store in nest.stores for each in walk(store.value)]
    found = [moments for each in dict.fromkeys(values) if (moments := _read_squares(each))]
    return [each for each in found if _makes_mean_alone(each, values)]


def _makes_mean_alone(moments: Moments, values: list[Expr]) -> bool:
    return all(each is moments.mean for each in values if moments.total in each.args)


def _read_squares(squares: Expr) -> Moments | None:
    """What a sum of squared differences from a mean is made of; None for any other value."""
    if squares.op is not Op.REDUCE or squares.reduction.kind is not ReductionKind.SUM or squares.dtype != FLOAT:
        return None
    difference = find_root(squares.args[0])
    if difference is None or difference.attribute != "subtraction":
        return None
    element, mean = difference.args
    if mean.attribute != "division" or mean.args[0].op is not Op.REDUCE:
        return None
    total, count = mean.args
    loops, others = total.reduction.loops, squares.reduction.loops
    if total.reduction.kind is not ReductionKind.SUM or len(loops) != 1 or len(others) != 1:
        return None
    is_same = put_loop(element, others[0], loops[0]) is total.args[0]
    return Moments(total, mean, squares) if is_same and _counts(count, loops[0]) and _counts(count, others[0]) else None


def find_root(value: Expr) -> Expr | None:
    """What a value is the square of."""
    if value.attribute == "square":
        return value.args[0]
    is_product = value.attribute == "multiplication" and value.args[0] is value.args[1]
    return value.args[0] if is_product else None


def _counts(count: Expr, loop: Loop) -> bool:
    """Whether a number is how many turns a loop has."""
    if loop.number is None:
        return count.attribute == loop.size
    return isinstance(count.attribute, Named) and count.attribute.value == loop.number.value


def write_element(value: str) -> str:
    """The moments of one element; one that is not finite counts nothing and is added to the squares."""
    return f"isfinite({value}) ? {TYPE}({value}, 0, 1) : {TYPE}(0, {value}, 0)"


def write_end(name: str, count: str) -> Iterator[str]:
    """What moments are of all elements: those that are not finite decide the mean, and nothing is at a distance."""
    yield f"if (!isfinite({name}.y) && {name}.z != {count}) {{"
    yield f"  {name} = {TYPE}({name}.y, NAN, {name}.z);"
    yield "}"


def write_addition(name: str, moments: str) -> str:
    return f"{name} = c10::metal::welford_combine({name}, {moments});"


def write_sharing(name: str, shared: str, lane: str, width: str, first: str = "") -> Iterator[str]:
    """How threads combine their moments, where those of a row have theirs from the place `first` of memory on."""
    yield f"{shared}[{f'{first} + ' if first else ''}{lane}] = {name};"
    row = f"{shared}{f' + {first}' if first else ''}"
    yield f"{name} = c10::metal::threadgroup_welford_combine({row}, {lane}, {width});"
