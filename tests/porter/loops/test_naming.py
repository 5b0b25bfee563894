"""Names of numbers in kernels."""

from porter.loops.host_values import Apply, Constant, Scalar
from porter.loops.printing import name_number


def test_a_name_is_an_identifier_and_unlike_those_in_use() -> None:
    difference = Apply("-", (Constant(1), Scalar("diagonal")))
    name = name_number(difference, ())
    assert name.isidentifier()
    assert name.endswith("minus_diagonal")
    assert name_number(difference, (name,)) == f"{name}_2"


def test_what_two_scalars_bound_has_short_names() -> None:
    start, end = Scalar("start"), Scalar("end")
    assert name_number(Apply("min", (start, end)), ()) == "lower"
    assert name_number(Apply("max", (start, end)), ()) == "upper"
    step = Apply("/", (Apply("-", (end, start)), Scalar("steps")))
    assert name_number(step, ()) == "step"
