"""Flags and numbers of dimensions that no recorded call varies."""

from dataclasses import replace
from pathlib import Path

import pytest

from porter.core.errors import PorterError
from porter.loops.program import Programs
from porter.plan.planner import plan_operator
from tests.porter.plan.native import fork


def with_flag(programs: Programs, *values: bool) -> Programs:
    """The programs with each of their calls for each of some values of `keepdim`."""
    cases = tuple(
        replace(
            case,
            calls=tuple(
                replace(call, others={**call.others, "keepdim": value}) for call in case.calls for value in values
            ),
        )
        for case in programs.cases
    )
    return replace(programs, cases=cases)


def test_a_flag_that_all_calls_give_alike_and_the_graph_reads_is_refused(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    known = with_flag(fork.largest(), False)
    with pytest.raises(PorterError, match=r"PTR361 all recorded calls of largest.out give `keepdim` the value False"):
        plan_operator(checkout, "largest", programs=lambda _: known)


def test_a_flag_of_both_values_is_not(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    known = with_flag(fork.largest(), False, True)
    assert plan_operator(checkout, "largest", programs=lambda _: known).complete


def test_a_size_by_its_dimension_is_taken_of_as_many_dimensions_as_were_recorded(tmp_path: Path) -> None:
    plan = plan_operator(fork.copy_fork(tmp_path), "turned", programs=lambda _: fork.turned())
    check = (
        'TORCH_CHECK_NOT_IMPLEMENTED(self.dim() == 2, "turned: expected self of 2 dimensions, but got ", self.dim());'
    )
    assert check in plan.changes.diff()
    assert plan.notes == ("turned: `self` of 2 dimensions only, as in all recorded calls; the port refuses others",)
