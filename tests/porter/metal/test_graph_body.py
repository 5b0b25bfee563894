"""The old graph as a functor's body: offered where its form is exact, left where a type would be rounded."""

from __future__ import annotations

from typing import Any, cast

import pytest

from porter.core import dtypes
from porter.core.dtypes import DType
from porter.metal.candidates import translate_graph
from porter.metal.functor import Body, FunctorSpec, FunctorStyle
from porter.mpsgraph.graph import Call, Case, Graph, Input


def body(op: str, dtype: DType) -> Body | None:
    """The body that a graph of one operation gives."""
    graph = Graph(("self",), (), (Case(dtype, (), Call(op, (Input("self", dtype),), dtype)),))
    unread = cast(Any, None)
    return translate_graph(
        FunctorSpec((), ("self",), (), unread, unread, graph, unread, FunctorStyle.of("")), dtype, "T"
    )


@pytest.mark.parametrize("op", ["floor", "exponent", "sign", "erf"])
def test_a_function_of_real_numbers_is_not_offered_for_integers(op: str) -> None:
    """16777217 would become 16777216."""
    assert body(op, dtypes.INT) is None
    assert body(op, dtypes.FLOAT) is not None


def test_integer_functions_of_metal_are_offered() -> None:
    found = body("absolute", dtypes.INT)
    assert found is not None and found.statements == ("return static_cast<T>(::metal::abs(x));",)
