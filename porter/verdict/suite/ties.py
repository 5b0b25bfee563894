"""Positions of equal elements: where the CPU keeps no order among them, each position of such an element is right.

ATen's CPU takes a maximum by position among equal elements, and sorts so if that is to be stable; its topk leaves them
as std::partial_sort does. Whether positions have that order shows in the CPU's result itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch


def take_positions(source: torch.Tensor, got: Sequence[torch.Tensor], want: Sequence[torch.Tensor]) -> bool:
    """Whether the positions of `got` are as right as those of `want`, which keep no order among equal elements.

    Both are elements of `source` along a dimension, and where these were: int64, of one shape. A right position names
    an element equal to the one that `want` names, and no other of its row is the same.
    """
    alike = [a.shape == b.shape and a.dtype == b.dtype for a, b in zip(got, want, strict=False)]
    if len(got) != 2 or len(want) != 2 or not all(alike):
        return False
    values, positions = want
    fitting = [d for d in _list_dimensions(source, positions) if _name(source, positions, values, d)]
    return any(not _keep_order(source, positions, d) and _name(source, got[1], values, d) for d in fitting)


def _list_dimensions(source: torch.Tensor, positions: torch.Tensor) -> Iterator[int]:
    """The dimensions that positions may be along: all others have the source's sizes."""
    if positions.dtype is not torch.int64 or positions.ndim != source.ndim or not positions.numel():
        return
    for d in range(source.ndim):
        if all(positions.shape[e] == source.shape[e] for e in range(source.ndim) if e != d):
            yield d


def _name(source: torch.Tensor, positions: torch.Tensor, values: torch.Tensor, dim: int) -> bool:
    """Whether positions are those of these values, each of another element of its row."""
    if int(positions.min()) < 0 or int(positions.max()) >= source.shape[dim]:
        return False
    distinct = bool((positions.sort(dim).values.diff(dim=dim) != 0).all())
    return distinct and bool(_are_equal(source.take_along_dim(positions, dim), values).all())


def _keep_order(source: torch.Tensor, positions: torch.Tensor, dim: int) -> bool:
    """Whether, of equal elements, positions name the first ones, in order."""
    ranks = _count_equal_before(source, dim).take_along_dim(positions, dim)
    return bool((ranks == _count_equal_before(source.take_along_dim(positions, dim), dim)).all())


def _count_equal_before(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """How many elements before one in its row equal it."""
    ordered, order = tensor.movedim(dim, -1).sort(dim=-1, stable=True)
    at = torch.arange(ordered.shape[-1]).expand(ordered.shape)
    is_first = torch.ones(ordered.shape, dtype=torch.bool)
    is_first[..., 1:] = ~_are_equal(ordered[..., 1:], ordered[..., :-1])
    starts = torch.where(is_first, at, 0).cummax(-1).values
    return torch.zeros_like(order).scatter(-1, order, at - starts).movedim(-1, dim)


def _are_equal(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a == b) | ((a != a) & (b != b))
