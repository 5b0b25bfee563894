"""Finds what a number of a case is: an expression of the calls' arguments that gives it in every call.

Shorter expressions first; of the same length in the order of `list_atoms`. An expression is learned from some of the
calls, and accepted only if it foretells the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from porter.core.dtypes import FLOAT, DType
from porter.loops import host_values as host

_ONE = host.Constant(1)
_DEFAULTS = (0, 1, 2)  # of scalars that may be left out
MIN_CALLS = 5  # of a case: four to learn from, one to foretell
_LEARN = 4
_FOLDS = 3
_FORETOLD = 2  # of the folds
_DIGITS = 6  # by which numbers of single precision are compared
_TOLERANCE = 1e-6
_CORRECTION_DIGITS = 3
_OFFSETS = (-1, 1, -2, 2)
_FACTORS = (-1, 2, 3, 4)
_MAX_PAIRED = 60  # of the simplest values, in expressions of three
Column = tuple[host.Number, ...]
_Combine = Callable[[float, float], float | None]
# For an operation on two values: the second from the result and the first.
_INVERSES: tuple[tuple[str, _Combine], ...] = (
    ("*", lambda c, a: c / a if a else None),
    ("+", lambda c, a: c - a),
    ("-", lambda c, a: a - c),
    ("/", lambda c, a: a / c if c else None),
)
_FORWARD: tuple[tuple[str, _Combine], ...] = (
    ("quotient", lambda a, b: a // b if b else None),
    ("min", min),
    ("max", max),
)


def list_atoms(calls: Sequence[host.Arguments]) -> list[host.HostValue]:
    """The values that all calls have: of arguments before results, sizes before products, the front before the back.

    What an argument says (a dimension, how many are normalized) comes before the same by a constant.
    """
    first = calls[0]
    names = [name for name in first.tensors if all(name in call.tensors for call in calls)]
    candidates = [
        *(atom for name in names for atom in _sizes(name, first)),
        *_scalar_atoms(first),
        *_default_atoms(calls),
        *(atom for name in names for atom in _products(name, first)),
        *(atom for name in names for atom in _products_over(name, first)),
    ]
    found = [each for each in dict.fromkeys(candidates) if all(host.evaluate(each, call) is not None for call in calls)]
    return sorted(found, key=lambda each: (is_of_result(each), _rank_cost(each)))


def is_of_result(value: host.HostValue) -> bool:
    """Whether a value needs the shape of a result."""
    return any(map(host.is_result, host.list_names(value)))


def _rank_cost(value: host.HostValue) -> int:
    match value:
        case host.Size(_, host.WrappedDim() | host.EndDim()):
            return 0
        case host.SizeProduct(_, begin, end) if (begin or end) and not any(
            isinstance(each, host.Constant) for each in (begin, end)
        ):
            return 1
        case host.SizesOver():
            return 2
        case host.Scalar() | host.Element() | host.Size() | host.SizeProduct(_, None, None):
            return 3
    return 4


def _scalar_atoms(call: host.Arguments) -> Iterator[host.HostValue]:
    for name, value in call.others.items():
        if _is_number(value):
            yield host.Scalar(name)
        elif isinstance(value, tuple):
            yield from (host.Element(name, i) for i, each in enumerate(value) if _is_number(each))
            yield from (host.Element(name, i - len(value)) for i, each in enumerate(value) if _is_number(each))
            yield host.Length(name)
    yield from (host.Length(name.removesuffix("[0]")) for name in call.tensors if name.endswith("[0]"))


def _default_atoms(calls: Sequence[host.Arguments]) -> Iterator[host.HostValue]:
    """The scalars that some calls leave out, with each default that they may have."""
    for name in calls[0].others:
        given = [call.others.get(name) for call in calls]
        if None in given and any(map(_is_number, given)) and all(each is None or _is_number(each) for each in given):
            yield from (host.Scalar(name, default) for default in _DEFAULTS)


def _is_number(value: host.ArgumentValue) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _sizes(name: str, call: host.Arguments) -> Iterator[host.HostValue]:
    rank = len(call.tensors[name].shape)
    yield from (host.Size(name, host.Constant(i)) for i in range(rank))
    yield from (host.Size(name, host.Constant(-1 - i)) for i in range(rank))
    yield from (host.Size(name, dim) for dim in _dims(name, call))
    yield host.Rank(name)


def _products(name: str, call: host.Arguments) -> Iterator[host.HostValue]:
    rank = len(call.tensors[name].shape)
    yield host.SizeProduct(name)
    for dim in _dims(name, call):
        yield host.SizeProduct(name, None, dim)
        yield host.SizeProduct(name, host.Apply("+", (dim, _ONE)))
        yield host.SizeProduct(name, dim)
    for cut in range(1, rank):
        yield host.SizeProduct(name, None, host.Constant(cut))
        yield host.SizeProduct(name, host.Constant(-cut))
        yield host.SizeProduct(name, host.Constant(cut))
        yield host.SizeProduct(name, None, host.Constant(-cut))
    for length in _lengths(name, call):
        cut_at = host.Apply("-", (host.Rank(name), length))
        yield host.SizeProduct(name, None, cut_at)
        yield host.SizeProduct(name, cut_at)
    for begin in range(rank):
        yield from (host.SizeProduct(name, host.Constant(begin), host.Constant(end)) for end in range(begin + 2, rank))


def _products_over(name: str, call: host.Arguments) -> Iterator[host.HostValue]:
    for dims in _dim_arguments(call):
        yield host.SizesOver(name, dims)
        yield host.SizesOver(name, dims, others=True)


def _dim_arguments(call: host.Arguments) -> list[str]:
    """The arguments that name dimensions, as ATen's schemas call them."""
    return [name for name in call.others if "dim" in name and name != "keepdim"]


def _dims(tensor: str, call: host.Arguments) -> Iterator[host.WrappedDim | host.EndDim]:
    for name in _dim_arguments(call):
        value = call.others[name]
        if isinstance(value, int) and not isinstance(value, bool):
            yield host.WrappedDim(host.Scalar(name), tensor)
        elif isinstance(value, tuple) or value is None:
            yield from (host.EndDim(name, tensor, is_last) for is_last in (False, True))


def _lengths(tensor: str, call: host.Arguments) -> Iterator[host.Length]:
    """The lengths of the lists that have the sizes of a tensor's last dimensions."""
    shape = call.tensors[tensor].shape
    for name, value in call.others.items():
        if isinstance(value, tuple) and value and value == shape[-len(value) :]:
            yield host.Length(name)


class Fit:
    """What can be said of numbers in a case's calls."""

    def __init__(self, calls: Sequence[host.Arguments]) -> None:
        self._calls = calls
        self._whole = _Search(calls)
        self._folds = [_Fold(calls, fold) for fold in range(_FOLDS)]

    def find_constant(self, values: Sequence[host.Number]) -> host.Constant | None:
        """The number that all calls have."""
        return host.Constant(values[0]) if len(set(map(_near, values))) == 1 else None

    def find_scalar(self, values: Sequence[host.Number], dtype: DType) -> host.HostValue | None:
        """The scalar argument, or the lesser or greater of two, that has these values if it is converted to a type.

        That is float, or an element type. As digits may be lost, it is not found as other values are.
        """
        scalars = [
            host.Scalar(name) for name, value in self._calls[0].others.items() if isinstance(value, (int, float))
        ]
        extremes = ("min", "max")
        pairs = (host.Apply(each, pair) for each in extremes for pair in combinations(scalars, 2))
        candidates: list[host.HostValue] = [*scalars, *pairs]
        found = (each for each in candidates for to in (FLOAT, dtype) if self._converts(each, values, to))
        return next(found, None)

    def _converts(self, value: host.HostValue, values: Sequence[host.Number], dtype: DType) -> bool:
        given = (host.evaluate(value, call) for call in self._calls)
        pairs = zip(given, values, strict=True)
        return all(each is not None and host.round_number(each, dtype) == number for each, number in pairs)

    def find(self, values: Sequence[host.Number]) -> host.HostValue | None:
        """The expression of a number with these values in the calls; None if there is none that foretells.

        What is learned without a third of the calls must hold in that third, for two thirds of three; then all of the
        calls choose its form.
        """
        constant = self.find_constant(values)
        if constant is not None:
            return constant
        found = self._whole.find(values)
        foretold = found is not None and sum(fold.foretells(values) for fold in self._folds) >= _FORETOLD
        return found if foretold else None


class _Fold:
    """A third of the calls, to be foretold from the others, of which at least four are left."""

    def __init__(self, calls: Sequence[host.Arguments], fold: int) -> None:
        tested = [i for i in range(len(calls)) if i % _FOLDS == fold][: max(len(calls) - _LEARN, 0)]
        self._tested = {i: calls[i] for i in tested}
        self._learned = [i for i in range(len(calls)) if i not in self._tested]
        self._search = _Search([calls[i] for i in self._learned])

    def foretells(self, values: Sequence[host.Number]) -> bool:
        """Whether an expression learned from the other calls holds in these."""
        learned = self._search.find([values[i] for i in self._learned])
        if learned is None:
            return False
        return all(is_close(host.evaluate(learned, call), values[i]) for i, call in self._tested.items())


def is_close(found: host.Number | None, expected: host.Number) -> bool:
    """Whether a computed number is the recorded one, which host code may have rounded to single precision."""
    if found is None:
        return False
    if isinstance(expected, int) and isinstance(found, int):
        return found == expected
    return math.isclose(found, expected, rel_tol=_TOLERANCE)


def _near(value: float) -> float:
    """What numbers of single precision are looked up by."""
    return float(value) if value == int(value) else float(f"{value:.{_DIGITS}g}")


def _near_all(values: Sequence[float | None]) -> tuple[float, ...] | None:
    known = [each for each in values if each is not None and math.isfinite(each)]
    return tuple(map(_near, known)) if len(known) == len(values) else None


class _Search:
    """The values that a set of calls has, and expressions of them."""

    def __init__(self, calls: Sequence[host.Arguments]) -> None:
        self._atoms: list[tuple[host.HostValue, tuple[float, ...]]] = []
        self._by_column: dict[tuple[float, ...], host.HostValue] = {}
        for atom in list_atoms(calls):
            values = [host.evaluate(atom, call) for call in calls]
            column = _near_all(values)
            if column is not None and len(set(column)) > 1 and column not in self._by_column:
                self._by_column[column] = atom
                self._atoms.append((atom, tuple(float(each) for each in values if each is not None)))

    def find(self, values: Sequence[host.Number]) -> host.HostValue | None:
        return next(self._find_all(tuple(map(float, values))), None)

    def _find_all(self, column: tuple[float, ...]) -> Iterator[host.HostValue]:
        found = self._look_up(column)
        if found is not None:
            yield found
        yield from self._with_constant(column)
        yield from self._of_two(column)
        yield from self._forward_of_two(column)
        for offset in _OFFSETS:
            moved = tuple(each - offset for each in column)
            for each in (*self._of_two(moved), *self._forward_of_two(moved)):
                yield _add_constant(each, offset)
        # What two atoms give over what is one less: the correction of a variance of so many elements
        counts = [round(each / (each - 1)) if each > 1 else 0 for each in column]
        if all(count > 1 and is_close(count / (count - 1), each) for count, each in zip(counts, column, strict=True)):
            whole = tuple(map(float, counts))
            yield from (_divide_by_rest(each, host.Constant(1)) for each in self._of_two(whole))
        yield from self._ratio_of_less(column)
        yield from self._share(column)
        yield from self._of_three(column)

    def _with_constant(self, column: tuple[float, ...]) -> Iterator[host.HostValue]:
        """An atom and a constant."""
        for offset in _OFFSETS:
            found = self._look_up([each - offset for each in column])
            if found is not None:
                yield _add_constant(found, offset)
        for factor in _FACTORS:
            found = self._look_up([each / factor for each in column])
            if found is not None:
                yield host.Apply("*", (host.Constant(factor), found))
        found = self._look_up([1 / each if each else None for each in column])
        if found is not None:
            yield host.Apply("/", (host.Constant(1), found))
        for offset in _OFFSETS[:2]:
            found = self._look_up([1 / each - offset if each else None for each in column])
            if found is not None:
                yield host.Apply("/", (host.Constant(1), _add_constant(found, offset)))
        found = self._look_up([1 - each for each in column])
        if found is not None:
            yield host.Apply("-", (host.Constant(1), found))
        for atom, given in self._atoms:
            if all(each == a // 2 for each, a in zip(column, given, strict=True)):
                yield host.Apply("quotient", (atom, host.Constant(2)))
            ratios = {_near(each / a) for each, a in zip(column, given, strict=True) if a}
            if len(ratios) == 1 and 0 not in given:
                ratio = _whole(ratios.pop())
                yield atom if ratio == 1 else host.Apply("*", (host.Constant(ratio), atom))
            yield from self._ratio_to_less(column, atom, given)

    def _ratio_to_less(
        self, column: tuple[float, ...], atom: host.HostValue, given: tuple[float, ...]
    ) -> Iterator[host.HostValue]:
        """An atom over what is left of it without another value, at least nothing: a correction."""
        pairs = list(zip(column, given, strict=True))
        less = {round(a - a / each, _CORRECTION_DIGITS) if each else None for each, a in pairs}
        constant = less.pop() if len(less) == 1 else None
        if constant and constant == int(constant):
            yield _divide_by_rest(atom, host.Constant(int(constant)))
        for scalar, numbers in self._atoms:
            if isinstance(scalar, host.Scalar) and all(
                a > c and is_close(a / (a - c), each) for (each, a), c in zip(pairs, numbers, strict=True)
            ):
                yield _divide_by_rest(atom, scalar)

    def _look_up(self, values: Sequence[float | None]) -> host.HostValue | None:
        column = _near_all(values)
        return self._by_column.get(column) if column else None

    def _of_two(self, column: tuple[float, ...]) -> Iterator[host.HostValue]:
        """Two atoms, the second of which is looked up."""
        for atom, given in self._atoms:
            for operator, inverse in _INVERSES:
                found = self._look_up([inverse(c, a) for c, a in zip(column, given, strict=True)])
                if found is not None:
                    yield host.Apply(operator, (atom, found))

    def _forward_of_two(self, column: tuple[float, ...]) -> Iterator[host.HostValue]:
        """Two atoms of an operation that forgets."""
        simple = self._atoms[:_MAX_PAIRED]
        for atom, left in simple:
            for other, right in simple:
                for operator, combine in _FORWARD:
                    if all(combine(a, b) == c for a, b, c in zip(left, right, column, strict=True)):
                        yield host.Apply(operator, (atom, other))

    def _ratio_of_less(self, column: tuple[float, ...]) -> Iterator[host.HostValue]:
        """The ratio of two atoms that are one less; half of an atom that is one less or more."""
        if all(each == int(each) for each in column):
            return
        for offset in _OFFSETS[:2]:
            found = self._look_up([2 * each - offset for each in column])
            if found is not None:
                yield host.Apply("/", (_add_constant(found, offset), host.Constant(2)))
        for atom, given in self._atoms[:_MAX_PAIRED]:
            divisors = [(a - 1) / c if c else 0.0 for a, c in zip(given, column, strict=True)]
            if all(is_close(float(round(each)), each) for each in divisors):
                found = self._look_up([round(each) + 1 for each in divisors])
                if found is not None:
                    yield host.Apply("/", (_add_constant(atom, -1), _add_constant(found, -1)))

    def _share(self, column: tuple[float, ...]) -> Iterator[host.HostValue]:
        """The difference of two scalars over an atom, or over one less."""
        scalars = [(atom, given) for atom, given in self._atoms if isinstance(atom, host.Scalar)]
        for atom, left in scalars:
            for other, right in scalars:
                difference = host.Apply("-", (atom, other))
                shares = [(a - b) / c if c else None for a, b, c in zip(left, right, column, strict=True)]
                for offset in (0, *_OFFSETS[:2]):
                    found = self._look_up([None if each is None else round(each) - offset for each in shares])
                    value = host.Apply("/", (difference, _add_constant(found, offset))) if found else None
                    if value and all(each is not None and is_close(round(each), each) for each in shares):
                        yield value

    def _of_three(self, column: tuple[float, ...]) -> Iterator[host.HostValue]:
        """Two atoms, and a third or a constant: of their product, or of one and twice the other."""
        simple = self._atoms[:_MAX_PAIRED]
        for i, (atom, left) in enumerate(simple):
            for other, right in simple[i:]:
                rest = [c - a * b for a, b, c in zip(left, right, column, strict=True)]
                product = host.Apply("*", (atom, other))
                if len(set(rest)) == 1 and abs(rest[0]) < 5 and rest[0] == int(rest[0]):
                    yield _add_constant(product, int(rest[0]))
                found = self._look_up(rest)
                if found is not None:
                    yield host.Apply("+", (product, found))
                found = self._look_up(
                    [c / (a * b) if a and b else None for a, b, c in zip(left, right, column, strict=True)]
                )
                if found is not None:
                    yield host.Apply("*", (product, found))
                share = [a * b / c if a and b and c else None for a, b, c in zip(left, right, column, strict=True)]
                found = self._look_up(share)
                if found is not None and found not in (atom, other):
                    yield host.Apply("/", (product, found))
        for atom, given in simple:
            for offset in (0, *_OFFSETS):
                rest = [c - offset - 2 * a for a, c in zip(given, column, strict=True)]
                found = self._look_up(rest)
                if found is not None:
                    twice = host.Apply("*", (host.Constant(2), atom))
                    yield _add_constant(host.Apply("+", (found, twice)), offset)


def _divide_by_rest(value: host.HostValue, taken: host.HostValue) -> host.HostValue:
    return host.Apply("/", (value, host.Apply("max", (host.Apply("-", (value, taken)), host.Constant(0)))))


def _whole(value: float) -> host.Number:
    return int(value) if value == int(value) else value


def _add_constant(value: host.HostValue, offset: int) -> host.HostValue:
    operator = "+" if offset > 0 else "-"
    return host.Apply(operator, (value, host.Constant(abs(offset)))) if offset else value


def list_fixed_sizes(calls: Sequence[host.Arguments]) -> list[host.HostValue]:
    """The sizes of arguments that are the same in all calls: a number equal to one may be it, or not."""
    sizes = [each for each in list_atoms(calls) if isinstance(each, (host.Size, host.Scalar))]
    return [each for each in sizes if len({host.evaluate(each, call) for call in calls}) == 1]
