"""Names of numbers in kernels."""

from porter.loops.host_values import Binary, Constant, Operator, Scalar
from porter.loops.naming import name_number


def test_a_name_is_an_identifier_and_unlike_those_in_use() -> None:
    difference = Binary(Operator.SUBTRACT, Constant(1), Scalar("diagonal"))
    name = name_number(difference, ())
    assert name.isidentifier()
    assert name.endswith("minus_diagonal")
    assert name_number(difference, (name,)) == f"{name}_2"
