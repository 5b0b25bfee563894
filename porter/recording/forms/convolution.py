"""Finds which convolution an operator is, or gradients of one: what all recorded calls return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, permutations
from typing import Any

import torch
from torch.nn.functional import pad

from porter.metal.forms.convolution import Convolution, Convolved
from porter.recording.calls import OpCall
from porter.recording.forms.agreement import (
    Results,
    count_elements,
    find_only,
    is_near_in_scale,
    read_types,
    tell_form,
    widen,
)
from porter.recording.runs import RecordedRun

_ASKED = 6  # calls of few elements, none of which a wrong way computes


def find_convolution(runs: Sequence[RecordedRun]) -> Convolution | None:
    """The convolution that computes every result of all calls; None if none does, or several do, or for few calls."""
    if not tell_form(runs, (1, 2)):
        return None
    count = max(place for run in runs for place in run.made) + 1
    smallest = sorted(runs, key=count_elements)[:_ASKED]
    fitting = (
        form
        for form in _list_convolutions(runs[0].call, count)
        if any(_computes(form, run, tuple(result.detach().cpu() for result in run.results)) for run in smallest)
    )
    return find_only(fitting, runs, _computes)


def _list_convolutions(call: OpCall, count: int) -> Iterator[Convolution]:
    """The convolutions that the arguments of a schema allow for: a tensor that a gradient is of has its shape."""
    types = read_types(call)
    if any(name not in types for name in Convolution.numbers):
        return
    tensors = [name for name, type_ in types.items() if type_ == "Tensor"]
    bias = "".join(name for name, type_ in types.items() if type_ == "Optional[Tensor]")
    for results in permutations(Convolved, count):
        for roles in permutations(Convolved, len(tensors)):
            lacking = set(Convolved) - set(roles)
            if lacking.issubset(results) and not (bias and results != (Convolved.OUTPUT,)):
                named = dict(zip(roles, tensors, strict=True))
                first, weight, output = (named.get(each, "") for each in Convolved)
                yield Convolution(first, weight, output, results, bias)


def _computes(form: Convolution, run: RecordedRun, results: Results) -> bool:
    if not run.made.keys() <= set(range(len(form.results))):
        return False
    try:
        return all(
            is_near_in_scale(convolve(form, form.results[place], run.given, run.call.arguments, result.shape), result)
            for place, result in zip(run.made, results, strict=True)
        )
    except (RuntimeError, IndexError):  # sizes that do not go with each other
        return False


def convolve(
    form: Convolution,
    computed: Convolved,
    tensors: Mapping[str, torch.Tensor],
    arguments: Mapping[str, Any],
    shape: Sequence[int],
) -> torch.Tensor:
    """What is computed, in double precision. Raises RuntimeError for sizes that do not go with each other.

    An output may have fewer elements than all windows: a transposed convolution leaves some of its input over.
    """
    names = {Convolved.INPUT: form.input, Convolved.WEIGHT: form.weight, Convolved.OUTPUT: form.output}
    operands = {role: widen(tensors[name]) for role, name in names.items() if role is not computed and name}
    zeros = torch.zeros(shape, dtype=torch.float64)
    first, weight = operands.get(Convolved.INPUT, zeros), operands.get(Convolved.WEIGHT, zeros)
    bias = widen(tensors[form.bias]) if form.bias in tensors else None
    padding, stride, dilation, groups = (arguments[name] for name in form.numbers)
    no_padding = [0] * len(padding)
    output = torch.convolution(first, weight, bias, stride, padding, dilation, False, no_padding, groups)
    if computed is Convolved.OUTPUT:
        return output[tuple(map(slice, shape))]
    gradient = operands[Convolved.OUTPUT]
    missing = [whole - size for whole, size in zip(output.shape, gradient.shape, strict=True)]
    gradient = pad(gradient, tuple(chain.from_iterable((0, size) for size in reversed(missing))))
    mask = [computed is Convolved.INPUT, computed is Convolved.WEIGHT, False]
    slopes: Sequence[torch.Tensor] = torch.ops.aten.convolution_backward(
        gradient, first, weight, None, stride, padding, dilation, False, no_padding, groups, mask
    )  # fmt: skip
    return slopes[0] if computed is Convolved.INPUT else slopes[1]
