"""Names of numbers in kernels."""

from porter.loops.host_values import Binary, Constant, Operator, Scalar
from porter.loops.printing import name_number


def test_a_name_is_an_identifier_and_unlike_those_in_use() -> None:
    difference = Binary(Operator.SUBTRACT, Constant(1), Scalar("diagonal"))
    name = name_number(difference, ())
    assert name.isidentifier()
    assert name.endswith("minus_diagonal")
    assert name_number(difference, (name,)) == f"{name}_2"


def test_what_two_scalars_bound_has_short_names() -> None:
    start, end = Scalar("start"), Scalar("end")
    assert name_number(Binary(Operator.LEAST, start, end), ()) == "lower"
    assert name_number(Binary(Operator.GREATEST, start, end), ()) == "upper"
    step = Binary(Operator.DIVIDE, Binary(Operator.SUBTRACT, end, start), Scalar("steps"))
    assert name_number(step, ()) == "step"
