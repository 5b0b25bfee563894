"""Lists of numbers the other way round, and images of more rows: of windows of 3 by 2 with dilations of 1 by 2 none has
rows apart, and none of height 4 ends past the padding.

OpInfo's lists of strides, paddings and dilations have one order all through, so that what a kernel does with one number
beside another in the height it is asked of the width alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.gradients import differentiate
from porter.verdict.suite.leaves import list_passed, list_tensors, replace_arguments, replace_input
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.choice import varies_in
from porter.verdict.suite.variations.variation import Expectation, Variation

_MOST = 12  # samples, that differ in what is no tensor or flag
_MOST_ELEMENTS = 1 << 12
_IMAGES = (3, 4, 5)  # dimensions


def list_turned(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with all of their lists the other way round, where the CPU computes that."""
    yield from keep_computed(stay_inside(op), choose_turned(opinfos, op, dtype))


def list_turned_slopes(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """The same that the CPU differentiates: of what gradients alone call."""
    if opinfos.context.through_backward:
        turned = choose_turned(opinfos, op, dtype, requires_grad=True)
        yield from keep_computed(partial(differentiate, op), turned)


def choose_turned(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, requires_grad: bool = False) -> list[Varied]:
    """A few samples that differ from each other in lists and numbers, each with every list turned, or of an image alone
    with more rows.
    """
    if not varies_in(opinfos, op, dtype):
        return []
    turned: dict[str, Varied] = {}
    higher: dict[str, Varied] = {}
    for sample in opinfos.reaching_samples(op, dtype, requires_grad):
        if isinstance(sample.input, torch.Tensor) and 0 < sample.input.numel() <= _MOST_ELEMENTS and _has_list(sample):
            if any(map(_is_ordered, (*sample.args, *sample.kwargs.values()))):
                label = f"lists turned: {_describe(_turn(sample))}"
                turned.setdefault(label, (label, _turn(sample)))
            if sample.input.ndim in _IMAGES and not list_tensors((sample.args, sample.kwargs)):
                label = f"a row more: {_describe(sample)}"
                higher.setdefault(label, (label, _add_row(sample)))
    return [varied for unlike in (turned, higher) for varied in list(unlike.values())[:: len(unlike) // _MOST + 1]]


def _add_row(sample: SampleInput) -> SampleInput:
    image = sample.input.detach()
    taller = torch.cat([image, image.flip(-2)[..., :1, :]], -2).requires_grad_(sample.input.requires_grad)
    return replace_input(sample, taller)


def _turn(sample: SampleInput) -> SampleInput:
    return replace_arguments(sample, {place: _reverse(value) for place, value in list_passed(sample)})


def _reverse(value: Any) -> Any:
    return type(value)(value[::-1]) if _is_ordered(value) else value


def _has_list(sample: SampleInput) -> bool:
    return any(isinstance(value, (list, tuple)) for value in (*sample.args, *sample.kwargs.values()))


def _is_ordered(value: Any) -> bool:
    """Whether a value is a list of whole numbers that is another one if it is turned."""
    if not isinstance(value, (list, tuple)) or not all(type(number) is int for number in value):
        return False
    return list(value) != list(value[::-1])


def _describe(sample: SampleInput) -> str:
    """The numbers and lists of a sample."""
    named = [*enumerate(sample.args), *sorted(sample.kwargs.items())]
    kept = {place: value for place, value in named if not isinstance(value, (bool, str)) and not list_tensors(value)}
    return ", ".join(f"{place}={value}" for place, value in kept.items())


TURNED_LISTS = Variation("turned_lists", list_turned)
SLOPES_BY_TURNED_LISTS = Variation("slopes_by_turned_lists", list_turned_slopes, expectation=Expectation.GRADIENTS)
