from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite import compare, results

FLOATS = st.floats(min_value=2.0**-100, max_value=2.0**100, width=32)


@given(FLOATS)
def test_the_next_float_is_one_ulp_away(value: float) -> None:
    here = torch.tensor([value], dtype=torch.float32)
    above = torch.nextafter(here, torch.tensor(float("inf")))
    assert compare.ulp(above, here.double()).item() == 1.0
    assert compare.ulp(here, here.double()).item() == 0.0


def test_only_normal_numbers_have_ulp_errors() -> None:
    want = torch.tensor([float("nan"), float("inf"), 1e-42, 1e300], dtype=torch.float64)
    assert compare.ulp(torch.zeros(4), want).tolist() == [0.0] * 4


def test_sixteen_bit_arithmetic_is_told_from_rounding() -> None:
    x = torch.linspace(0.1, 3, 400).half()
    exact = x.double() * x.double() + 1.0
    rounded = exact.to(torch.float16)
    assert compare.measure_accuracy(rounded, rounded, exact, [x]).beyond == ""
    sloppy = (torch.exp(x.double()).half() * 1.003).half()
    found = compare.measure_accuracy(sloppy, torch.exp(x.double()).half(), torch.exp(x.double()), [x])
    assert "is opmath missing?" in found.beyond


def test_disagreement_takes_the_cpu_or_the_reference() -> None:
    mps, cpu = torch.tensor([1.0, float("nan"), 5.0]), torch.tensor([1.0, float("nan"), 4.0])
    assert compare.find_disagreement(mps, cpu, torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64), []) == ""
    told = compare.find_disagreement(mps, cpu, None, [torch.tensor([7.0, 8.0, 9.0])])
    assert told == "1 of 3 differ, first at (9.0): 5.0, the CPU gives 4.0"


def test_flushed_results_are_accepted_under_flush_arithmetic() -> None:
    x = torch.tensor([1e-40, -1e-40, 0.5])
    zeroed = compare.flush_denormals(x)
    assert zeroed.tolist() == [0.0, 0.0, 0.5] and torch.signbit(zeroed).tolist() == [False, True, False]
    told = compare.find_disagreement(torch.tensor([0.0, 0.0, 1.0]), x.ceil(), None, [x])
    assert told == "1 of 3 differ, first at (9.99994610111476e-41): 0.0, the CPU gives 1.0"
    assert compare.find_disagreement(torch.tensor([0.0, 0.0, 1.0]), x.ceil(), None, [x], zeroed.ceil()) == ""
    assert compare.find_disagreement(torch.tensor([0.0, 0.0, 0.0]), x.ceil(), None, [x], zeroed.ceil()) != ""
    assert compare.flush_denormals(torch.tensor([complex(1e-40, 2)])).tolist() == [2j]
    assert compare.flush_denormals(torch.tensor([1])).tolist() == [1]


def test_complex_numbers_are_compared_with_the_reference_too() -> None:
    mps, exact = torch.tensor([1 + 1j, 2 + 0j]), torch.tensor([1 + 1j, 2.5 + 0j], dtype=torch.complex128)
    assert compare.find_disagreement(mps, torch.tensor([3 + 0j, 2 + 0j]), exact, []) == ""
    told = compare.find_disagreement(mps, torch.tensor([3 + 0j, 3 + 0j]), exact, [])
    assert told == "1 of 2 differ, first at element 1: (2+0j), the CPU gives (3+0j)"


def test_complex_overflow_of_the_cpu_is_not_demanded() -> None:
    inf, nan = float("inf"), float("nan")
    cpu, exact = torch.tensor([complex(nan, -inf)]), torch.tensor([complex(1e38, -1e38)], dtype=torch.complex128)
    assert compare.find_disagreement(torch.tensor([complex(inf, -inf)]), cpu, exact, []) == ""
    assert compare.find_disagreement(torch.tensor([2 + 0j]), cpu, exact, []) != ""
    assert compare.find_disagreement(torch.tensor([complex(inf, 0)]), torch.tensor([1 + 0j]), exact, []) != ""
    half = torch.tensor([complex(1e38, -1e300)], dtype=torch.complex128)
    assert compare.find_disagreement(torch.tensor([complex(inf, -inf)]), cpu, half, []) == ""
    assert compare.find_disagreement(torch.tensor([complex(inf, inf)]), cpu, half, []) != ""
    beyond = torch.tensor([complex(1e300, 0)], dtype=torch.complex128)
    assert compare.find_disagreement(torch.tensor([complex(nan, 0)]), torch.tensor([complex(inf, 0)]), beyond, []) != ""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64])
def test_an_infinity_is_no_largest_number_though_double_precision_has_a_larger_one(dtype: torch.dtype) -> None:
    x = torch.tensor([torch.inf, -torch.inf, 1.0], dtype=dtype)
    cpu, exact = torch.nan_to_num(x), torch.nan_to_num(compare.widen(x))
    assert compare.find_disagreement(cpu, cpu, exact, [x]) == ""
    assert compare.find_disagreement(x, cpu, exact, [x]).startswith("2 of 3 differ")


def test_what_rounds_to_an_infinity_may_be_one() -> None:
    cpu, mps = torch.tensor([65504.0]).half(), torch.tensor([torch.inf]).half()
    assert compare.find_disagreement(mps, cpu, torch.tensor([65600.0], dtype=torch.float64), []) == ""


def test_integers_must_be_equal() -> None:
    a, b = torch.tensor([2**24 + 1]), torch.tensor([2**24])
    assert "16777217" in compare.find_disagreement(a, b, None, [])


def test_types_and_shapes_must_match() -> None:
    assert "torch.int64" in compare.find_disagreement(torch.ones(2), torch.ones(2, dtype=torch.int64), None, [])
    assert "(3,)" in compare.find_disagreement(torch.ones(2), torch.ones(3), None, [])


def test_the_low_precision_lists_loosen_their_types() -> None:
    lists = {"FP16": frozenset({"add"})}
    assert compare.tolerances(lists, "add", torch.bfloat16) == {"atol": 5e-2, "rtol": 5e-2}
    assert compare.tolerances(lists, "add", torch.float32) == {"atol": None, "rtol": None}
    assert compare.tolerances(lists, "mul", torch.float16) == {"atol": None, "rtol": None}


def test_the_sign_of_a_zero_is_demanded_where_the_cpu_is_sure_of_it() -> None:
    minus, plus = torch.tensor([-0.0]), torch.tensor([0.0])
    assert "0.0, the CPU gives -0.0" in compare.find_disagreement(plus, minus, minus.double(), [], None, minus)
    assert compare.find_disagreement(plus, minus, minus.double(), [], None, plus) == ""
    assert compare.find_disagreement(plus, minus, plus.double(), [], None, minus) == ""
    assert compare.find_disagreement(minus, minus, minus.double(), [], None, minus) == ""


def test_whole_numbers_match_either_of_the_cpus_loops_where_these_disagree() -> None:
    dense, strided = torch.tensor([5, 7, 2]), torch.tensor([-5, 7, 2])
    assert compare.find_disagreement(strided, dense, None, [], None, strided) == ""
    assert "3, the CPU gives 7" in compare.find_disagreement(torch.tensor([5, 3, 2]), dense, None, [], None, strided)


def test_a_denormal_is_no_zero_unless_it_is_flushed() -> None:
    tiny, zero = torch.tensor([1e-40]), torch.tensor([0.0])
    assert compare.find_disagreement(zero, tiny, tiny.double(), [], None, tiny) != ""
    assert compare.find_disagreement(zero, tiny, tiny.double(), [], zero, tiny) == ""


def test_two_infinities_in_a_number_may_give_nan_but_nothing_else() -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([complex(inf, -inf)])
    cpu, exact = torch.tensor([0j]), torch.tensor([0j], dtype=torch.complex128)
    assert compare.find_disagreement(torch.tensor([complex(nan, nan)]), cpu, exact, [x]) == ""
    assert compare.find_disagreement(torch.tensor([1 + 0j]), cpu, exact, [x]) != ""
    assert (
        compare.find_disagreement(torch.tensor([complex(nan, nan)]), cpu, exact, [torch.tensor([complex(inf, 1)])])
        != ""
    )


def test_the_type_that_values_of_two_are_compared_in() -> None:
    assert compare.less_precise(torch.float32, torch.bfloat16) is torch.bfloat16
    assert compare.less_precise(torch.float16, torch.float64) is torch.float16
    assert compare.less_precise(torch.int32, torch.float64) is torch.float64
    assert compare.less_precise(torch.int32, torch.int64) is torch.int64


def test_a_call_in_double_precision_begins_with_what_the_result_s_type_leaves() -> None:
    third = SampleInput(torch.tensor([1 / 3]), kwargs={"dtype": torch.float16, "dim": 0})
    wide = compare.widen_call(third)
    assert wide.input.dtype == wide.kwargs["dtype"] == torch.float64 and wide.kwargs["dim"] == 0
    assert wide.input.item() == torch.tensor(1 / 3).half().item() != compare.widen(third.input).item()
    plain = compare.widen_call(SampleInput(torch.tensor([1 / 3]), kwargs={"dtype": torch.int32}))
    assert plain.input.dtype == torch.float64 and plain.kwargs["dtype"] == torch.int32
    ramp = compare.widen_call(SampleInput(0.5, args=(2.5,), kwargs={"steps": 5, "dtype": torch.float32}))
    assert ramp.input == 0.5 and ramp.kwargs["dtype"] == torch.float64


def test_expanded_samples_without_a_digit_are_left_out() -> None:
    """Fractions are lost beside a large number, and multiples of eight are not: on every processor."""
    column, matrix = torch.tensor([0.3, 0.7, 1.1])[:, None], torch.eye(3) * 8
    varied = [
        (label, SampleInput(value))
        for label, value in (("expanded", column.expand(3, 3)), ("expanded, first", matrix), ("transposed", column.mT))
    ]
    kept = [label for label, _ in compare.keep_with_digits(lambda x: (x + 2**25 - 2**25) * 1024, varied)]
    assert kept == ["expanded, first", "transposed"]
    assert list(results.take_remarks("")) == ["left out, as the CPU's result has no right digit: an expanded tensor"]
    assert len(list(compare.keep_with_digits(torch.sum, varied))) == 3


@pytest.mark.parametrize(
    ("op", "kept"),
    [
        (lambda x: x.diff() / x.diff(), 0),
        (lambda x: (x.diff() / x.diff(), x.sum()), 1),
        (lambda x: (-x).sqrt(), 1),
        (lambda x: 1 / x.diff(), 1),
    ],
)
def test_what_is_nan_of_equal_columns_alone_is_left_out(op: Callable[[torch.Tensor], Any], kept: int) -> None:
    sample = SampleInput(torch.tensor([[0.3], [0.7]]).expand(2, 3))
    assert len(list(compare.keep_with_digits(op, [("expanded", sample)]))) == kept
    list(results.take_remarks(""))


def test_what_is_refused_beside_its_operands_is_kept() -> None:
    def divide(x: torch.Tensor) -> torch.Tensor:
        if bool((x > 1).any()):
            raise RuntimeError("all elements of input should be between 0 and 1")
        return x.diff() / x.diff()

    sample = SampleInput(torch.ones(2, 1).expand(2, 3))
    assert list(compare.keep_with_digits(divide, [("expanded", sample)])) == [("expanded", sample)]
