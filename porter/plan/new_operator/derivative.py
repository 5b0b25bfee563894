"""The derivatives of an expression, by sympy."""

# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from porter.core.errors import PorterError
from porter.plan.new_operator.expression import find_names, parse_expression, write_formula
from porter.plan.new_operator.functions import FUNCTIONS, OF_DERIVATIVES

# sympy's own names of functions, where they differ.
_TO_SYMPY = {"abs": "Abs", "lgamma": "loggamma"}


def derive(tree: ast.expr, tensors: Collection[str], names: Collection[str]) -> Mapping[str, str] | None:
    """Returns the formula of derivatives.yaml for each tensor that an expression uses.

    Returns None if sympy is not installed, or if a derivative is not an expression of the same functions.
    """
    try:
        import sympy
    except ImportError:
        return None
    symbols = {name: sympy.Symbol(name, real=True) for name in names}
    functions = {ours: getattr(sympy, theirs) for ours, theirs in _TO_SYMPY.items()}
    functions |= {
        "exp2": lambda x: sympy.Integer(2) ** x,
        "expm1": lambda x: sympy.exp(x) - 1,
        "log1p": lambda x: sympy.log(1 + x),
        "log2": lambda x: sympy.log(x) / sympy.log(2),
        "log10": lambda x: sympy.log(x) / sympy.log(10),
        "hypot": lambda x, y: sympy.sqrt(x * x + y * y),
        "pow": sympy.Pow,
    }
    value = sympy.sympify(ast.unparse(tree), locals={**functions, **symbols, "e": sympy.E, "pi": sympy.pi})
    found: dict[str, str] = {}
    for name in (each for each in tensors if each in find_names(tree)):
        slope = sympy.diff(value, symbols[name])
        try:
            parsed = parse_expression(_spell(sympy.sstr(slope)), names, {**FUNCTIONS, **OF_DERIVATIVES})
        except PorterError:
            return None
        found[name] = "grad" if slope == 1 else f"grad * {write_formula(parsed, tensors)}"
    return found


def _spell(text: str) -> str:
    """Returns sympy's text of an expression in the words of porter's."""
    for ours, theirs in _TO_SYMPY.items():
        text = text.replace(f"{theirs}(", f"{ours}(")
    return text.replace("E**", "e**")
