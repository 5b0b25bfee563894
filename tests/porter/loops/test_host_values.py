from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.core.codec import decode, encode
from porter.core.dtypes import FLOAT
from porter.loops.host_values import (
    Apply,
    Arguments,
    Constant,
    CppName,
    Element,
    EndDim,
    HostValue,
    Length,
    Listed,
    Method,
    Property,
    Rank,
    SameSizes,
    Scalar,
    Select,
    Size,
    SizeProduct,
    Sizes,
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
SMALL = Apply("<", (Rank("input"), Constant(3)))
NORMALIZED = Apply("-", (Rank("input"), Length("normalized_shape")))


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
        (SizeProduct("input", Apply("+", (DIM, ONE))), "prod(input[dim + 1:])", 11),
        (SizeProduct("input", Constant(-3)), "prod(input[-3:])", 385),
        (SizeProduct("input", NORMALIZED), "prod(input[input.dim() - normalized_shape.size():])", 77),
        (SizesOver("input", "dims"), "prod(input over dims)", 55),
        (SizesOver("input", "dims", others=True), "prod(input without dims)", 21),
        (SizesOver("input", "weight"), "prod(input over weight)", 1155),
        (Apply("/", (ONE, SizeProduct("input"))), "1 / input.numel()", 1 / 1155),
        (Apply("quotient", (Rank("input"), Constant(0))), "input.dim() // 0", None),
        (Apply("min", (Rank("input"), Length("dims"))), "min(input.dim(), dims.size())", 2),
        (Apply("*", (Apply("-", (DIM, ONE)), ONE)), "(dim - 1) * 1", 1),
        (Apply("ceil_div", (Rank("input"), Constant(3))), "ceil_div(input.dim(), 3)", 2),
        (Apply("and", (SMALL, Apply("not", (Scalar("mean"),)))), "(input.dim() < 3) && not(mean)", False),
        (SameSizes(Sizes("input", -2), Listed((Constant(7), Size("input", Constant(3))))), "input[-2:] == {7, input.size(3)}", True),
        (SameSizes(Sizes("tensors[0]"), Sizes("tensors[1]", 0, 1)), "tensors[0][:] == tensors[1][:1]", False),
        (Select(SMALL, ONE, Size("input", Constant(9))), "input.dim() < 3 ? 1 : input.size(9)", None),
        (Select(SMALL, Size("input", Constant(9)), ONE), "input.dim() < 3 ? input.size(9) : 1", 1),
        (Rank(Method("input", "view", (CppName("kInt"),))), "view(input, kInt).dim()", None),
        (Property("input", "stride", Constant(0)), "input.stride(0)", None),
    ],
)  # fmt: skip
def test_a_value_is_printed_and_computed(value: HostValue, text: str, number: float | None) -> None:
    assert describe(value) == text
    assert evaluate(value, CALL) == number


def test_numbers_of_different_types_are_different_values() -> None:
    assert len({Constant(1), Constant(1.0), Constant(True)}) == 3


def test_values_of_computed_tensors_are_stored() -> None:
    copy = Select(SMALL, "input", Method("input", "contiguous"))
    value = Apply("*", (Size(copy, Constant(-1)), Scalar("alpha", type="int")))
    assert decode(encode(value, HostValue), HostValue) == value


def test_a_value_knows_its_arguments() -> None:
    assert list_names(SizeProduct("input", NORMALIZED)) == {"input", "normalized_shape"}
    assert list_names(Apply("+", (Size("weight", DIM), Element("dims", 0)))) == {
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
    after = Apply("+", (at, ONE))
    parts: list[HostValue] = [SizeProduct("self", None, at), Size("self", at), SizeProduct("self", after)]
    found = [evaluate(part, call) for part in parts]
    assert found == [math.prod(shape[: dim % len(shape)]), shape[dim], math.prod(shape[dim % len(shape) + 1 :])]
    over, others = (evaluate(SizesOver("self", "dim", each), call) for each in (False, True))
    assert (over, others) == (shape[dim], math.prod(shape) // shape[dim])
