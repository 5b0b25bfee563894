"""What the cost of a program tells of long rows."""

from pathlib import Path

import pytest

from porter.core.layout import METAL_HEADERS
from porter.recording.loop_cost import count_cost
from porter.recording.slice_cost import list_together, slice_lines
from tests.porter.metal.native.test_slices import variance
from tests.porter.plan.native import fork

WELFORD = "float3 threadgroup_welford_combine(threadgroup T* data, unsigned idx, unsigned size);\n"


def test_what_is_stored_of_slices_is_counted(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    with (checkout.root / METAL_HEADERS / "reduction_utils.h").open("a") as file:
        file.write(WELFORD)
    [mean] = fork.mean_square().cases
    assert list(slice_lines(checkout, mean)) == [
        "long rows: 2 launches, 1.06 times the bytes at most, with what is stored of slices"
    ]
    [found] = variance().cases
    assert list(slice_lines(checkout, found)) == [
        "long rows: 2 launches, 1.25 times the bytes at most, with what is stored of slices"
    ]


def test_moments_and_indices_are_found_in_the_pass_of_others(tmp_path: Path) -> None:
    [found] = [each.nest for each in variance().cases[0].nests]
    assert not list(list_together(fork.copy_fork(tmp_path / "without"), [found]))
    checkout = fork.copy_fork(tmp_path)
    with (checkout.root / METAL_HEADERS / "reduction_utils.h").open("a") as file:
        file.write(WELFORD)
    [squares] = list_together(checkout, [found])
    assert squares.height == 2
    read = {fork.INPUT: 42}
    assert count_cost([found], read).ratio == pytest.approx((2 * 42 + 1) / 43)
    assert count_cost([found], read, {squares}).ratio == 1


def test_maps_and_forks_without_reductions_have_none(tmp_path: Path) -> None:
    assert not list(slice_lines(fork.copy_fork(tmp_path), fork.turned().cases[0]))
    plain = fork.copy_fork(tmp_path / "plain", reductions=False)
    assert not list(slice_lines(plain, fork.mean_square().cases[0]))
