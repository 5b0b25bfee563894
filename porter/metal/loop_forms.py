"""Operations of the loop form in Metal: the forms of the table, and those of operations that the table lacks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from porter.core.dtypes import Kind
from porter.core.errors import PorterError
from porter.loops.expressions import Expr, Op
from porter.metal.expression import parenthesize
from porter.mpsgraph.operations import by_op

_FORMS = {
    "bitwiseAND": "{0} & {1}", "bitwiseOR": "{0} | {1}", "bitwiseXOR": "{0} ^ {1}", "bitwiseNOT": "~{0}",
    "bitwiseLeftShift": "{0} << {1}", "bitwiseRightShift": "{0} >> {1}",
    "floorModulo": "c10::metal::remainder({0}, {1})", "modulo": "c10::metal::fmod({0}, {1})",
    "log1p": "c10::metal::log1p({0})",
}  # fmt: skip

# What is not done to each part alone: comparisons, and products and quotients of two values.
_OF_BOTH_PARTS = ("notEqual", "equal", "multiplication", "division")
_SCALES = ("multiplication", "division")


def find_form(operation: str, of_complex: bool = False) -> str:
    """The MSL form of an operation, also `of_complex` numbers where it differs. Raises PTR345 if there is none."""
    row = by_op().get(operation)
    found = row.msl if row and row.msl else _FORMS.get(operation)
    if of_complex and row and operation in _OF_BOTH_PARTS:
        found = row.complex_msl
    if found is None:
        raise PorterError("PTR345", f"the operation `{operation}` has no loop form", hint="See docs/errors/PTR345.md.")
    return found


def find_form_of(expr: Expr, has_complex: bool) -> str:
    """The form of an operation in a kernel that may have complex numbers: a constant scales both parts."""
    scales = expr.attribute in _SCALES and any(arg.op is Op.NUMBER for arg in expr.args)
    return find_form(str(expr.attribute), has_complex and not scales)


def fill_form(form: str, args: Sequence[str]) -> str:
    """A form with its operands, in parentheses where an operator needs them."""
    is_infix = re.search(r"\} [^ ,]+ |^[-~!]|\} [^ ,]+$", form) is not None
    return form.format(*(parenthesize(arg) if is_infix else arg for arg in args))


def list_operands(expr: Expr) -> list[Expr]:
    """The operands of an expression. Conditions have the value that an index is read from, which may be wider."""
    if expr.op not in (Op.LESS, Op.EQUAL):
        return list(expr.args)
    return [each.args[0] if each.op is Op.READ_INDEX and _is_integral(each.args[0]) else each for each in expr.args]


def _is_integral(value: Expr) -> bool:
    return value.dtype is not None and value.dtype.kind is Kind.INTEGRAL


def list_uses(expr: Expr) -> list[Expr]:
    """The operands of an expression, as often as its form has them."""
    if expr.op is not Op.CALL:
        return list_operands(expr)
    form = find_form(str(expr.attribute))
    return [arg for i, arg in enumerate(expr.args) for _ in range(form.count(f"{{{i}}}"))]
