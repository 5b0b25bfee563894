"""What the cost of a program tells of long rows, and of what kernels find in one pass."""

import pytest

from porter.metal.codegen.kernel import KernelStyle
from porter.recording.cost import count_cost, list_together, slice_lines
from tests.porter.metal.codegen.test_slices import WELFORD, variance
from tests.porter.plan.recorded import fork

PLAIN = KernelStyle(True, False)


def test_what_is_stored_of_slices_is_counted() -> None:
    [mean], [found] = fork.mean_square().cases, variance().cases
    told = "long rows: 2 launches, {} times the bytes at most, with what is stored of slices"
    assert list(slice_lines(PLAIN, mean)) == [told.format("1.06")]
    assert list(slice_lines(WELFORD, found)) == [told.format("1.25")]
    assert not list(slice_lines(PLAIN, found))


def test_maps_have_no_slices() -> None:
    assert not list(slice_lines(PLAIN, fork.turned().cases[0]))


def test_moments_are_found_in_one_pass() -> None:
    [found] = [each.nest for each in variance().cases[0].nests]
    assert not list(list_together(PLAIN, [found]))
    [squares] = list_together(WELFORD, [found])
    assert squares.height == 2
    read = {fork.INPUT: 42}
    assert count_cost([found], read).ratio == pytest.approx((2 * 42 + 1) / 43)
    assert count_cost([found], read, {squares}).ratio == 1
