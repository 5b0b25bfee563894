"""Calls that gradients make of elementwise operators, as samples: which there are, and how they vary."""

from __future__ import annotations

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.context import Context
from porter.verdict.suite.direct import list_direct_opinfos, list_limits, vary_call
from porter.verdict.suite.samples import with_edge_values


def _context(base: str, *through: str) -> Context:
    return Context(bases=(base,), through_backward=through)


def test_calls_are_recorded_with_all_arguments_of_the_schema() -> None:
    [op] = list_direct_opinfos(_context("gelu_backward", "nn.functional.gelu"))
    samples = list(op.sample_inputs("cpu", torch.float32))
    assert [sample.kwargs for sample in samples] == [{"approximate": "none"}, {"approximate": "tanh"}]
    assert op.supported_dtypes("cpu") >= {torch.float32, torch.float16}
    assert [label for label, _ in vary_call(op, samples[0])] == ["as recorded", "with approximate='tanh'"]


def test_calls_have_the_complex_types_that_the_cpu_computes_without_gradient_tests_of_them() -> None:
    [op] = list_direct_opinfos(_context("tanh_backward", "tanh"))
    assert torch.complex64 in op.supported_dtypes("cpu")
    sample = next(iter(op.sample_inputs("cpu", torch.complex64)))
    assert sample.input.dtype == sample.args[0].dtype == torch.complex64
    [real] = list_direct_opinfos(_context("elu_backward", "nn.functional.elu"))
    assert torch.complex64 not in real.supported_dtypes("cpu")


def test_each_number_varies_beside_both_values_of_a_flag() -> None:
    [op] = list_direct_opinfos(_context("elu_backward", "nn.functional.elu"))
    sample = next(iter(op.sample_inputs("cpu", torch.float32)))
    varied = dict(vary_call(op, sample))
    assert {"with is_result=True", "with input_scale=0.5", "with is_result=True with input_scale=0.5"} <= varied.keys()
    assert varied["with is_result=True with input_scale=0.5"].args[2:4] == (0.5, True)


def test_the_limits_of_a_call_are_its_numbers() -> None:
    [op] = list_direct_opinfos(_context("hardtanh_backward", "nn.functional.hardtanh"))
    sample = next(iter(op.sample_inputs("cpu", torch.float32)))
    assert list_limits(sample) == tuple(float(each) for each in sample.args[1:])


@pytest.mark.parametrize(
    ("base", "through"),
    [
        ("glu_backward", "nn.functional.glu"),  # its halves meet in each element
        ("log_sigmoid_backward", "nn.functional.logsigmoid"),  # takes a buffer that is the device's own
        ("elu_backward", "exp"),  # which does not call it
    ],
)
def test_there_is_none_of_what_cannot_be_called_with_any_values(base: str, through: str) -> None:
    assert list_direct_opinfos(_context(base, through)) == []


def test_there_is_none_where_other_calls_reach_the_operator() -> None:
    assert list_direct_opinfos(Context(bases=("exp",))) == []


def test_complex_values_are_bounded_in_each_part() -> None:
    sample = SampleInput(torch.zeros(3, dtype=torch.complex64), args=(torch.zeros(3, dtype=torch.complex64),))
    edged = with_edge_values(sample, torch.complex64, most=4.0)
    for each in (edged.input, *edged.args):
        parts = torch.view_as_real(each)
        assert bool((parts.abs() <= 4).all()) and float(parts.max()) == 4 and float(parts.min()) == -4
