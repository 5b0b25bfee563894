"""Gradients of some operands: one alone, and all but one.

OpInfo's samples ask for all. A backward pass leaves out what nobody asks for, as the flags of an `output_mask` say:
`layer_norm_backward_mps` returned gradients of weight and bias that nobody wrote where the input needed none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.gradients import differentiate, run_forward
from porter.verdict.suite.indices import list_indices
from porter.verdict.suite.leaves import change_tensors, list_tensors
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.resizing import find_way
from porter.verdict.suite.slope_layouts import is_differentiated
from porter.verdict.suite.variations.choice import list_flags
from porter.verdict.suite.variations.variation import Expectation, Operators, Variation

_MOST = 4  # operands of which each is asked for alone
_SAMPLES = 2
_FLAGS = 2  # samples with other flags than those have


def list_asked(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """The samples of the most differentiable operands that require gradients of some only, if the CPU has those: the
    first of all, and those with other flags.
    """
    samples = [
        sample for sample in opinfos.reaching_samples(op, dtype, requires_grad=True) if len(list_operands(sample)) > 1
    ]
    samples.sort(key=lambda sample: (-len(list_operands(sample)), -_count_elements(sample)))
    first = samples[:_SAMPLES]
    unlike = {list_flags(sample): sample for sample in reversed(samples)}
    others = [sample for flags, sample in unlike.items() if flags not in map(list_flags, first)]
    for sample in (*first, *others[:_FLAGS]):
        for asked in list_choices(len(list_operands(sample))):
            varied = ask_for(sample, asked)
            if is_differentiated(op, varied, None):
                yield f"gradients of operands {', '.join(map(str, asked))} alone", varied


def list_operands(sample: SampleInput) -> list[torch.Tensor]:
    """The tensors of a sample that require a gradient."""
    return [leaf for leaf in list_tensors((sample.input, sample.args, sample.kwargs)) if leaf.requires_grad]


def list_choices(count: int) -> list[tuple[int, ...]]:
    """The first few of several operands, each alone, and each left out alone; none twice."""
    few = range(min(count, _MOST))
    others = [tuple(place for place in range(count) if place != left) for left in few]
    return list(dict.fromkeys([*((place,) for place in few), *others]))


def ask_for(sample: SampleInput, asked: Sequence[int]) -> SampleInput:
    """The sample with gradients of some of its differentiable operands, by their places among these."""
    places = iter(range(len(list_operands(sample))))

    def ask(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().requires_grad_(next(places) in asked) if tensor.requires_grad else tensor

    return change_tensors(sample, ask)


def _count_elements(sample: SampleInput) -> int:
    return sum(operand.numel() for operand in list_operands(sample))


ASKED_GRADIENTS = Variation(
    "slopes_of_some", list_asked, operators=Operators.ALL, expectation=Expectation.GRADIENTS, dtypes=(torch.float32,)
)


# Gradients of samples without elements in a dimension: a batch of none, and rows of none.
#
# The gradient of a weight is zero then, and memory that nobody wrote where a backward pass returns early:
# `batch_norm_backward` of an empty batch fills the gradients of weight and bias.


_EMPTY_SAMPLES, _MOST_EMPTY = 24, 8


def list_empty(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with one dimension of the input empty, and of what has its size, that the CPU differentiates: a few where
    a gradient or a result has elements.
    """
    samples = opinfos.reaching_samples(op, dtype, requires_grad=True)
    yield from islice((varied for sample in samples[:_EMPTY_SAMPLES] for varied in vary_sizes(op, sample)), _MOST_EMPTY)


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
