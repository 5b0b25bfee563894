"""Gradients that come in, and operands to differentiate by, in other memory layouts.

The gradient of a sum is one element that is expanded, that of a transposed result is transposed. A layout changes no
result, so that what is right is the CPU's for dense memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.gradients import make_seeds, run_forward
from porter.verdict.suite.layouts import LAYOUTS, Transform, expand, make_dense, put_channels_last
from porter.verdict.suite.leaves import change_tensors
from porter.verdict.suite.refusals import REFUSALS

Seeds = list[torch.Tensor]


def expand_one(tensor: torch.Tensor) -> torch.Tensor:
    """One element in all places, as the gradient of a sum has it."""
    return tensor.flatten()[:1].view([1] * tensor.ndim).expand(tensor.shape) if tensor.numel() else tensor


def expand_first(tensor: torch.Tensor) -> torch.Tensor:
    """The first of the outermost dimension in all places of it."""
    return tensor[:1].expand(tensor.shape) if tensor.ndim and len(tensor) else tensor


OPERANDS = {
    **{name: change for name, change in LAYOUTS.items() if change is not expand},
    "channels last": put_channels_last,
}
SEEDS = {
    **LAYOUTS,
    "channels last": put_channels_last,
    "expanded from one element": expand_one,
    "expanded in the first dimension": expand_first,
}


def vary_seeds(op: OpInfo, sample: SampleInput) -> Iterator[tuple[str, Seeds]]:
    """Gradients of a sample's results in each other layout that the CPU takes, with names for messages."""
    dense = make_seeds(run_forward(op, sample)[0])
    for name, change in SEEDS.items():
        seeds = [change(each) for each in dense]
        if any(map(_differ, seeds, dense)) and is_differentiated(op, sample, seeds):
            yield name, seeds


def vary_operands(op: OpInfo, sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with all tensors in each other layout of the same elements in which the CPU differentiates it.

    Of elements that are expanded to equal ones, an operator that picks some may pick others than the CPU.
    """
    for name, change in OPERANDS.items():
        varied = change_tensors(sample, partial(_change_leaf, change=change))
        if _has_other_layout(sample, varied) and is_differentiated(op, varied, None):
            yield name, varied


def make_dense_leaves(sample: SampleInput) -> SampleInput:
    """The sample with the same elements in dense memory."""
    return change_tensors(sample, partial(_change_leaf, change=make_dense))


def _has_other_layout(sample: SampleInput, varied: SampleInput) -> bool:
    leaves = zip(*(pytree.tree_leaves((each.input, each.args, each.kwargs)) for each in (sample, varied)), strict=True)
    return any(_differ(one, other) for one, other in leaves if _is_strided(one))


def _differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (one.stride(), one.storage_offset()) != (other.stride(), other.storage_offset())


def is_differentiated(op: OpInfo, sample: SampleInput, seeds: Seeds | None) -> bool:
    """Whether the CPU has gradients of a sample, and does not refuse to make them."""
    try:
        outputs, inputs = run_forward(op, sample)
        torch.autograd.grad(outputs, inputs, seeds or make_seeds(outputs), allow_unused=True)
    except REFUSALS:
        return False
    return bool(outputs)


def _change_leaf(value: torch.Tensor, change: Transform) -> torch.Tensor:
    return change(value.detach()).requires_grad_(value.requires_grad) if _is_strided(value) else value


def _is_strided(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided
