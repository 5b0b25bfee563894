"""Tests that once broke for reasons of their own, on a device where the CPU computes everything: all have to pass."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import SampleInput

import aten_overlay
from porter.verdict.suite import consistency, context, counters, runner, samples
from porter.verdict.suite.context import Context

device = aten_overlay.start()


@pytest.fixture(autouse=True)
def counted() -> Any:
    counters.install(dict, device.fallbacks)


def statuses(base: str, expression: str, *kernels: str) -> dict[str, str]:
    found = runner.run(Context(bases=(base,), kernels=kernels), expression)
    return {each.test.rpartition(".")[2]: each.status + each.reason for each in found}


def named(full_name: str) -> Any:
    return next(op for op in op_db if op.full_name == full_name)


def test_an_operator_that_takes_one_weight_for_many_elements_is_tested_with_edge_values() -> None:
    found = statuses("prelu", "(test_edge_values or test_accuracy) and float32")
    assert len(found) == 2 and set(found.values()) == {"passed"}


def test_single_values_are_those_of_the_columns() -> None:
    column = torch.arange(64.0)
    found = samples.take_single_values(SampleInput(column, args=(column.clone(), 2)))
    assert len(found) == samples.SINGLE_VALUES
    assert all(torch.equal(each.input, column) and each.args[1] == 2 for each in found)
    assert [each.args[0].tolist() for each in found][::15] == [[0.0], [63.0]]
    assert samples.take_single_values(SampleInput(column)) == []
    assert samples.take_single_values(SampleInput(column, args=(torch.ones(()),))) == []


def test_neighbors_are_a_few_units_away_in_what_is_floating() -> None:
    one = torch.ones(3)
    found = samples.list_neighbors(SampleInput(one, args=(torch.ones(3, dtype=torch.uint8), 2.0)))
    steps = [round((float(each.input[0]) - 1) / 2**-24) for each in found]
    assert steps == [-4, -3, -2, -1, 2, 4, 6, 8]  # below a power of two the units are half as large
    assert all(each.args[0].tolist() == [1, 1, 1] and each.args[1] == 2.0 for each in found)


def test_neighbors_of_complex_numbers_differ_in_both_parts() -> None:
    one = torch.ones(3) + 1j
    neighbors = [sample.input for sample in samples.list_neighbors(SampleInput(one.conj()))]
    assert all(each.dtype == one.dtype and each.imag.lt(0).all() for each in neighbors)
    assert all((each.real != 1).all() and (each.imag != -1).all() for each in neighbors)


def test_complex_results_of_32_bits_are_judged_by_those_of_64() -> None:
    one = torch.ones(3) + 1j
    assert consistency.are_alike(one, one, one.to(torch.complex128))
    assert not consistency.are_alike(one, one, one) and not consistency.are_alike(one.real, one, one.real.double())


def test_indices_that_an_operator_takes_on_the_cpu_stay_there() -> None:
    found = statuses("tensor_split", "(test_output_match or test_output_grad_match) and float32")
    assert len(found) == 2 and set(found.values()) == {"passed"}


def test_indices_that_a_device_takes_go_there() -> None:
    [sample, *_] = named("gather").sample_inputs("cpu", torch.float32)
    [kept] = samples.keep_on_cpu(named("gather"), [sample])
    index = kept.args[1]
    assert samples.mirror(index, "mps").device.type == "mps"


def test_what_aten_answers_by_fill_needs_no_kernel_and_all_else_does() -> None:
    library = torch.library.Library("aten", "IMPL", "MPS")
    library.impl("signbit", lambda tensor: torch.empty_like(tensor, dtype=torch.bool).fill_(False))
    found = statuses("signbit", "test_output_match", "signbit")
    assert found["test_output_match_signbit_mps_uint8"] == "passed"
    for dtype in ("int8", "float32"):
        told = found[f"test_output_match_signbit_mps_{dtype}"]
        assert told.startswith("failednever reached the ported kernel (signbit); it ran CPU fallback of aten::fill_")


@pytest.mark.parametrize(("ran", "known"), [(("aten::fill_.Scalar",), True), (("aten::signbit.out",), False),
                                            (("aten::fill_.Scalar", "aten::copy_"), False)])  # fmt: skip
def test_only_what_the_cpu_calls_too_counts(ran: tuple[str, ...], known: bool) -> None:
    unsigned = [SampleInput(torch.tensor([1, 2], dtype=torch.uint8))]
    assert context.computes_all(named("signbit"), unsigned, ran) is known
    assert not context.computes_all(named("signbit"), [SampleInput(torch.tensor([1, 2]))], ran)


def test_samples_that_aten_computes_by_different_operators_need_no_kernel() -> None:
    nuclear = next(op for op in op_db if op.full_name == "norm_nuc" or op.formatted_name == "norm_nuc")
    found = nuclear.sample_inputs("cpu", torch.float32, requires_grad=True)
    ran = [set(consistency.list_fallbacks(nuclear, sample, slopes=True)) for sample in found]
    assert len({frozenset(each) for each in ran}) > 1
    made = statuses("norm", "test_output_grad_match_norm_nuc and float32", "norm")
    assert set(made.values()) == {"passed"}


@pytest.mark.parametrize("is_right", [True, False])
def test_an_overlap_that_the_cpu_does_not_see_is_compared_with_memory_apart(is_right: bool) -> None:
    """ATen's CPU kernel of logsigmoid reads what it has written, by the width of its vectors."""

    def shift(op: Any, target: torch.Tensor, source: torch.Tensor, args: Any, kwargs: Any) -> torch.Tensor:
        is_contaminated = target is source and (target.device.type == "cpu" or not is_right)
        made = target[:1].expand(len(target) - 1) if is_contaminated else source[:-1].clone()
        return target[1:].copy_(2 * made)

    runner.run(Context(bases=("log_sigmoid",)), "test_overlap and float32")  # imports the tests
    tests = sys.modules["porter.verdict.suite.test_variants"].TestVariantsMPS
    suite = tests(next(name for name in dir(tests) if name.startswith("test_overlap")))
    suite.elements = 0
    sample = SampleInput(torch.arange(1.0, 5.0))
    with nullcontext() if is_right else pytest.raises(AssertionError, match="are not close"):
        suite.overlapping(named("nn.functional.logsigmoid"), torch.float32, sample, "", shift, "mps")


@pytest.mark.parametrize(("dims", "is_left"), [((1,), True), ((0, 1), False)])
def test_an_out_that_the_cpu_leaves_alone_is_told(dims: tuple[int, ...], is_left: bool) -> None:
    """`fft_ihfftn_impl` writes to its result what `out` has, where it has one dimension."""
    runner.run(Context(bases=("log_sigmoid",)), "test_overlap and float32")  # imports the tests
    leaves_out_alone = sys.modules["porter.verdict.suite.test_variants"].leaves_out_alone
    sample = SampleInput(torch.arange(24.0).view(4, 6), kwargs={"dim": dims})
    op = named("fft.ihfftn")
    assert leaves_out_alone(op, sample, op(sample.input, dim=dims)) is is_left
