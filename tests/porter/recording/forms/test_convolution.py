"""Which convolution an operator is, or gradients of one, is found from what its calls return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

from porter.core.dtypes import FLOAT
from porter.metal.forms.convolution import Convolution, Convolved
from porter.recording.calls import OpCall
from porter.recording.forms.algebra import convolve, find_convolution
from porter.recording.runs import RecordedRun

aten = torch.ops.aten
FOUND = {
    "_mps_convolution": Convolution("self", "weight", "", (Convolved.OUTPUT,), "bias", dtypes=(FLOAT,)),
    "_mps_convolution_transpose": Convolution("", "weight", "self", (Convolved.INPUT,), dtypes=(FLOAT,)),
    "mps_convolution_backward": Convolution(
        "self", "weight", "grad_output", (Convolved.INPUT, Convolved.WEIGHT), dtypes=(FLOAT,)
    ),
    "mps_convolution_transpose_backward": Convolution(
        "grad_output", "weight", "self", (Convolved.OUTPUT, Convolved.WEIGHT), dtypes=(FLOAT,)
    ),
}


def list_runs(name: str) -> Iterator[RecordedRun]:
    """Calls of an operator that no CPU has, with results that float64 gives."""
    form, overload = FOUND[name], getattr(aten, name).default
    for size, stride, groups, has_all in product((7, 10), (1, 2), (1, 2), (True, False)):
        numbers: dict[str, Any] = {"padding": [1, 0], "stride": [stride, 1], "dilation": [1, 2], "groups": groups}
        first, weight = torch.randn(2, 4, size, 8), torch.randn(6, 4 // groups, 3, 2)
        whole = torch.convolution(first, weight, None, [stride, 1], [1, 0], [1, 2], False, [0, 0], groups)
        output = torch.randn_like(whole)
        tensors = {form.input: first, form.weight: weight, form.output: output, form.bias: torch.randn(6)}
        shapes = {Convolved.INPUT: first.shape, Convolved.WEIGHT: weight.shape, Convolved.OUTPUT: output.shape}
        passed = {each.name: tensors[each.name] for each in overload._schema.arguments if each.name in tensors}
        places = range(len(form.results)) if has_all else range(1)
        results = tuple(
            convolve(form, form.results[i], passed, numbers, shapes[form.results[i]]).float() for i in places
        )
        yield RecordedRun(OpCall(overload, {**passed, **numbers}), passed, (), results, False, tuple(places))


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    assert find_convolution(list(list_runs(name))) == FOUND[name]


def test_results_of_other_sums_are_no_convolution() -> None:
    runs = [replace(run, results=(run.results[0] + 1,)) for run in list_runs("_mps_convolution")]
    assert find_convolution(runs) is None


def test_an_output_may_have_fewer_elements_than_windows() -> None:
    """A transposed convolution leaves some of its input over."""
    form, numbers = FOUND["mps_convolution_backward"], {"padding": [0], "stride": [2], "dilation": [1], "groups": 1}
    tensors = {"self": torch.ones(1, 1, 6), "weight": torch.ones(1, 1, 2), "grad_output": torch.ones(1, 1, 2)}
    slope = convolve(form, Convolved.INPUT, tensors, numbers, (1, 1, 6))
    assert slope.tolist() == [[[1, 1, 1, 1, 0, 0]]]
    assert convolve(FOUND["_mps_convolution"], Convolved.OUTPUT, tensors, numbers, (1, 1, 2)).shape == (1, 1, 2)


def test_what_is_printed() -> None:
    assert list(FOUND["mps_convolution_backward"].describe()) == [
        "result0[n, d, p * stride - padding + t * dilation] = sum over c, p, t of grad_output[n, c, p] * weight[c, d, t]",
        "result1[c, d, t] = sum over n, p of grad_output[n, c, p] * self[n, d, p * stride - padding + t * dilation]",
        "of the channels d and c of each group",
    ]
