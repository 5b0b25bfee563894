"""Whether kernels compute indices in 32 bits: tensors have to be small, and whole numbers that callers choose too.

Source: ATen/native/CanUse32BitIndexMath.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from porter.loops.host_values import Binary, HostValue, Named, Operator, list_scalars

_INDICES = ("int", "SymInt")


def write_fits(tensors: Sequence[str], numbers: Sequence[str], largest: str = "") -> str:
    """The condition as C++: what is added to a number still fits where tensors have less than half of the range."""
    tests = [f"canUse32BitIndexMath({each}{f', {largest}' if largest else ''})" for each in dict.fromkeys(tensors)]
    ranges = [f"{each} >= INT_MIN / 2 && {each} <= INT_MAX / 2" for each in dict.fromkeys(numbers)]
    return " && ".join((*tests, *ranges))


def list_chosen(numbers: Sequence[Named], types: Mapping[str, str]) -> list[Named]:
    """The whole numbers that follow from arguments of a schema's `types` which no size of a tensor limits.

    What an argument is multiplied with is a size or a stride, and so is the product.
    """
    factors = {name for each in numbers for name in _list_factors(each.value)}
    found = []
    for number in (each for each in numbers if isinstance(each.example, int)):
        names = [each.name for each in list_scalars(number.value)]
        if any(types.get(each) in _INDICES and each not in factors for each in names):
            found.append(number)
    return found


def _list_factors(value: HostValue) -> Iterator[str]:
    if isinstance(value, Binary):
        parts = (value.left, value.right)
        if value.operator is Operator.MULTIPLY:
            yield from (each.name for part in parts for each in list_scalars(part))
        for part in parts:
            yield from _list_factors(part)
