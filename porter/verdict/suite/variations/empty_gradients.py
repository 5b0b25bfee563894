"""Gradients of samples without elements in a dimension: a batch of none, and rows of none.

The gradient of a weight is zero then, and memory that nobody wrote where a backward pass returns early:
`batch_norm_backward` of an empty batch fills the gradients of weight and bias.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.gradients import differentiate, run_forward
from porter.verdict.suite.indices import list_indices
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.resizing import find_way
from porter.verdict.suite.variations.variation import Expectation, Operators, Variation

_SAMPLES, _MOST = 24, 8


def list_empty(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with one dimension of the input empty, and of what has its size, that the CPU differentiates: a few where
    a gradient or a result has elements.
    """
    samples = opinfos.reaching_samples(op, dtype, requires_grad=True)
    yield from islice((varied for sample in samples[:_SAMPLES] for varied in vary_sizes(op, sample)), _MOST)


def vary_sizes(op: OpInfo, sample: SampleInput) -> Iterator[Varied]:
    """Yields the sample without elements in each dimension of its input, where no index is left to name one of them."""
    if isinstance(sample.input, torch.Tensor) and sample.input.numel() and sample.input.layout is torch.strided:
        tried = ((f"no elements in dimension {dim}", empty(op, sample, dim)) for dim in range(sample.input.ndim))
        varied = [(label, each) for label, each in tried if each and not list_indices(each)]
        kept = keep_computed(partial(differentiate, op), varied)
        yield from ((label, each) for label, each in kept if makes_elements(op, each))


def empty(op: OpInfo, sample: SampleInput, dim: int) -> SampleInput | None:
    """The sample with no elements in a dimension, as the CPU takes it with other sizes; None if it takes none."""
    way = find_way(op, sample, [dim])
    return None if way is None else replace(way, spreads_indices=False).resize(sample, {dim: 0})


def makes_elements(op: OpInfo, sample: SampleInput) -> bool:
    """Whether a differentiable result has elements, or an operand that it is differentiated by."""
    return any(tensor.numel() for tensors in run_forward(op, sample) for tensor in tensors)


EMPTY_GRADIENTS = Variation(
    "slopes_of_no_elements",
    list_empty,
    operators=Operators.STRUCTURED,
    expectation=Expectation.GRADIENTS,
    dtypes=(torch.float32,),
)
