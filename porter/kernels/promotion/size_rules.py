"""Rules that sizes of a call may follow: what each says, whether it holds, and the check of it in host code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from porter.plan.new_operator import schema
from porter.plan.promotion.expressions import (
    Argument,
    Constant,
    Expression,
    Input,
    OfTensor,
    SameSizes,
    Size,
    Sizes,
    apply,
)
from porter.plan.promotion.program import Check, Message, Requirement

Shapes = Mapping[str, tuple[int, ...]]
Numbers = Mapping[str, int]  # the whole numbers among the arguments
_FACTORS = (2, 3, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class SizeRule:
    """A condition on shapes and whole numbers. It fails where it asks for a dimension that is not there."""

    requirement: Requirement
    computes: Callable[[Shapes, Numbers], bool]

    def holds(self, shapes: Shapes, numbers: Numbers) -> bool:
        try:
            return self.computes(shapes, numbers)
        except IndexError:
            return False


@dataclass(frozen=True)
class _Value:
    """A number that a size may be compared with."""

    expression: Expression
    computes: Callable[[Shapes, Numbers], int]


def list_rules(parameters: Sequence[schema.Argument], ranks: Mapping[str, int | None]) -> Iterator[SizeRule]:
    """The rules that the sizes of tensors may follow, those first that say most in the fewest words.

    `ranks` has the number of dimensions of each tensor, or None for one that may have several: its dimensions are then
    counted from the last. A tensor is compared with those before it.
    """
    tensors = [each.name for each in parameters if each.is_tensor]
    numbers = [_argument(each.name) for each in parameters if each.type == "int"]
    for at, name in enumerate(tensors):
        yield from (_same_shape(name, other) for other in tensors[:at])
    for name in tensors:
        if (rank := ranks[name]) is not None:
            yield _has_rank(name, rank)
    for at, name in enumerate(tensors):
        for other in tensors[:at] if ranks[name] is None else ():
            yield from (_has_elements(name, _size(other, dim)) for dim in _list_dims(ranks[other]))
        others = [_size(other, dim) for other in tensors[:at] for dim in _list_dims(ranks[other])]
        others += [_count(other) for other in tensors[:at]]
        for dim in _list_dims(ranks[name]):
            size = _size(name, dim)
            compared = [*others, *numbers]
            yield from (_compare(name, dim, size, "==", value) for value in compared)
            for sign in _COMPARED:
                yield from (_compare(name, dim, size, sign, value, k) for k in _FACTORS for value in compared)
                yield from (_compare(name, dim, size, sign, _times(value, k)) for k in _FACTORS for value in compared)
            yield from (_compare(name, dim, size, sign, value) for sign in (">=", "<=") for value in compared)
        yield from (_has_elements(name, _count(other)) for other in tensors[:at])
    for name in tensors:
        for dim in _list_dims(ranks[name]):
            yield _compare(name, dim, _size(name, dim), ">=", _constant(1))
            yield from (_is_multiple(name, dim, factor) for factor in _FACTORS)


def list_constants(name: str, shapes: Sequence[tuple[int, ...]]) -> Iterator[SizeRule]:
    """The rules that a size of a tensor is a number, where it is the same in all of its shapes."""
    if len({len(each) for each in shapes}) == 1:
        for dim, sizes in enumerate(zip(*shapes, strict=True)):
            if len(set(sizes)) == 1:
                yield _compare(name, dim, _size(name, dim), "==", _constant(sizes[0]))


def _list_dims(rank: int | None) -> Sequence[int]:
    return range(rank) if rank is not None else (-1, -2, -3, -4)


def _size(name: str, dim: int) -> _Value:
    return _Value(Size(Input(name), dim), lambda shapes, _: shapes[name][dim])


def _count(name: str) -> _Value:
    return _Value(OfTensor(Input(name), "numel"), lambda shapes, _: math.prod(shapes[name]))


def _argument(name: str) -> _Value:
    return _Value(Argument(name, "int"), lambda _, numbers: numbers[name])


def _constant(value: int) -> _Value:
    return _Value(Constant.of(value), lambda *_: value)


def _times(value: _Value, factor: int) -> _Value:
    expression = apply("*", value.expression, Constant.of(factor))
    return _Value(expression, lambda shapes, numbers: value.computes(shapes, numbers) * factor)


_COMPARED: Mapping[str, tuple[str, Callable[[int, int], bool]]] = {
    "==": ("", lambda one, other: one == other),
    ">=": ("at least ", lambda one, other: one >= other),
    "<=": ("at most ", lambda one, other: one <= other),
}


def _compare(name: str, dim: int, left: _Value, sign: str, right: _Value, factor: int = 1) -> SizeRule:
    words, compares = _COMPARED[sign]
    times = f"{factor} times " if factor > 1 else ""
    message: Message = (
        f"{name} has size ", left.expression, f" in dimension {dim}, {times}which has to be {words}", right.expression,
    )  # fmt: skip
    left = _times(left, factor)
    return _rule(
        apply(sign, left.expression, right.expression), message,
        lambda shapes, numbers: compares(left.computes(shapes, numbers), right.computes(shapes, numbers)),
    )  # fmt: skip


def _has_rank(name: str, rank: int) -> SizeRule:
    dim = OfTensor(Input(name), "dim")
    message = (f"{name} has to have {rank} dimension{'s' * (rank != 1)}, not ", dim)
    return _rule(apply("==", dim, Constant.of(rank)), message, lambda shapes, _: len(shapes[name]) == rank)


def _same_shape(name: str, other: str) -> SizeRule:
    sizes, wanted = Sizes(Input(name)), Sizes(Input(other))
    message = (f"{name} has to have the shape ", wanted, f" of {other}, not ", sizes)
    return _rule(SameSizes(sizes, wanted), message, lambda shapes, _: shapes[name] == shapes[other])


def _has_elements(name: str, wanted: _Value) -> SizeRule:
    count = _count(name)
    message = (f"{name} has to have ", wanted.expression, " elements, not ", count.expression)
    return _rule(
        apply("==", count.expression, wanted.expression), message,
        lambda shapes, numbers: count.computes(shapes, numbers) == wanted.computes(shapes, numbers),
    )  # fmt: skip


def _is_multiple(name: str, dim: int, factor: int) -> SizeRule:
    size = Size(Input(name), dim)
    message = (f"{name} has to have a multiple of {factor} in dimension {dim}, not ", size)
    condition = apply("==", apply("%", size, Constant.of(factor)), Constant.of(0))
    return _rule(condition, message, lambda shapes, _: shapes[name][dim] % factor == 0)


def _rule(condition: Expression, message: Message, computes: Callable[[Shapes, Numbers], bool]) -> SizeRule:
    return SizeRule(Requirement(condition, message, Check.VALUE), computes)
