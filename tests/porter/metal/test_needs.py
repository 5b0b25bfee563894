"""Which of the fork's macros register a functor."""

import pytest

from porter.core.dtypes import Kind
from porter.metal.functor import Body, Functor, Overload
from porter.metal.macros import MacroFamily
from porter.metal.needs import list_needs
from tests.porter.metal.test_lambda_body import LAMBDA, subject
from tests.porter.metal.test_macros import book


@pytest.mark.parametrize(("number", "opmath"), [("float(T(1e-12f))", False), ("1e-4f", True)])
def test_a_functor_that_rounds_a_number_to_halves_is_not_called_with_floats(number: str, opmath: bool) -> None:
    body = Body(("const float a_ = float(a);", f"return static_cast<T>(a_ / b_ + {number});"), "T", "a test")
    functor = Functor("bend", ("a", "b"), (), (Overload((Kind.FLOATING,), body),), ())
    needs = list(list_needs(subject(LAMBDA), functor, MacroFamily.BINARY, book(), castout=False))
    of_half = [need.opmath for need in needs if any(instance.input == "half" for instance in need.instances)]
    assert of_half == [opmath]
