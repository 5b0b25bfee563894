"""Elements whose products neither vanish nor overflow, however many there are.

The product of a few hundred of OpInfo's elements is zero: a kernel that loses any of the others passes for right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.leaves import compute_unless_refused, list_tensors, replace_input
from porter.verdict.suite.samples import copy_sample

_FEW, _FEW_OF_HALVES = 120, 14  # no power of two with so large an exponent is out of range
_EQUAL = 8  # such elements after each other
_ODD = (3, -1, 5, -3, 7, 11)  # of integers, which overflow: no product of odd ones is zero


def multiplies(op: Callable[..., Any], sample: SampleInput) -> bool:
    """Whether the CPU multiplies elements of the sample's input with each other: f(a) f(b) is f(ab), where all elements
    are one number, and f of two is more than two.

    That is no more than two of a maximum, and no product of a sum.
    """
    source = sample.input
    if not isinstance(source, torch.Tensor) or source.dtype is torch.bool or source.is_complex() or not source.numel():
        return False
    numbers = (2.0, 0.5, 1.0) if source.is_floating_point() else (2, 3, 6)
    filled = (replace_input(copy_sample(sample), torch.full_like(source.detach(), number)) for number in numbers)
    results = [list_tensors(compute_unless_refused(op, each)) for each in filled]
    if not all(results) or len(set(map(len, results))) > 1:
        return False
    one, other, both = (several[0] for several in results)
    is_product = one.shape == other.shape == both.shape and torch.equal(one * other, both)
    if not is_product or not bool(one.isfinite().all()) or not bool((one.double() > 2).any()):
        return False
    return _combines(op, sample)


def _combines(op: Callable[..., Any], sample: SampleInput) -> bool:
    """Whether an element changes results beside its own: that of a square does not, and a matrix of powers has more
    results than elements.
    """
    ones = torch.ones_like(sample.input.detach(), memory_format=torch.contiguous_format)
    changed = ones.clone()
    changed.view(-1)[0] = 2
    before, after = (
        list_tensors(compute_unless_refused(op, replace_input(copy_sample(sample), x))) for x in (ones, changed)
    )
    if not before or not after or before[0].shape != after[0].shape:
        return False
    fewer = before[0].numel() < ones.numel()
    return fewer or (before[0].numel() == ones.numel() and int((before[0] != after[0]).sum()) > 1)


def make_factors(tensor: torch.Tensor) -> torch.Tensor:
    """Elements for a tensor of which no product vanishes or overflows, whichever of them it has, in whatever order.

    Floating ones are of either sign, and but for a few, which are two or a half, they are ones: products are exact.
    Half of these few are at corners, so that the first and the last row along each dimension have one. The others are
    spread over the tensor.
    """
    count = tensor.numel()
    generator = torch.Generator().manual_seed(0)

    def choose(numbers: Sequence[float], size: int) -> torch.Tensor:
        return torch.tensor(numbers)[torch.randint(len(numbers), (size,), generator=generator)]

    if not tensor.is_floating_point():
        return choose(_ODD, count).to(tensor.dtype).view(tensor.shape)
    factors = choose((1.0, -1.0), count)
    few = min(count, _FEW_OF_HALVES if tensor.dtype is torch.float16 else _FEW)
    corners = torch.tensor([*islice(_list_corners(tensor.shape), (few + 1) // 2)], dtype=torch.int64)
    others = few - len(corners)
    spread = (torch.arange(others) + torch.rand(others, generator=generator)).mul_(count / max(others, 1)).long()
    # Neighbors are equal: the product of a few that are lost is not one.
    exponents = 1 - 2 * (torch.arange(few) // _EQUAL % 2)
    factors[torch.cat([corners, spread.clamp_(max=count - 1)])] *= torch.exp2(exponents)
    return factors.to(tensor.dtype).view(tensor.shape)


def _list_corners(shape: Sequence[int]) -> Iterator[int]:
    """The places of the elements that are last or first in each dimension: one, then the one across from it."""
    listed = set[int]()
    for corner in product(*({size - 1: None, 0: None} for size in shape)):
        across = (size - 1 - at for at, size in zip(corner, shape, strict=True))
        for places in (corner, across):
            place = 0
            for at, size in zip(places, shape, strict=True):
                place = place * size + at
            if place not in listed:
                listed.add(place)
                yield place


def keep_products(op: Callable[..., Any], sample: SampleInput, resized: SampleInput) -> SampleInput:
    """A sample that has been resized, with such elements where the one that it was made of is multiplied, and
    no gradient is asked for.
    """
    if resized.input.requires_grad or not resized.input.is_floating_point() or not multiplies(op, sample):
        return resized
    return replace_input(resized, make_factors(resized.input))
