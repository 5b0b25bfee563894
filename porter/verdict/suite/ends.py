"""Samples whose input has elements at the ends of its type: integers shifted there, floats that are not finite, and
zeros of either sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, turn_flags
from porter.verdict.suite.leaves import compute_unless_refused, put_on_meta, replace_input
from porter.verdict.suite.long_rows import ignores_order, keeps, put_ends, reduces
from porter.verdict.suite.transforms import mixes

FLAGGED = (torch.float32, torch.int64)


def list_all_ends(op: OpInfo, picked: Sequence[SampleInput], dtype: torch.dtype) -> Iterator[Varied]:
    """Samples at the ends of their type; then, of `FLAGGED` types, the first one with each flag turned over: where a
    sort descends, its NaN are compared in another way than where it ascends.
    """
    for sample in picked:
        yield from list_ends(op, sample)
    flagged = [turned for sample in picked[:1] if dtype in FLAGGED for turned in turn_flags(op, sample)]
    yield from ((f"{label}, {flag}", varied) for flag, sample in flagged for label, varied in list_ends(op, sample))


def list_ends(op: Callable[..., Any], sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with its input at the ends of its type, with names for messages, where no result is larger for it.

    Those that are not finite only where results keep the input's rows: what makes one element of a row has tests of its
    own.
    """
    if not isinstance(sample.input, torch.Tensor) or not sample.input.numel():
        return
    if sample.input.is_floating_point():
        yield from _list_not_finite(op, sample)
    elif not sample.input.is_complex() and sample.input.dtype != torch.bool and _tells_shapes(op, sample):
        yield from shift_to_ends(sample)


def shift_to_ends(sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with its input shifted so that its greatest element is the type's, then its least one.

    Elements differ by as much as before: in a floating type of as many bits they would be equal. Those without a sign
    are also about the middle of their type, from which on a sign makes them less than the others.
    """
    given, whole = sample.input.detach(), torch.iinfo(sample.input.dtype)
    yield "at the greatest integers", replace_input(sample, given - given.max() + whole.max)
    yield "at the least integers", replace_input(sample, given - given.min() + whole.min)
    if not whole.min:
        middle = whole.max // 2 - int(given.max() - given.min()) // 2
        yield "about the middle", replace_input(sample, given - given.min() + middle)


def _list_not_finite(op: Callable[..., Any], sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    result = compute_unless_refused(op, sample)
    if not keeps(result, sample):
        return
    yield "zeros of either sign", replace_input(sample, _alternate_zeros(sample.input.detach()))
    if reduces(result, sample) or mixes(op, sample):
        return
    turned = pytree.tree_leaves(compute_unless_refused(op, replace_input(sample, _turn(sample.input.detach()))))
    found = [(a, b) for a, b in zip(pytree.tree_leaves(result), turned, strict=False) if isinstance(a, torch.Tensor)]
    turns = bool(found) and all(a.shape == b.shape and torch.allclose(_turn(a), b, equal_nan=True) for a, b in found)
    yield from ((label, each) for label, each in put_ends(sample) if not turns or ignores_order(op, each))


def _alternate_zeros(tensor: torch.Tensor) -> torch.Tensor:
    """Zeros of which every second one has a sign, the first one too: they are all equal."""
    signs = torch.arange(tensor.numel()) % 2 * 2 - 1
    return torch.zeros(tensor.shape).copysign(signs.view(tensor.shape)).to(tensor.dtype)


def _turn(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.flip(tuple(range(tensor.ndim)))


def _tells_shapes(op: Callable[..., Any], sample: SampleInput) -> bool:
    """Whether the shapes of results do not follow from elements: a count of the greatest integer has no memory."""
    return compute_unless_refused(op, put_on_meta(sample)) is not None
