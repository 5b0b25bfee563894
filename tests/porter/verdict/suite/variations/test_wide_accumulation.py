"""Sums in 16 bits of operators that are not linear: what rows of large and small elements show of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.overloads import call_overload, record_calls
from porter.verdict.suite.sums import convert, excess_of_one_rounding, excess_of_rounding
from porter.verdict.suite.variations.wide_accumulation import LARGE, LENGTH, list_accumulating, list_rounded_once
from tests.porter.verdict.suite.variations.shown import find_op

Call = Callable[..., torch.Tensor]
HALVES = (torch.float16, torch.bfloat16)


def add_up(elements: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A sum of all elements by 1,024 threads, each of which adds up in this type."""
    lanes = torch.zeros(1024, dtype=dtype)
    for part in elements.flatten().split(1024):
        lanes[: len(part)] += part.to(dtype)
    return lanes.double().sum()


def compute_var(x: torch.Tensor, dtype: torch.dtype, **rest: Any) -> torch.Tensor:
    wide = x.double()
    correction = rest.get("correction")
    count = x.numel() - (1 if correction is None else correction)
    return add_up((wide - wide.mean()).square(), dtype) / count


def compute_norm(x: torch.Tensor, dtype: torch.dtype, order: float = 2) -> torch.Tensor:
    return add_up(x.double().abs() ** order, dtype) ** (1 / order)


def compute_logsumexp(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    wide = x.double()
    return add_up((wide - wide.max()).exp(), dtype).log() + wide.max()


def compute_batch_norm(sample: SampleInput, dtype: torch.dtype) -> torch.Tensor:
    wide, (weight, bias) = sample.input.double(), sample.args[:2]
    deviations = wide - wide.mean()
    normal: torch.Tensor = deviations / (add_up(deviations.square(), dtype) / wide.numel() + sample.args[-1]).sqrt()
    normal *= 1 if weight is None else weight.double()
    return normal + (0 if bias is None else bias.double())


CASES: dict[str, tuple[tuple[str, ...], Call]] = {
    "var": (("var",), lambda s, d: compute_var(s.input, d, **s.kwargs)),
    "linalg.vector_norm": (("linalg_vector_norm",), lambda s, d: compute_norm(s.input, d, (*s.args, 2)[0])),
    "logsumexp": (("logsumexp",), lambda s, d: compute_logsumexp(s.input, d)),
    "native_batch_norm": (("native_batch_norm",), compute_batch_norm),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", HALVES)
def test_what_is_added_up_in_16_bits_is_seen(name: str, dtype: torch.dtype) -> None:
    bases, compute = CASES[name]
    seen = 0
    for _, sample in list_accumulating(OpInfos(Context(bases=bases)), op := find_op(name), dtype):
        others = (value for value in sample.args if isinstance(value, torch.Tensor))
        if sample.input.numel() != max(sample.input.shape) or any(other.numel() > 1 for other in others):
            continue  # the sums above are of one row, and one channel
        wide, exact = (first(call(convert(sample, each))) for each in (torch.float32, torch.float64))
        right, wrong = (compute(sample, each).reshape(exact.shape) for each in (torch.float32, dtype))
        assert not excess_of_rounding(right.to(dtype), wide, exact, dtype)
        seen += bool(excess_of_rounding(wrong.to(dtype), wide, exact, dtype))
    assert seen, op.name


def test_what_is_rounded_before_it_is_added_up_is_no_sum_in_16_bits() -> None:
    """The CPU's loss of an element is one of 16 bits. Those of float16 are no smaller than six hundred-millionths."""
    opinfos, op = OpInfos(Context(bases=("binary_cross_entropy",))), find_op("nn.functional.binary_cross_entropy")
    seen = 0
    for _, sample in list_accumulating(opinfos, op, torch.float16):
        wide, exact = (call(convert(sample, each)) for each in (torch.float32, torch.float64))
        assert not excess_of_rounding(call(sample), wide, exact, torch.float16)
        (target, weight, reduction), losses = (*sample.args, None, 1)[:3], torch.ops.aten.binary_cross_entropy
        if reduction == 1:
            mean = add_up(losses(sample.input, target, weight, 0), torch.float16) / target.numel()
            seen += bool(excess_of_rounding(mean.half(), wide, exact, torch.float16))
    assert seen


def call(sample: SampleInput) -> Any:
    return call_overload(sample.input, *sample.args, **sample.kwargs)


def first(results: Any) -> torch.Tensor:
    result: torch.Tensor = results[0] if isinstance(results, tuple) else results
    return result


def test_what_picks_elements_has_no_rows() -> None:
    for name in ("gather", "triu"):
        assert not list(list_accumulating(OpInfos(Context(bases=(name,))), find_op(name), torch.float16))


@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
def test_what_tells_elements_apart_adds_none_up(name: str) -> None:
    """Its results differ in shape where elements differ in 16 bits and not in 64."""
    op = find_op(name)
    base = "_unique2" if name == "unique" else name
    opinfos = OpInfos(Context(bases=(base,), dtypes=("float16",)))
    assert not list(list_accumulating(opinfos, op, torch.float16))


def test_a_statistic_in_32_bits_is_judged_as_if_it_were_rounded() -> None:
    exact = torch.tensor([1.0, 3.0], dtype=torch.float64)
    assert not excess_of_rounding(torch.tensor([1.0, 3.0 + 2**-12]), exact.float(), exact, torch.float16)
    assert excess_of_rounding(torch.tensor([1.0, 3.0 + 2**-6]), exact.float(), exact, torch.float16)
    assert LARGE * 32 < LENGTH and LENGTH > 1 << 16


def test_an_operator_is_called_by_its_row_where_its_function_calls_another() -> None:
    op = find_op("norm")
    samples = [each for each in op.sample_inputs("cpu", torch.float16) if each.input.ndim][:4]
    assert {call.name for call in record_calls(op, samples, ("norm",))} <= {"norm.Scalar", "norm.ScalarOpt_dim"}
    assert len(list(record_calls(op, samples, ("norm",)))) >= len(samples)
    assert {call.name for call in record_calls(op, samples, ("linalg_vector_norm",))} == {"linalg_vector_norm"}


def test_weights_that_long_indices_pick_are_added_up() -> None:
    opinfos, op = OpInfos(Context(bases=("nll_loss2d_forward",))), find_op("nn.functional.nll_loss")
    seen = False
    for _, sample in list_accumulating(opinfos, op, torch.float16):
        target, weight, reduction = sample.args[:3]
        if weight is not None and reduction == 1:
            wide, exact = (call(convert(sample, each))[1] for each in (torch.float32, torch.float64))
            wrong = add_up(weight.double()[target.flatten()], torch.float16)
            seen = bool(excess_of_rounding(wrong.half(), wide, exact, torch.float16))
            if seen:
                break
    assert seen


def divide(sum_of: torch.Tensor, count: int, factor: float, dtype: torch.dtype, result: torch.dtype) -> torch.Tensor:
    """A sum that is right, and is divided by a count in a type."""
    quotient = sum_of.to(dtype) / torch.tensor(float(count)).to(dtype) * torch.tensor(factor).to(dtype)
    return quotient.to(result)


def divide_var(sample: SampleInput, dtype: torch.dtype) -> torch.Tensor:
    correction = {"correction": 1, **sample.kwargs}["correction"]
    exact = call(convert(sample, torch.float64))
    count = sample.input.numel() // exact.numel()
    bessel = count / (count - correction)
    return divide(exact * count / bessel, count, bessel, dtype, sample.input.dtype)


def divide_mean(sample: SampleInput, dtype: torch.dtype) -> torch.Tensor:
    exact = call(convert(sample, torch.float64))
    count = sample.input.numel() // exact.numel()
    return divide(exact * count, count, 1.0, dtype, sample.input.dtype)


@pytest.mark.parametrize(("name", "compute"), [("var", divide_var), ("mean", divide_mean)])
@pytest.mark.parametrize("dtype", HALVES)
def test_a_last_division_in_16_bits_is_seen(name: str, compute: Any, dtype: torch.dtype) -> None:
    opinfos, op = OpInfos(Context(bases=(name,))), find_op(name)
    seen = 0
    for _, sample in list_rounded_once(opinfos, op, dtype):
        nearest, wide, exact = (call(convert(sample, each)) for each in (dtype, torch.float32, torch.float64))
        right, wrong = (compute(sample, each) for each in (torch.float32, dtype))
        assert not excess_of_one_rounding(right, wide, nearest, exact)
        seen += bool(excess_of_one_rounding(wrong, wide, nearest, exact))
    assert seen


def test_of_what_the_cpu_does_not_round_once_nothing_is_asked() -> None:
    exact = torch.tensor([1.0, 3.0], dtype=torch.float64)
    near, far = torch.tensor([1.0, 3.0]).half(), torch.tensor([1.0, 3.0 + 2**-8]).half()
    assert excess_of_one_rounding(far, exact.float(), near, exact)
    assert not excess_of_one_rounding(far, exact.float(), far, exact)


def test_what_rounds_as_the_cpu_does_or_has_no_digits_in_32_bits_is_right() -> None:
    nearest = torch.tensor([1.0]).half()
    exact = nearest.double() * (1 + 0.59 * 2**-10)  # rounds to the other neighbor by a hair of float32's
    wide = (nearest.double() * (1 + 0.61 * 2**-10)).float()
    assert not excess_of_one_rounding(nearest, wide, nearest, exact)
    assert excess_of_one_rounding(torch.tensor([1.0 - 2**-11]).half(), wide, nearest, exact)
    assert not excess_of_one_rounding(torch.tensor([3.0]).half(), torch.tensor([5.0]), nearest, exact)


def test_what_reduces_nothing_has_no_rows_of_such_a_count() -> None:
    for name in ("softmax", "cumsum"):
        assert not list(list_rounded_once(OpInfos(Context(bases=(name, f"_{name}"))), find_op(name), torch.float16))
