"""Metal kernels with what they have to compute, for a GPU and the host alike.

A case runs one kernel over its grid, in every form that it has. Small integers make sums exact in any order.
"""

from __future__ import annotations

from tests.aten_overlay.cuda.case import Case, find_difference
from tests.aten_overlay.cuda.grid_cases import grid_cases
from tests.aten_overlay.cuda.lane_cases import lane_cases
from tests.aten_overlay.cuda.memory_cases import memory_cases
from tests.aten_overlay.cuda.number_cases import matrix_cases, number_cases

__all__ = ["Case", "all_cases", "find_difference"]


def all_cases() -> list[Case]:
    """Every case, in a fixed order and with the same numbers each time."""
    return [*lane_cases(), *memory_cases(), *matrix_cases(), *number_cases(), *grid_cases()]
