"""Integers that address elements: builders that simplify by ranges, and conditions on them.

A sum has its like terms joined, the largest stride first and the constant last. Division and remainder are by positive
constants and floor, as Python's; those of sums fall apart into terms that divide evenly and a rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from porter.core.dtypes import BOOL
from porter.loops.expressions import FALSE, TRUE, Expr, Loop, Op, intern, number


def integer(value: int) -> Expr:
    return intern(Op.INTEGER, (), None, int(value))


ZERO = integer(0)


def loop(name: str, size: int) -> Expr:
    """A loop variable; 0 where it has one turn only."""
    return ZERO if size == 1 else intern(Op.LOOP, (), None, Loop(name, size))


def read_index(value: Expr) -> Expr:
    """A value as an index."""
    return integer(int(value.attribute)) if value.op is Op.NUMBER else intern(Op.READ_INDEX, (value,))  # type: ignore[call-overload]


def add(*terms: Expr | int) -> Expr:
    """The sum of indices."""
    factors, constant = _collect(terms)
    for term, factor in factors.items():
        whole = _find_quotient(term, factor, factors)
        if whole is not None:  # (x // n) * n * k + (x % n) * k is x * k
            rest = (_scale(each, k) for each, k in factors.items() if each not in (term, whole))
            return add(*rest, constant, multiply(term.args[0], factor))
    ordered = sorted(factors.items(), key=lambda pair: (-abs(pair[1]), pair[0].order))
    parts = [_scale(term, factor) for term, factor in ordered if factor]
    if constant or not parts:
        parts.append(integer(constant))
    return parts[0] if len(parts) == 1 else intern(Op.SUM, parts)


def _find_quotient(term: Expr, factor: int, factors: Mapping[Expr, int]) -> Expr | None:
    """The term that `factor` times the remainder `term` completes to a whole index."""
    if term.op is not Op.REMAINDER or not factor:
        return None
    by = _constant(term.args[1])
    quotient = divide(term.args[0], by)
    return quotient if factors.get(quotient) == factor * by else None


def _collect(terms: Iterable[Expr | int]) -> tuple[dict[Expr, int], int]:
    """The factor of every term that is no sum or multiple, and the constant."""
    factors: dict[Expr, int] = {}
    constant = 0
    stack = [(integer(term) if isinstance(term, int) else term, 1) for term in terms]
    while stack:
        term, by = stack.pop()
        if term.integer is not None:
            constant += by * term.integer
        elif term.op is Op.SUM:
            stack += [(arg, by) for arg in term.args]
        elif term.op is Op.PRODUCT:
            stack.append((term.args[0], by * _constant(term.args[1])))
        else:
            factors[term] = factors.get(term, 0) + by
    return factors, constant


def _scale(term: Expr, factor: int) -> Expr:
    return term if factor == 1 else intern(Op.PRODUCT, (term, integer(factor)))


def _constant(expr: Expr) -> int:
    assert expr.integer is not None
    return expr.integer


def multiply(index: Expr, factor: int) -> Expr:
    """An index times a constant."""
    factors, constant = _collect([index])
    return add(*(_scale(term, k * factor) for term, k in factors.items() if k * factor), constant * factor)


def divide(index: Expr, by: int) -> Expr:
    """An index divided by a positive constant, rounded down."""
    if by == 1:
        return index
    if index.bounds is not None and index.bounds[0] // by == index.bounds[1] // by:
        return integer(index.bounds[0] // by)
    whole, rest = _split(index, by)
    if rest.bounds is not None and rest.bounds[0] >= 0 and rest.bounds[1] < by:
        return whole
    if whole is not ZERO:
        return add(whole, divide(rest, by))
    if index.op is Op.QUOTIENT:
        return divide(index.args[0], _constant(index.args[1]) * by)
    return intern(Op.QUOTIENT, (index, integer(by)))


def modulo(index: Expr, by: int) -> Expr:
    """The remainder of an index divided by a positive constant; never negative."""
    if by == 1:
        return ZERO
    if index.bounds is not None and index.bounds[0] // by == index.bounds[1] // by:
        return add(index, -(index.bounds[0] // by) * by)
    _, rest = _split(index, by)
    if rest is not index:
        return modulo(rest, by)
    if index.op is Op.REMAINDER and _constant(index.args[1]) % by == 0:
        return modulo(index.args[0], by)
    return intern(Op.REMAINDER, (index, integer(by)))


def _split(index: Expr, by: int) -> tuple[Expr, Expr]:
    """An index as whole * `by` + rest, by its terms."""
    factors, constant = _collect([index])
    whole = [_scale(term, k // by) for term, k in factors.items() if k % by == 0]
    rest = [_scale(term, k) for term, k in factors.items() if k % by]
    return add(*whole, constant // by), add(*rest, constant % by)


def at_least(index: Expr, bound: int) -> Expr:
    """The greater of an index and a constant."""
    if index.bounds is not None and index.bounds[0] >= bound:
        return index
    if index.bounds is not None and index.bounds[1] <= bound:
        return integer(bound)
    return intern(Op.GREATEST, (index, integer(bound)))


def at_most(index: Expr, bound: int) -> Expr:
    """The lesser of an index and a constant."""
    if index.bounds is not None and index.bounds[1] <= bound:
        return index
    if index.bounds is not None and index.bounds[0] >= bound:
        return integer(bound)
    return intern(Op.LEAST, (index, integer(bound)))


def clamp(index: Expr, low: int, high: int) -> Expr:
    return at_most(at_least(index, low), high)


def distance(index: Expr) -> Expr:
    """The absolute value of an index."""
    if index.bounds is not None and index.bounds[0] >= 0:
        return index
    if index.bounds is not None and index.bounds[1] <= 0:
        return multiply(index, -1)
    return intern(Op.DISTANCE, (index,))


def less(index: Expr, other: Expr | int) -> Expr:
    """Whether an index is less than another: decided now where their ranges do."""
    other = integer(other) if isinstance(other, int) else other
    difference = add(index, multiply(other, -1)).bounds
    if difference is not None and (difference[1] < 0 or difference[0] >= 0):
        return number(difference[1] < 0, BOOL)
    return intern(Op.LESS, (index, other), BOOL)


def at_or_above(index: Expr, bound: int) -> Expr:
    """Whether an index is at least a constant."""
    return less(integer(bound - 1), index)


def equal(index: Expr, other: Expr | int) -> Expr:
    """Whether two indices are equal: decided now where their ranges do."""
    other = integer(other) if isinstance(other, int) else other
    difference = add(index, multiply(other, -1)).bounds
    if difference is not None and (difference == (0, 0) or difference[0] > 0 or difference[1] < 0):
        return number(difference == (0, 0), BOOL)
    return intern(Op.EQUAL, (index, other), BOOL)


def both(conditions: Iterable[Expr]) -> Expr:
    """Whether all conditions hold."""
    kept = list(dict.fromkeys(each for each in conditions if each is not TRUE))
    if FALSE in kept:
        return FALSE
    made = kept[0] if kept else TRUE
    for each in kept[1:]:
        made = intern(Op.BOTH, (made, each), BOOL)
    return made


def is_inside(index: Expr, size: int) -> Expr:
    """Whether an index addresses a dimension of this size."""
    return both((at_or_above(index, 0), less(index, size)))


def flatten(indices: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """The row-major index of an element."""
    terms, stride = [], 1
    for index, size in zip(reversed(indices), reversed(shape), strict=True):
        terms.append(multiply(index, stride))
        stride *= size
    return add(*terms)


def unflatten(flat: Expr, shape: Sequence[int]) -> tuple[Expr, ...]:
    """The indices of the element with this row-major index, which is in range."""
    made = []
    for i, size in reversed(list(enumerate(shape))):
        made.append(modulo(flat, size) if i else flat)
        flat = divide(flat, size)
    return tuple(reversed(made))


def rebuild_index(expr: Expr, args: Sequence[Expr]) -> Expr:
    """An index or a condition from new operands, simplified again."""
    match expr.op:
        case Op.SUM:
            return add(*args)
        case Op.PRODUCT:
            return multiply(args[0], _constant(args[1]))
        case Op.QUOTIENT:
            return divide(args[0], _constant(args[1]))
        case Op.REMAINDER:
            return modulo(args[0], _constant(args[1]))
        case Op.LEAST:
            return at_most(args[0], _constant(args[1]))
        case Op.GREATEST:
            return at_least(args[0], _constant(args[1]))
        case Op.DISTANCE:
            return distance(args[0])
        case Op.READ_INDEX:
            return read_index(args[0])
        case Op.LESS:
            return less(args[0], args[1])
        case Op.EQUAL:
            return equal(args[0], args[1])
        case Op.BOTH:
            return both(args)
    raise AssertionError(expr.op)
