"""The tensors within a value, the arguments of a sample, and samples with some of them changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.refusals import REFUSALS

Place = int | str  # of an argument: its position after the input, or its name


def list_tensors(value: Any) -> list[torch.Tensor]:
    """The tensors within tuples, lists and dictionaries, in order."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def list_operands(sample: SampleInput) -> list[torch.Tensor]:
    """All tensors of a sample."""
    return list_tensors((sample.input, sample.args, sample.kwargs))


def has_elements(value: Any) -> bool:
    """Whether a value is a tensor of at least one dimension, and not empty."""
    return isinstance(value, torch.Tensor) and value.ndim > 0 and value.numel() > 0


def compute(op: Callable[..., Any], sample: SampleInput) -> Any:
    """What an operator returns for a sample."""
    return op(sample.input, *sample.args, **sample.kwargs)


def compute_unless_refused(op: Callable[..., Any], sample: SampleInput) -> Any:
    """The CPU's results, or None where it refuses the sample, as it may of sizes that are not the OpInfo's."""
    try:
        return compute(op, sample)
    except REFUSALS:
        return None


def list_passed(sample: SampleInput) -> list[tuple[Place, Any]]:
    """The arguments after the input that a sample gives."""
    return [*enumerate(sample.args), *sample.kwargs.items()]


def read_argument(sample: SampleInput, place: Place) -> Any:
    """The argument of a sample at a place."""
    return sample.args[place] if isinstance(place, int) else sample.kwargs[place]


def replace_arguments(sample: SampleInput, others: Mapping[Place, Any]) -> SampleInput:
    """The sample with other arguments at some places, or another `input`."""
    named = {place: value for place, value in others.items() if isinstance(place, str) and place != "input"}
    args = tuple(others.get(at, value) for at, value in enumerate(sample.args))
    return SampleInput(others.get("input", sample.input), args=args, kwargs={**sample.kwargs, **named})


def replace_argument(sample: SampleInput, place: Place, value: Any) -> SampleInput:
    """The sample with another argument at a place, or another `input`."""
    return replace_arguments(sample, {place: value})


def replace_input(sample: SampleInput, value: Any) -> SampleInput:
    """The sample with another input."""
    return replace_arguments(sample, {"input": value})


def change_tensors(sample: SampleInput, change: Callable[[torch.Tensor], Any]) -> SampleInput:
    """The sample with all of its tensors changed, in the order of the arguments."""
    changed: SampleInput = sample.transform(lambda leaf: change(leaf) if isinstance(leaf, torch.Tensor) else leaf)
    return changed


def put_on_meta(sample: SampleInput) -> SampleInput:
    """The sample without memory: ATen tells of it what shapes results have, and runs no code of the fork."""
    return change_tensors(sample, lambda tensor: tensor.detach().to("meta"))
