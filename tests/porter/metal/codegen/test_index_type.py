"""When kernels compute indices in 32 bits."""

from __future__ import annotations

from porter.loops.host_values import Apply, Constant, Named, Scalar, Size
from porter.metal.codegen.host_values import list_chosen, write_fits

TYPES = {"diagonal": "int", "factor": "int", "p": "float", "keepdim": "bool"}
DIAGONAL = Named("diagonal", Scalar("diagonal"), 1)
ABOVE = Named("one_minus_diagonal", Apply("-", (Constant(1), Scalar("diagonal"))), 0)
FACTOR = Named("factor", Scalar("factor"), 2)
WIDTH = Named("width", Apply("*", (Size("self", Constant(0)), Scalar("factor"))), 6)
P = Named("p", Scalar("p"), 2.0)


def test_a_number_that_nothing_limits_is_chosen() -> None:
    assert list_chosen([DIAGONAL, ABOVE, P], TYPES) == [DIAGONAL, ABOVE]


def test_a_factor_of_sizes_is_not() -> None:
    assert list_chosen([FACTOR, WIDTH, DIAGONAL], TYPES) == [DIAGONAL]
    assert list_chosen([Named("n", Size("self", Constant(0)), 3)], TYPES) == []


def test_each_has_to_leave_room_for_an_index() -> None:
    assert write_fits(["out", "self", "out"], ["k"]) == (
        "canUse32BitIndexMath(out) && canUse32BitIndexMath(self) && k >= INT_MIN / 2 && k <= INT_MAX / 2"
    )
    assert write_fits(["out"], [], "kLargestRowIndex") == "canUse32BitIndexMath(out, kLargestRowIndex)"
