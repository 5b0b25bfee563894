from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.core.dtypes import FLOAT
from porter.loops.host_values import (
    Arguments,
    Binary,
    Constant,
    Element,
    EndDim,
    HostValue,
    Length,
    Operator,
    Rank,
    Scalar,
    Size,
    SizeProduct,
    SizesOver,
    TensorValue,
    WrappedDim,
    describe,
    evaluate,
    list_names,
)

CALL = Arguments(
    {
        "input": TensorValue((3, 5, 7, 11), FLOAT),
        "tensors[0]": TensorValue((2, 3), FLOAT),
        "tensors[1]": TensorValue((4, 3), FLOAT),
    },
    {"dim": -2, "dims": (-1, 1), "normalized_shape": (7, 11), "eps": 0.5, "weight": None, "mean": True},
)
DIM = WrappedDim(Scalar("dim"), "input")
ONE = Constant(1)
NORMALIZED = Binary(Operator.SUBTRACT, Rank("input"), Length("normalized_shape"))


@pytest.mark.parametrize(
    ("value", "text", "number"),
    [
        (Constant(1.5), "1.5", 1.5),
        (Scalar("eps"), "eps", 0.5),
        (Scalar("weight"), "weight", None),
        (Element("normalized_shape", -1), "normalized_shape[-1]", 11),
        (Element("normalized_shape", 2), "normalized_shape[2]", None),
        (Length("tensors"), "tensors.size()", 2),
        (Rank("input"), "input.dim()", 4),
        (DIM, "dim", 2),
        (EndDim("dims", "input", False), "first(dims)", 1),
        (Size("input", EndDim("dims", "input", True)), "input.size(last(dims))", 11),
        (EndDim("weight", "input", True), "last(weight)", 3),
        (Size("input", DIM), "input.size(dim)", 7),
        (Size("input", Constant(-1)), "input.size(-1)", 11),
        (Size("input", Constant(4)), "input.size(4)", None),
        (Size("tensors[1]", Constant(0)), "tensors[1].size(0)", 4),
        (SizeProduct("input"), "input.numel()", 1155),
        (SizeProduct("input", None, DIM), "prod(input[:dim])", 15),
        (SizeProduct("input", Binary(Operator.ADD, DIM, ONE)), "prod(input[dim + 1:])", 11),
        (SizeProduct("input", Constant(-3)), "prod(input[-3:])", 385),
        (SizeProduct("input", NORMALIZED), "prod(input[input.dim() - normalized_shape.size():])", 77),
        (SizesOver("input", "dims"), "prod(input over dims)", 55),
        (SizesOver("input", "dims", others=True), "prod(input without dims)", 21),
        (SizesOver("input", "weight"), "prod(input over weight)", 1155),
        (Binary(Operator.DIVIDE, ONE, SizeProduct("input")), "1 / input.numel()", 1 / 1155),
        (Binary(Operator.FLOOR_DIVIDE, Rank("input"), Constant(0)), "input.dim() // 0", None),
        (Binary(Operator.LEAST, Rank("input"), Length("dims")), "min(input.dim(), dims.size())", 2),
        (Binary(Operator.MULTIPLY, Binary(Operator.SUBTRACT, DIM, ONE), ONE), "(dim - 1) * 1", 1),
    ],
)  # fmt: skip
def test_a_value_is_printed_and_computed(value: HostValue, text: str, number: float | None) -> None:
    assert describe(value) == text
    assert evaluate(value, CALL) == number


def test_a_value_knows_its_arguments() -> None:
    assert list_names(SizeProduct("input", NORMALIZED)) == {"input", "normalized_shape"}
    assert list_names(Binary(Operator.ADD, Size("weight", DIM), Element("dims", 0))) == {
        "weight",
        "dim",
        "input",
        "dims",
    }


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.data())
def test_products_around_a_dimension_multiply_to_all_elements(shape: list[int], data: st.DataObject) -> None:
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    call = Arguments({"self": TensorValue(tuple(shape), FLOAT)}, {"dim": dim})
    at = WrappedDim(Scalar("dim"), "self")
    after = Binary(Operator.ADD, at, ONE)
    parts: list[HostValue] = [SizeProduct("self", None, at), Size("self", at), SizeProduct("self", after)]
    found = [evaluate(part, call) for part in parts]
    assert found == [math.prod(shape[: dim % len(shape)]), shape[dim], math.prod(shape[dim % len(shape) + 1 :])]
    over, others = (evaluate(SizesOver("self", "dim", each), call) for each in (False, True))
    assert (over, others) == (shape[dim], math.prod(shape) // shape[dim])
