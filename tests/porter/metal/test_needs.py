"""Which of the fork's macros register a functor."""

import pytest

from porter.core.dtypes import Kind
from porter.metal.families.elementwise import list_needs
from porter.metal.functor import Body, Functor, Overload, Provenance
from porter.metal.macros import MacroFamily
from tests.porter.metal.test_lambda_body import LAMBDA, subject
from tests.porter.metal.test_macros import book


@pytest.mark.parametrize("rounds", [False, True])
def test_a_functor_that_rounds_to_halves_is_not_called_with_floats(rounds: bool) -> None:
    body = Body(("return a / (b + T(1e-12f));",), "T", Provenance("a test"), rounds=rounds)
    functor = Functor("bend", ("a", "b"), (), (Overload((Kind.FLOATING,), body),), ())
    needs = list(list_needs(subject(LAMBDA), functor, MacroFamily.BINARY, book(), castout=False))
    of_half = [need.opmath for need in needs if any(instance.input == "half" for instance in need.instances)]
    assert of_half == [not rounds]
