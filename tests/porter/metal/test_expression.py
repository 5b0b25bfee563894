"""Printed expressions have the brackets that they need: the syntax tree is the same as with brackets everywhere."""

from __future__ import annotations

import pytest

from porter.languages.cpp_parser import parse_expression
from porter.metal.expression import Binding, Printed, fill_form
from porter.mpsgraph.operations import operations
from tests.porter.metal.test_parentheses import without_parentheses

FORMS = {form for row in operations().values() for form in (row.msl, row.complex_msl) if "{0}" in form}
OPERANDS = (Printed("a + b", Binding.SUM), Printed("c ? d : e", Binding.CONDITION), Printed("-f", Binding.MINUS))


def tree(text: str) -> object:
    return without_parentheses(parse_expression("made up", text))


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_form_keeps_its_operands_and_is_one_itself(form: str) -> None:
    for at in range(len(OPERANDS)):
        operands = OPERANDS[at:] + OPERANDS[:at]
        printed = fill_form(form, operands)
        bracketed = form.format(*(f"({each})" for each in operands))
        assert tree(printed.text) == tree(bracketed)
        assert tree(f"{printed.within(Binding.PRODUCT)} * x") == tree(f"({bracketed}) * x")
        assert tree(f"{printed.within(Binding.MINUS)} + x") == tree(f"({bracketed}) + x")
        assert tree(f"x / {printed.operand}") == tree(f"x / ({bracketed})")
