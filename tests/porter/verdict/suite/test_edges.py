import math

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite import samples
from porter.verdict.suite.sample_results import make_samples
from porter.verdict.suite.samples import edge_values


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("power", [24, 31, 53])
def test_integers_at_the_ends_of_floats_have_their_neighbors(dtype: torch.dtype, power: int) -> None:
    found = set(edge_values(dtype).tolist())
    most = torch.iinfo(dtype).max
    around = {sign * (2**power + step) for step in (-1, 0, 1) for sign in (1, -1) if 2**power + step <= most}
    assert around <= found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_floats_have_signed_zeros_denormals_and_the_neighbors_of_literals(dtype: torch.dtype) -> None:
    found, info = edge_values(dtype, [0.375]), torch.finfo(dtype)
    zeros = found[found == 0]
    assert sorted(zeros.signbit().tolist()) == [False, True]
    assert info.smallest_normal * info.eps in found.tolist()
    here = torch.tensor(0.375, dtype=dtype)
    assert {float(torch.nextafter(here, here.new_tensor(end))) for end in (0, 1)} <= set(found.tolist())


def test_powers_of_some_values_are_denormal_and_of_others_barely_finite() -> None:
    powers = torch.exp2(edge_values(torch.float32))
    assert bool(((powers > 0) & (powers < torch.finfo(torch.float32).smallest_normal)).any())
    assert bool((powers.isfinite() & (powers > 1e38)).any())


def test_complex_numbers_lie_on_both_sides_of_the_axes() -> None:
    found = edge_values(torch.complex64)
    for part, other in ((found.real, found.imag), (found.imag, found.real)):
        cut = other[(part == -1.0) & (other == 0)]
        assert sorted(set(cut.signbit().tolist())) == [False, True]
        assert {2.5, -2.5} <= set(part[other == 0].tolist())
    assert bool((found.real.isinf() & found.imag.isfinite()).any())
    assert bool((found.real.isinf() & found.imag.isinf()).any())


def test_integers_and_complex_numbers_lie_beside_literals() -> None:
    assert {40, 41, 42, -40, -41, -42} <= set(edge_values(torch.int32, [41.0]).tolist())
    sizes = edge_values(torch.complex64, [0.375]).abs()
    here = torch.tensor(0.375)
    beside = {float(torch.nextafter(here, torch.tensor(end))) for end in (0.0, 1.0)}
    assert {0.375, *beside} <= set(sizes.tolist())


def test_scalars_are_literals_and_what_is_beside_them() -> None:
    sample = SampleInput(torch.ones(2), args=(0.2,))
    tried = {other.args[0] for _, other in samples.with_other_scalars(sample, [0.375, 20.0, 7.0])}
    below = float(torch.nextafter(torch.tensor(0.375), torch.tensor(0.0)))
    assert {0.375, below, 20.0, None, 1.0} <= tried and 7.0 not in tried


def test_operands_are_combined_with_each_other() -> None:
    sample = samples.with_edge_values(SampleInput(torch.ones(2), args=(torch.ones(2),)), torch.float32)
    pairs = set(zip(sample.input.tolist(), sample.args[0].tolist(), strict=True))
    assert {(1.0, 2.0), (2.0, 1.0), (math.inf, 0.0), (0.0, -math.inf)} <= pairs


def test_the_lowest_integer_is_left_to_operators_of_one_operand() -> None:
    lowest = torch.iinfo(torch.int32).min
    alone = samples.with_edge_values(SampleInput(torch.ones(2, dtype=torch.int32)), torch.int32)
    divided = samples.with_edge_values(SampleInput(torch.ones(2, dtype=torch.int32), args=(-1,)), torch.int32)
    assert lowest in alone.input.tolist() and lowest not in divided.input.tolist()


def test_numbers_and_what_may_be_one_take_other_values() -> None:
    made = [s for _, s in samples.with_other_scalars(SampleInput(torch.ones(2), args=(0.2,), kwargs={"alpha": 2}))]
    assert {s.args[0] for s in made} == {0.2, None, 0.0, 0.25, 0.5, 1.0, -1.0}
    assert {s.kwargs["alpha"] for s in made} == {2, 0, 1, -1}
    assert not list(samples.with_other_scalars(SampleInput(torch.ones(2), kwargs={"rounding_mode": "floor"})))


def test_a_number_stands_for_each_operand() -> None:
    """ATen has rows of their own for it, which copy the number to the device."""
    sample = SampleInput(torch.full((2,), 3.0), args=(torch.full((2,), 0.5),))
    made = dict(samples.vary_operands(sample, []))
    assert made["with a number"].args == (0.5,) and made["a number first"].input == 3.0


@pytest.mark.parametrize("most", [128.0, math.inf])
def test_samples_of_both_paths_are_as_large_as_a_kernel_may_count_up_to(most: float) -> None:
    op = next(each for each in op_db if each.name == "special.legendre_polynomial_p")
    *_, (name, edge) = make_samples(op, torch.float32, most)
    assert name.endswith("edge values")
    assert [bool((each.abs() <= 128).all()) for each in (edge.input, *edge.args)] == [most == 128] * 2


def test_an_outer_product_of_edge_values_has_no_millions_of_elements() -> None:
    many = torch.arange(8192.0)
    sample = samples.bound_results(torch.outer, SampleInput(many, many.clone()))
    assert torch.outer(sample.input, *sample.args).numel() == samples.MOST_RESULTS
    assert samples.bound_results(torch.mul, SampleInput(many, many)).input.shape == many.shape
