"""Values of host code as C++."""

import pytest

from porter.core.errors import PorterError
from porter.loops.host_values import (
    Apply,
    Constant,
    Element,
    EndDim,
    HostValue,
    Length,
    Rank,
    Scalar,
    Size,
    SizeProduct,
    SizesOver,
    WrappedDim,
)  # fmt: skip
from porter.metal.codegen.host_values import Names, list_headers, write_value

NAMES = Names(
    {
        "self": "input", "dim": "dim", "value": "value", "pad": "padding", "dims": "dims", "weight": "weight_opt",
        "order": "order", "power": "power_ref", "scale": "scale",
    },
    {
        "self": "Tensor", "dim": "int", "value": "Scalar", "pad": "SymInt[]", "dims": "int[1]", "weight": "Tensor?",
        "order": "Scalar?", "power": "Scalar?", "scale": "float?",
    },
    frozenset(("weight_opt",)),
    frozenset(("power_ref",)),
)  # fmt: skip
DIM = WrappedDim(Scalar("dim"), "self")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Scalar("dim"), "dim"),
        (Scalar("scale"), "scale.value()"),
        (Scalar("value"), "value.to<double>()"),
        (Element("pad", 1), "padding[1]"),
        (Element("pad", -2), "padding[padding.size() - 2]"),
        (Length("pad"), "static_cast<int64_t>(padding.size())"),
        (Rank("weight"), "weight_opt->dim()"),
        (Size("self", Constant(-1)), "input.size(-1)"),
        (Size("self", DIM), "ensure_nonempty_size(input, dim)"),
        (SizeProduct("self"), "input.numel()"),
        (
            SizeProduct("self", Apply("+", (DIM, Constant(1)))),
            "c10::numelements_from_dim(maybe_wrap_dim(dim, input.dim()) + 1, input.sizes())",
        ),
        (SizeProduct("self", None, Constant(-2)), "c10::numelements_to_dim(input.dim() - 2, input.sizes())"),
        (SizeProduct("self", Constant(1), Constant(-1)), "c10::numelements_between_dim(1, input.dim() - 1, input.sizes())"),
        (SizesOver("self", "dim", True), "input.numel() / ensure_nonempty_size(input, dim)"),
        (Apply("/", (Constant(1), SizeProduct("self"))), "static_cast<double>(1) / input.numel()"),
        (Apply("min", (Scalar("dim"), Constant(3))), "std::min<int64_t>(dim, 3)"),
        (Apply("max", (Scalar("value"), Constant(0))), "std::max<double>(value.to<double>(), 0)"),
        (Scalar("order"), "order->to<double>()"),
        (Scalar("order", 2), "order.value_or(2).to<double>()"),
        (Scalar("power"), "power_ref.get().to<double>()"),
        (Scalar("power", 2), "(power_ref.has_value() ? power_ref.get().to<double>() : 2)"),
        (
            Apply("*", (Apply("quotient", (Rank("self"), Constant(2))), Constant(3))),
            "(input.dim() / 2) * 3",
        ),
    ],
)  # fmt: skip
def test_values(value: HostValue, text: str) -> None:
    assert write_value(value, NAMES) == text


def test_a_list_of_dimensions_is_multiplied_over() -> None:
    product = "[&](int64_t size, int64_t dim) { return size * input.size(dim); }"
    over = f"std::accumulate(dims.begin(), dims.end(), int64_t(1), {product})"
    assert write_value(SizesOver("self", "dims"), NAMES) == f"dims.empty() ? input.numel() : {over}"


@pytest.mark.parametrize("value", [EndDim("dims", "self", True), SizesOver("self", "pad")])
def test_values_without_cpp_are_refused(value: HostValue) -> None:
    with pytest.raises(PorterError, match="PTR372"):
        write_value(value, NAMES)


def test_headers_are_those_of_what_is_called() -> None:
    assert list_headers(SizeProduct("self")) == frozenset()
    assert list_headers(SizeProduct("self", DIM)) == {"c10/util/accumulate.h", "ATen/WrapDimUtils.h"}
