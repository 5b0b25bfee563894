"""Samples whose sizes and numbers can be replaced."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils import _pytree as pytree

_TINY = 1e-3


@dataclass(frozen=True, order=True)
class Slot:
    """A number of a sample that can vary: the size of a tensor's dimension, or an integer (`dim` is -1)."""

    leaf: int
    dim: int


Sizes = Mapping[Slot, int]
Memory = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class Template:
    """A sample's leaves, which new ones are made of; `slopes` are the places of those that gradients are taken of.

    `has_nan` is whether the sample itself gives NaN.
    """

    leaves: tuple[Any, ...]
    spec: pytree.TreeSpec
    slopes: frozenset[int] = frozenset()
    has_nan: bool = False

    @classmethod
    def of(cls, sample: SampleInput) -> Template:
        leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        slopes = frozenset(i for i, each in enumerate(leaves) if isinstance(each, torch.Tensor) and each.requires_grad)
        return cls(tuple(each.detach() if isinstance(each, torch.Tensor) else each for each in leaves), spec, slopes)

    @property
    def rank(self) -> int:
        """The most dimensions of a tensor."""
        return max((each.ndim for each in self.leaves if isinstance(each, torch.Tensor)), default=0)

    def sizes(self) -> dict[Slot, int]:
        """The numbers that may vary, as they are."""
        found: dict[Slot, int] = {}
        for at, leaf in enumerate(self.leaves):
            if isinstance(leaf, torch.Tensor):
                found |= {Slot(at, dim): size for dim, size in enumerate(leaf.shape)}
            elif isinstance(leaf, int) and not isinstance(leaf, bool) and leaf:
                found[Slot(at, -1)] = leaf
        return found

    def resize(self, sizes: Sizes) -> Template:
        """The template with these sizes as its own."""
        leaves = tuple(self._make_leaf(at, leaf, sizes, False, 1.0) for at, leaf in enumerate(self.leaves))
        return replace(self, leaves=leaves)

    def make(
        self, sizes: Sizes, requires_grad: bool = False, factor: float = 1.0, memory: Memory | None = None
    ) -> SampleInput:
        """A sample with these sizes, whose elements are like the original's; other numbers are multiplied.

        `memory` places tensors.
        """
        leaves = [self._make_leaf(at, leaf, sizes, requires_grad, factor) for at, leaf in enumerate(self.leaves)]
        if memory is not None:
            leaves = [memory(each) if isinstance(each, torch.Tensor) else each for each in leaves]
        given, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return SampleInput(given, args=args, kwargs=kwargs)

    def _make_leaf(self, at: int, leaf: Any, sizes: Sizes, requires_grad: bool, factor: float) -> Any:
        if isinstance(leaf, torch.Tensor):
            shape = [sizes.get(Slot(at, dim), size) for dim, size in enumerate(leaf.shape)]
            made = _fill_like(leaf, shape)
            return made.requires_grad_(requires_grad and at in self.slopes)
        return _scale(leaf, factor) if isinstance(leaf, float) else sizes.get(Slot(at, -1), leaf)


def count_elements(sample: SampleInput) -> int:
    """The elements of all tensors of a sample."""
    leaves = pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    return sum(each.numel() for each in leaves if isinstance(each, torch.Tensor))


def _scale(value: float, factor: float) -> float:
    """Another number; of one that is almost 0, a larger one: cache keys of host code have six decimals of it."""
    is_tiny = 0 < abs(value) < _TINY and factor != 1
    return math.copysign(factor / 8, value) if is_tiny else value * factor


def _fill_like(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Elements from the range of a tensor's; of one that is not floating-point, some of its own."""
    if not tensor.numel():
        return torch.zeros(list(shape), dtype=tensor.dtype)
    if tensor.is_floating_point():
        low, high = float(tensor.min()), float(tensor.max())
        return torch.rand(list(shape), dtype=torch.float64).mul(high - low).add(low).to(tensor.dtype)
    same = torch.Generator().manual_seed(sum(size * 31**i for i, size in enumerate(shape)))  # as when it was tried
    return tensor.flatten()[torch.randint(tensor.numel(), list(shape), generator=same)]
