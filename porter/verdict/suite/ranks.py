"""Samples with a dimension more than OpInfo gives: a wrong stride of the third is right where there are two."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput

MOST = 2  # dimensions of a sample that gets another


def add_dimensions(sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """Yields the sample with another first or last dimension, with names for messages; the CPU may refuse either.

    Tensors beside the input that have as many dimensions get one with it. What has no elements has no strides to be
    wrong.
    """
    if not isinstance(sample.input, torch.Tensor) or not 0 < sample.input.ndim <= MOST or not sample.input.numel():
        return
    for name, at in (("first", 0), ("last", sample.input.ndim)):
        yield f"another {name} dimension", sample.transform(partial(_stack, rank=sample.input.ndim, at=at))


def _stack(value: Any, rank: int, at: int) -> Any:
    """A tensor of this rank and what it is turned around, so that both parts have elements that an operator takes."""
    if not isinstance(value, torch.Tensor) or value.ndim != rank or value.layout is not torch.strided:
        return value
    given = value.detach()
    return torch.stack([given, given.flip(tuple(range(rank)))], at)
