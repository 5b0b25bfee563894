"""The tensors within a value, and among what an operator computes."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from porter.verdict.suite.refusals import REFUSALS

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import SampleInput


def list_tensors(value: Any) -> list[torch.Tensor]:
    """The tensors within tuples, lists and dictionaries, in order."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def list_operands(sample: SampleInput) -> list[torch.Tensor]:
    """All tensors of a sample."""
    return list_tensors((sample.input, sample.args, sample.kwargs))


def has_elements(value: Any) -> bool:
    """Whether a value is a tensor of at least one dimension, and not empty."""
    return isinstance(value, torch.Tensor) and value.ndim > 0 and value.numel() > 0


def compute_unless_refused(op: Callable[..., Any], sample: SampleInput) -> Any:
    """The CPU's results, or None where it refuses the sample, as it may of sizes that are not the OpInfo's."""
    try:
        return op(sample.input, *sample.args, **sample.kwargs)
    except REFUSALS:
        return None
