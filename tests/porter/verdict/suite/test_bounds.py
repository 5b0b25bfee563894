import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite import bounds, compare
from porter.verdict.suite.samples import list_neighbors

X = torch.logspace(-6, 1, 500, dtype=torch.float64).float()
RIGHT = torch.log1p(X.double())


def test_a_result_as_good_as_the_cpu_is_within_its_bound() -> None:
    assert bounds.excess(torch.log1p(X), torch.log1p(X), RIGHT, [X]) == ""
    assert bounds.excess(RIGHT.float(), torch.log1p(X), RIGHT, [X]) == ""


def test_lost_digits_are_beyond_it() -> None:
    told = bounds.excess(torch.log(1 + X), torch.log1p(X), RIGHT, [X])
    assert told.startswith("off by ") and told.endswith("the bound is 8.0 ULP, from the CPU's")


def test_where_the_cpu_loses_digits_a_kernel_may() -> None:
    naive = torch.log(1 + X)
    assert bounds.excess(torch.nextafter(naive, X), naive, RIGHT, [X]) == ""


def test_a_bad_cpu_excuses_results_of_its_magnitude_alone() -> None:
    cpu, mine = RIGHT.float(), RIGHT.float()
    cpu[X > 5] *= 1.01
    mine[X > 5] *= 1.02
    assert bounds.excess(mine, cpu, RIGHT, [X]) == ""
    mine[0] *= 1.01
    assert "off by" in bounds.excess(mine, cpu, RIGHT, [X])


def test_infinity_and_nan_are_beyond_every_bound() -> None:
    for lost in (torch.inf, torch.nan):
        mine = RIGHT.float()
        mine[3] = lost
        assert f"{lost} for" in bounds.excess(mine, RIGHT.float(), RIGHT, [X])


def test_what_the_cpu_gives_too_is_beyond_no_bound() -> None:
    for lost in (torch.inf, torch.nan):
        mine = RIGHT.float()
        mine[3] = lost
        assert bounds.excess(mine, mine.clone(), RIGHT, [X]) == ""


def test_denormals_count_unless_they_are_flushed() -> None:
    x = torch.tensor([1e-40, 1.0])
    none = torch.tensor([0.0, 1.0])
    assert "off by" in bounds.excess(none, x, x.double(), [x])
    assert bounds.excess(none, x, x.double(), [x], flushes=True) == ""


def test_the_error_of_a_complex_number_is_relative_to_all_of_it() -> None:
    want = torch.tensor([complex(1e-9, 1.0)], dtype=torch.complex128)
    near = torch.tensor([complex(0, 1.0)], dtype=torch.complex64)
    assert bounds.excess(near, want.to(torch.complex64), want, []) == ""
    assert "off by" in bounds.excess(near.conj().resolve_conj(), want.to(torch.complex64), want, [])


def test_a_result_is_as_near_where_the_cpu_is_itself_beyond_the_tolerance() -> None:
    naive, tight = torch.log(1 + X), {"atol": 0, "rtol": 1e-5}
    assert bounds.is_as_near(RIGHT.float(), [(naive, RIGHT)], False, **tight)
    assert not bounds.is_as_near(naive, [(RIGHT.float(), RIGHT)], False, **tight)
    assert not bounds.is_as_near(RIGHT.float() * 1.5, [(naive, RIGHT)], False, **tight)
    assert not bounds.is_as_near(RIGHT.float() + 1e-3, [(naive, RIGHT)])  # by default the CPU is near enough itself


def test_results_beside_tell_how_far_off_the_cpu_may_be() -> None:
    x, tight = X.view(2, -1), {"atol": 0, "rtol": 1e-5}
    naive, right = torch.log(1 + x), RIGHT.view(2, -1)
    assert not bounds.is_as_near(naive[:1], [(right[:1].float(), right[:1])], False, **tight)
    beside = torch.nextafter(x[:1], x[1:])
    others = (torch.log(1 + beside), torch.log1p(beside.double()))
    assert bounds.is_as_near(naive[:1], [(right[:1].float(), right[:1]), others], False, **tight)
    assert not bounds.is_as_near(naive[:1] * 9, [(right[:1].float(), right[:1]), others], False, **tight)


def test_of_many_results_one_that_the_cpu_misses_excuses_no_other() -> None:
    """Beside the operands, as one of hundreds of thousands always is; of the operands themselves it says how far all are."""
    want = torch.full((1 << 16,), 3.0, dtype=torch.float64)
    far = want.float()
    far[0] += 1e-4
    first, second = want.float(), want.float()
    first[0], second[1] = far[0], far[0]
    pairs = [(want.float(), want), (far, want)]
    assert bounds.is_as_near(first, pairs) and not bounds.is_as_near(second, pairs)
    assert bounds.is_as_near(second[:4], [(cpu[:4], exact[:4]) for cpu, exact in pairs])
    assert bounds.is_as_near(second, [(far, want)])


def test_sums_that_cancel_are_as_near_as_the_cpu_s_where_operands_round_to_others() -> None:
    """The first row leaves 1 of numbers of a million, the second one adds them up."""
    rows = torch.tensor([[1e6 + 1, -1e6], [1e6 + 1, 1e6]])
    sample = SampleInput(rows, args=(torch.tensor([[10.0], [10.0]]),))
    calls = [(each.input, each.args[0]) for each in (sample, *list_neighbors(sample))]
    exact = [a.double() @ b.double() for a, b in calls]
    pairs = [(each.float(), each) for each in exact]
    (cpu, want), *_ = pairs
    cpu -= torch.tensor([[1e-5], [0.0]])
    off = torch.tensor([[3e-5], [0.0]])
    assert bounds.is_as_near((want + off).float(), pairs)
    assert not bounds.is_as_near((want + off).float(), pairs[:1])
    assert not bounds.is_as_near((want + off * 1000).float(), pairs)
    other = torch.tensor([[0.0], [30.0]])  # more than the tolerance, of a result that no rounding moves so far
    assert not compare.is_close(want.float() + other, cpu).all()
    assert not bounds.is_as_near((want + other).float(), pairs)


def test_what_matches_double_precision_is_near_though_the_cpu_is_on_its_other_side() -> None:
    want = torch.tensor([1000.0], dtype=torch.float64)
    cpu, mine = (torch.tensor([1000.0 + off]) for off in (-0.9e-3, 0.9e-3))
    assert not compare.is_close(mine, cpu).all()
    assert bounds.is_as_near(mine, [(cpu, want)])
    assert not bounds.is_as_near(mine + 1e-3, [(cpu, want)])


def test_elements_within_the_tolerance_need_no_bound() -> None:
    cpu = RIGHT.float()
    cpu[-1] *= 1.01
    mine = cpu.clone()
    mine[0] += 1e-6  # of 1e-6: twice what it should be
    assert "off by" in bounds.excess(mine, cpu, RIGHT, [X])
    assert bounds.is_as_near(mine, [(cpu, RIGHT)])
    mine[0] += 1e-4
    assert not bounds.is_as_near(mine, [(cpu, RIGHT)])


def test_no_bound_excuses_what_is_not_finite() -> None:
    cpu, want = RIGHT.float(), RIGHT.clone()
    cpu[-1] *= 1.01
    mine = cpu.clone()
    assert bounds.is_as_near(mine, [(cpu, want)])
    cpu[3], want[3] = torch.nan, torch.nan
    assert not bounds.is_as_near(mine, [(cpu, want)])
    mine[3] = torch.nan
    assert bounds.is_as_near(mine, [(cpu, want)])


@given(st.floats(min_value=2.0**-149, max_value=2.0**120, width=32))
def test_the_next_float_is_one_unit_away_denormals_too(value: float) -> None:
    here = torch.tensor([value], dtype=torch.float32)
    above = torch.nextafter(here, torch.tensor(torch.inf))
    assert bounds.ulp_with_denormals(above, here.double()).item() == 1.0


def test_a_result_out_of_range_is_as_near_where_double_precision_rounds_to_it() -> None:
    cpu, want = torch.tensor([math.nan, 1.0]), torch.tensor([math.inf, 1.0], dtype=torch.float64)
    assert bounds.is_as_near(torch.tensor([math.inf, 1.0]), [(cpu, want)])
    assert not bounds.is_as_near(torch.tensor([-math.inf, 1.0]), [(cpu, want)])


def test_a_complex_result_is_as_near_only_at_sizes_where_the_cpu_misses_the_tolerance() -> None:
    want = torch.complex(RIGHT, RIGHT)
    cpu = want.to(torch.complex64)
    cpu[-1] *= 1.01
    mine = cpu.clone()
    mine[-1] = want[-1] * 1.02
    assert bounds.is_as_near(mine, [(cpu, want)])
    for wrong in (complex(want[0]) * (1 + 4e-6), 0j, complex(0.0, float(RIGHT[0]))):
        other = mine.clone()
        other[0] = torch.tensor(wrong)
        assert not bounds.is_as_near(other, [(cpu, want)], atol=0, rtol=1e-6)


def test_no_complex_zero_nor_what_flushes_is_left_unjudged() -> None:
    want = torch.complex(RIGHT, RIGHT)
    cpu = want.to(torch.complex64)
    cpu[-1] *= 1.01
    mine = cpu.clone()
    mine[-5] = 0
    assert not bounds.is_as_near(mine, [(cpu, want)])
    assert not bounds.is_as_near(mine * 3, [(cpu, want)], flushes=True)


def test_an_overflow_on_the_cpu_excuses_no_other_result_of_its_magnitude() -> None:
    cpu = RIGHT.float()
    cpu[-1] = torch.inf
    mine = RIGHT.float()
    assert bounds.excess(mine, cpu, RIGHT, [X]) == ""
    mine[-2] *= 1.5
    assert "off by" in bounds.excess(mine, cpu, RIGHT, [X])


def powers(z: torch.Tensor, w: torch.Tensor, fault: str = "") -> torch.Tensor:
    """exp(w log z) in single precision, with an error in it."""
    size, angle = z.abs().log(), z.angle()
    size = {"half": size.half().float(), "squares": (z.real**2 + z.imag**2).log() / 2}.get(fault, size)
    angle = {"sign": -angle, "pi": angle * 1.0001}.get(fault, angle)
    real, turn = w.real * size - (0 if fault == "term" else w.imag * angle), w.real * angle + w.imag * size
    return torch.polar(real.exp(), turn)


@pytest.mark.parametrize("fault", ["", "half", "squares", "sign", "pi", "term"])
def test_an_element_is_as_near_as_the_cpu_there_and_beside_it_whatever_others_are(fault: str) -> None:
    generator = torch.Generator().manual_seed(0)
    parts = torch.empty(4, 4000).uniform_(-4, 4, generator=generator)
    small = torch.where(torch.rand(4000, generator=generator) < 0.1, 1e-20, 1.0)
    z, w = torch.complex(parts[0] * small, parts[1] * small), torch.complex(parts[2], parts[3])
    w[0] = torch.tensor(1e30j)  # of which the CPU's result has no digit
    sample = SampleInput(z, args=(w,))
    calls = [(each.input, each.args[0]) for each in (sample, *list_neighbors(sample))]
    pairs = [(a.pow(b), a.to(torch.complex128).pow(b.to(torch.complex128))) for a, b in calls]
    (cpu, want), *_ = pairs
    mine = powers(z, w, fault)
    assert compare.find_disagreement(mine, cpu, want, [z, w])
    excused = bounds.find_as_near(mine, pairs)
    assert (compare.find_disagreement(mine, cpu, want, [z, w], excused=excused) == "") is (fault == "")


def test_nothing_is_near_where_the_cpu_has_its_digits() -> None:
    x = torch.complex(X, X)
    want = x.to(torch.complex128) * 2
    assert not bounds.find_as_near(want.to(torch.complex64) * 1.0001, [(want.to(torch.complex64), want)]).any()
