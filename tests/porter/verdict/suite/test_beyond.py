"""Results in types that the CPU lacks."""

import torch

from porter.verdict.suite import beyond

PRECISE = torch.tensor([1 + 2j, -3 + 0.5j, 1e6 + 0j], dtype=torch.complex128)


def test_a_result_may_be_rounded_and_no_worse() -> None:
    operands = [torch.ones(3, dtype=torch.complex128)]
    rounded = PRECISE.to(torch.complex32)
    assert beyond.excess(rounded, PRECISE, operands) == ""
    parts = torch.view_as_real(rounded).clone()
    parts[1, 1] += 0.01
    told = beyond.excess(torch.view_as_complex(parts), PRECISE, operands)
    assert told.startswith("1 of 3 are off by more than one ULP, first at ((1+0j)): ")


def test_cancellation_is_measured_by_the_operands() -> None:
    got, exact = torch.tensor([1e-3], dtype=torch.float16), torch.tensor([1.004e-3], dtype=torch.float64)
    assert beyond.excess(got, exact, [torch.tensor([100.0], dtype=torch.float64)]) == ""
    assert beyond.excess(got, exact, [torch.tensor([1.0], dtype=torch.float64)]) != ""


def test_what_the_cpu_computes_in_32_bits_is_good_enough_and_nothing_else_is() -> None:
    operands, exact = [torch.tensor([1.0, 1.0], dtype=torch.float64)], torch.tensor([0.5, 0.5], dtype=torch.float64)
    theirs = torch.tensor([0.25, 0.25], dtype=torch.float32)
    assert beyond.excess(torch.tensor([0.25, 0.5], dtype=torch.float16), exact, operands, theirs) == ""
    told = beyond.excess(torch.tensor([0.25, 0.251], dtype=torch.float16), exact, operands, theirs)
    assert told.startswith("1 of 2 are off by more than one ULP")
    assert beyond.excess(torch.tensor([0.25, 0.5], dtype=torch.float16), exact, operands).startswith("1 of 2 are off")


def test_nan_is_right_only_where_the_cpu_has_it_in_32_bits() -> None:
    operands, exact = [torch.tensor([1.0, 1.0], dtype=torch.float64)], torch.tensor([0.5, 0.5], dtype=torch.float64)
    got, theirs = torch.full((2,), torch.nan, dtype=torch.float16), torch.tensor([torch.nan, 0.5])
    assert beyond.excess(got, exact, operands, theirs).startswith("1 of 2 are off by more than one ULP")
    assert beyond.excess(got[:1], exact[:1], [operands[0][:1]], theirs[:1]) == ""


def test_bools_have_to_be_equal() -> None:
    operands = [torch.tensor([0j, 1 + 1j], dtype=torch.complex128)]
    got, exact = torch.tensor([False, True]), torch.tensor([False, True])
    assert beyond.excess(got, exact, operands) == ""
    assert beyond.excess(~got, exact, operands) == "2 of 2 differ, first at (0j): True for False"


def test_only_tensors_of_the_wide_type_are_converted() -> None:
    change = beyond.convert(torch.float32, torch.float16)
    assert change(torch.ones(1)).dtype == torch.float16
    assert change(torch.ones(1, dtype=torch.int32)).dtype == torch.int32
    assert change(0.5) == 0.5
