"""Faults at the ends of random numbers, which few of them show."""

from __future__ import annotations

import pytest
import torch

from porter.verdict.suite.distributions import find_cases, find_difference, find_excess, make_extreme

COUNT = 1 << 18


def draw(seed: int) -> torch.Tensor:
    return torch.rand(COUNT, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_number_below_1_that_is_rounded_to_1_is_seen(dtype: torch.dtype) -> None:
    theirs, right = (
        torch.zeros(COUNT, dtype=dtype).uniform_(generator=torch.Generator().manual_seed(seed)) for seed in (1, 2)
    )
    wrong = draw(3).to(dtype)
    assert find_excess(right.double(), theirs.double()) == ""
    assert find_excess(wrong.double(), theirs.double()).endswith("numbers, as 1.0, are above all of the CPU")
    assert find_difference(wrong[:20_000], theirs[:20_000]) == ""


@pytest.mark.parametrize("base", ["bernoulli", "exponential", "geometric"])
def test_a_number_that_is_rounded_to_1_in_16_bits_is_seen_where_it_matters(base: str) -> None:
    case = next(each for each in find_cases(base) if each.arguments == (0.25,))
    assert make_extreme(case).arguments == (0.999755859375,)
    tensor_case = next(find_cases("uniform"))
    assert make_extreme(tensor_case) == tensor_case


def test_a_probability_of_1_is_told_from_one_below() -> None:
    theirs = (draw(1) < 1 - 2.0**-12).double()
    right = (draw(2) < 1 - 2.0**-12).double()
    assert find_excess(right, theirs) == ""
    assert "are below all drawn here" in find_excess(torch.ones(COUNT, dtype=torch.float64), theirs)


def test_normal_numbers_are_beyond_each_other_by_chance_alone() -> None:
    one, other = (torch.randn(COUNT, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    assert find_excess(one, other) == find_excess(other, one) == ""


def sort_pairs(part: torch.Tensor) -> torch.Tensor:
    even = len(part) // 2 * 2
    return torch.cat((part[:even].reshape(-1, 2).sort(-1).values.flatten(), part[even:]))


ORDERS = {
    "in no order": lambda part: torch.arange(len(part)),
    "from a random number on": lambda part: (torch.arange(len(part)) + part[0]) % len(part),
    "within halves": lambda part: torch.cat((part[part < len(part) // 2], part[part >= len(part) // 2])),
    "with neighbors in order": sort_pairs,
}


@pytest.mark.parametrize("fault", ["", *ORDERS])
def test_orders_that_are_not_random_are_told_from_the_cpus(fault: str) -> None:
    [case] = find_cases("randperm")
    ours, theirs = (case.fill(torch.zeros(20_000), torch.Generator().manual_seed(seed)) for seed in (1, 2))
    if fault:
        parts = ours[1:].split(5_000)
        ours = torch.cat([ours[:1], *(ORDERS[fault](part) for part in parts)])
    assert case.find_wrong(ours) == ""
    assert bool(find_difference(case.measure(ours), case.measure(theirs))) == bool(fault)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.bfloat16, torch.float16, torch.int64])
def test_an_order_has_each_number_once(dtype: torch.dtype) -> None:
    [case] = find_cases("randperm")
    ours = case.fill(torch.zeros(1_203, dtype=dtype)[3::2], torch.Generator().manual_seed(1))
    assert case.find_wrong(ours) == ""
    ours[-1] = ours[-2]
    assert "are drawn twice" in case.find_wrong(ours)
