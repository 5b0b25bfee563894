"""A new operator as a value: its schema, what it computes, and its derivatives."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from porter.core.errors import PorterError
from porter.plan.new_operator.derivative import derive
from porter.plan.new_operator.expression import find_names, parse_expression
from porter.plan.new_operator.functor import read_expression
from porter.plan.new_operator.schema import Schema, parse_schema


@dataclass(frozen=True)
class Wish:
    """What is asked for: a schema, an expression of its arguments, and a Metal functor that computes the same.

    One of the last two may be empty.
    """

    schema: str
    expression: str
    functor: str = ""


@dataclass(frozen=True, eq=False)
class NewOperator:
    """`derivatives` has the formula for each tensor, and is None if they could not be derived."""

    schema: Schema
    expression: ast.expr
    derivatives: Mapping[str, str] | None


def read_operator(wish: Wish) -> NewOperator:
    """Reads a wish. Raises PTR314 to PTR317 and PTR319 for what cannot be used."""
    schema = parse_schema(wish.schema)
    names = [each.name for each in schema.arguments]
    tree = parse_expression(wish.expression or read_expression(schema, wish.functor), names)
    unused = [each.name for each in schema.tensors if each.name not in find_names(tree)]
    if unused:
        what = f"the expression does not use {unused[0]}, a tensor of the schema"
        raise PorterError("PTR317", what, hint="Use each Tensor, or take it from the schema.")
    return NewOperator(schema, tree, derive(tree, [each.name for each in schema.tensors], names))
