"""Samples with one tensor a little smaller than it was, where the operator allows that.

A kernel that goes over the sizes of one operand and reads another by them is right where both are of one size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import keep_computed
from porter.verdict.suite.kept_outcomes import on_cpu
from porter.verdict.suite.leaves import compute, list_operands, list_tensors


def cut_operands(sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """Yields the sample with one tensor without the last of a dimension, with a name for messages; the CPU may refuse
    some of them.

    Only of several tensors: what one alone has, others tests vary.
    """
    count = len(list_operands(sample))
    for at, tensor in enumerate(list_operands(sample) if count > 1 else ()):
        for dim, size in enumerate(tensor.shape):
            if size > 2:  # statistics of one element are rounding
                yield f"tensor {at} cut in dimension {dim}", sample.transform(_Cut(at, dim, size - 1))


def list_expanded(op: Callable[..., Any], sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """Those with one tensor that has one element in a dimension, which the CPU expands: results keep their shapes."""
    tensors = list_operands(sample)
    varied = [
        (f"tensor {at} expanded in dimension {dim}", sample.transform(_Cut(at, dim, 1)))
        for at, tensor in enumerate(tensors if len(tensors) > 1 else ())
        for dim, size in enumerate(tensor.shape)
        if size > 1
    ]
    kept = list(keep_computed(stay_inside(op), varied))
    shapes = _list_shapes(op, sample) if kept else []
    yield from ((label, each) for label, each in kept if _list_shapes(op, each) == shapes)


def _list_shapes(op: Callable[..., Any], sample: SampleInput) -> list[torch.Size]:
    """The shapes of what the CPU makes of a sample."""
    return [each.shape for each in list_tensors(compute(op, sample))]


@dataclass
class _Cut:
    """Cuts the n-th tensor that it is called with."""

    at: int
    dim: int
    size: int

    def __call__(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        self.at -= 1
        if self.at != -1:
            return value
        return value.detach().narrow(self.dim, 0, self.size).clone()


def stay_inside(op: Callable[..., Any]) -> Callable[..., Any]:
    """The operator on the CPU, with a ValueError where it reaches beyond its operands; not all kernels check sizes.

    It reads there if its results, or what it writes to operands, depend on what lies beyond. `batch_norm` updates as
    many elements of a running mean as the input has channels (aten/src/ATen/native/Normalization.cpp).
    """

    return partial(_call_inside, op)


@on_cpu
def _call_inside(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    outcomes = [_run_within(op, margins, args, kwargs) for margins in (Margins(), Margins(plain=True))]
    if any(outcome is None for outcome in outcomes) or not _are_equal(*outcomes):
        raise ValueError("reaches beyond its operands")
    return outcomes[0][0]


def reaches_beyond(op: Callable[..., Any], sample: SampleInput) -> bool:
    """Whether the CPU reaches beyond the operands of a sample, asked in a child process: its results are those of no
    call. What differs from run to run for the same memory beyond the operands does not tell.
    """
    return any(True for _ in keep_computed(partial(_call_beyond, op), [("", sample)]))


@on_cpu
def _call_beyond(op: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    every = (Margins(), Margins(plain=True), Margins())
    outcomes = [_run_within(op, margins, args, kwargs) for margins in every]
    is_inside = all(outcome is not None for outcome in outcomes)
    if is_inside and (_are_equal(*outcomes[:2]) or not _are_equal(*outcomes[::2])):
        raise ValueError("stays within its operands, as far as can be told")


def _run_within(op: Callable[..., Any], margins: Margins, args: Any, kwargs: Any) -> Any:
    """What an operator returns, and its operands after that; None if it wrote beyond them."""
    placed = pytree.tree_map_only(torch.Tensor, margins.place, (args, kwargs))
    result = op(*placed[0], **placed[1])
    return (result, placed) if margins.are_intact() else None


def _are_equal(one: Any, other: Any) -> bool:
    pairs = list(zip(pytree.tree_leaves(one), pytree.tree_leaves(other), strict=True))
    return all(torch.allclose(a, b, equal_nan=True) for a, b in pairs if isinstance(a, torch.Tensor))


_MARGIN = 4096  # elements on either side


@dataclass
class Margins:
    """The memory of the tensors of one call.

    What a kernel computes from NaN beyond a tensor and writes there is NaN again, so that nothing seems to be written:
    `plain` margins are of ones, or of zeros for bools.
    """

    plain: bool = False
    _wholes: list[tuple[torch.Tensor, int]] = field(default_factory=list)

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """A contiguous copy with margins: plain ones, or of NaN, and for other types of their greatest number."""
        count = prod(tensor.shape)
        whole = torch.full((count + 2 * _MARGIN,), self._fill(tensor.dtype), dtype=tensor.dtype)
        placed = whole[_MARGIN : _MARGIN + count].view(tensor.shape)
        placed.copy_(tensor)
        self._wholes.append((whole, count))
        return placed

    def are_intact(self) -> bool:
        """Whether nothing was written beyond a tensor."""
        return all(self._is_filled(side) for whole, count in self._wholes for side in _sides(whole, count))

    def _fill(self, dtype: torch.dtype) -> float | int | bool:
        return dtype is not torch.bool if self.plain else _filling(dtype)

    def _is_filled(self, side: torch.Tensor) -> bool:
        has_nan = not self.plain and (side.is_floating_point() or side.is_complex())
        return bool((side.isnan() if has_nan else side == self._fill(side.dtype)).all())


def has_nan(result: Any) -> bool:
    """Whether a result has NaN, which a kernel may have read beyond its operands."""
    found = list_tensors(result)
    return any(bool(each.isnan().any()) for each in found if each.is_floating_point() or each.is_complex())


def _sides(whole: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    return whole[:_MARGIN], whole[_MARGIN + count :]


def _filling(dtype: torch.dtype) -> float | int | bool:
    if dtype.is_floating_point or dtype.is_complex:
        return float("nan")
    return True if dtype is torch.bool else torch.iinfo(dtype).max
