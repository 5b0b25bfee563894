"""What the cost of a program tells of long rows."""

from pathlib import Path

from porter.core.layout import METAL_HEADERS
from porter.recording.slice_cost import slice_lines
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
        "long rows: 2 launches, 1.25 times the bytes at most, with what is stored of slices;"
        " a mean and the squares around it in one pass"
    ]


def test_maps_and_forks_without_reductions_have_none(tmp_path: Path) -> None:
    assert not list(slice_lines(fork.copy_fork(tmp_path), fork.turned().cases[0]))
    plain = fork.copy_fork(tmp_path / "plain", reductions=False)
    assert not list(slice_lines(plain, fork.mean_square().cases[0]))
