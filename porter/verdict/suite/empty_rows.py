"""Samples without elements in one dimension, of which an operator still makes some: a sum of nothing is zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.arguments import keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.leaves import change_tensors, compute, list_operands, list_tensors
from porter.verdict.suite.resizing import Tie, Way


def list_empty_rows(op: Callable[..., Any], sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """Those of which the CPU makes elements, with names for messages."""
    for label, emptied in keep_computed(stay_inside(op), empty_dimensions(sample)):
        if any(result.numel() for result in list_tensors(compute(op, emptied))):
            yield label, emptied


def empty_dimensions(sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with one dimension of the input empty, and of what has its shape, then of what goes with its sizes, as
    the target of a loss does; the CPU may refuse some of them.
    """
    if isinstance(sample.input, torch.Tensor) and sample.input.numel() and sample.input.layout is torch.strided:
        for dim in range(sample.input.ndim):
            alone = change_tensors(sample, partial(_empty, shape=sample.input.shape, dim=dim))
            yield f"no elements in dimension {dim}", alone
            tried = [_list_shapes(alone)]
            for tie in (Tie.FIRST, Tie.LAST):
                tied = Way(tie, changes_lists=False, spreads_indices=False).resize(sample, {dim: 0})
                if _list_shapes(tied) not in tried:
                    tried.append(_list_shapes(tied))
                    yield f"no elements in dimension {dim}, {tie.value}", tied


def has_other_bools(results: Any) -> bool:
    """Whether a result of bools has an element that is neither true nor false, as memory that nobody wrote may."""
    bools = (tensor.cpu() for tensor in list_tensors(results) if tensor.dtype is torch.bool)
    return any(bool((tensor.view(torch.uint8) > 1).any()) for tensor in bools)


def _list_shapes(sample: SampleInput) -> list[torch.Size]:
    return [leaf.shape for leaf in list_operands(sample)]


def _empty(tensor: torch.Tensor, shape: torch.Size, dim: int) -> torch.Tensor:
    return tensor.detach().narrow(dim, 0, 0).clone() if tensor.shape == shape else tensor
