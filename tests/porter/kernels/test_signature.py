"""The source that is written around a body."""

from __future__ import annotations

import pytest
from expecttest import assert_expected_inline

from porter.kernels.kernel import AddressSpace, Kernel, MetalParameter, Operand, TemplateArgument
from porter.kernels.signature import ATTRIBUTES, Content, generate

EXP = """
        uint elem = thread_position_in_grid.x;
        T tmp = inp[elem];
        out[elem] = metal::exp(tmp);
"""


def kernel(body: str, inputs: str = "x", outputs: str = "out", **rest: object) -> Kernel:
    return Kernel("f", tuple(inputs.split()), tuple(outputs.split()), body, **rest)  # type: ignore[arg-type]


def operands(names: str, metal: str = "float", rank: int = 1) -> tuple[Operand, ...]:
    return tuple(Operand(name, metal, rank) for name in names.split())


def signature(value: Kernel) -> str:
    source = generate(value, operands(" ".join(value.inputs)), operands(" ".join(value.outputs))).source
    return source[source.index("(") : source.index("{")]


def test_the_example_of_mlx() -> None:
    generated = generate(
        Kernel("myexp", ("inp",), ("out",), EXP),
        operands("inp", "half"),
        operands("out", "half"),
        (TemplateArgument("typename", "T", "float"),),
    )
    assert_expected_inline(
        generated.source,
        """\
#include <metal_stdlib>
using namespace metal;

template <typename T>
[[kernel]] void myexp_float_84b21fc0(
    device const half* inp [[buffer(0)]],
    device half* out [[buffer(1)]],
    uint3 thread_position_in_grid [[thread_position_in_grid]]) {
#line 2 "myexp body"
        uint elem = thread_position_in_grid.x;
        T tmp = inp[elem];
        out[elem] = metal::exp(tmp);
}

template [[host_name("myexp_float_84b21fc0")]] [[kernel]] decltype(myexp_float_84b21fc0<float>) myexp_float_84b21fc0<float>;
""",
    )


def test_what_the_body_asks_of_an_input_is_added() -> None:
    assert_expected_inline(
        signature(kernel("out[0] = x_shape[0] + x_strides[0] + x_ndim + x_storage_offset + out_shape[0];")),
        """\
(
    device const float* x [[buffer(0)]],
    constant const int* x_shape [[buffer(1)]],
    constant const long* x_strides [[buffer(2)]],
    constant const int& x_ndim [[buffer(3)]],
    constant const long& x_storage_offset [[buffer(4)]],
    device float* out [[buffer(5)]],
    constant const int* out_shape [[buffer(6)]]) """,
    )


def test_comments_and_literals_ask_for_nothing() -> None:
    assert "x_shape" not in signature(kernel("out[0] = 1; // x_shape\n/* x_ndim */"))


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_every_attribute_becomes_an_argument(name: str) -> None:
    assert f"{ATTRIBUTES[name].type} {name} [[{name}]]" in signature(kernel(f"out[0] = uint3({name}).x;"))


def test_attributes_under_other_names() -> None:
    value = kernel("out[id] = x[id];", parameters=(MetalParameter("id", "uint", "thread_position_in_grid"),))
    assert "uint id [[thread_position_in_grid]]" in signature(value)


def test_constants_and_numbers() -> None:
    inputs = (Operand("x", "float", 0, AddressSpace.CONSTANT), Operand("y", "int", 2, AddressSpace.CONSTANT))
    buffers = generate(kernel("out[0] = x + y[0];", "x y"), inputs, operands("out")).buffers
    assert [b.declaration for b in buffers[:2]] == [
        "constant const float& x [[buffer(0)]]",
        "constant const int* y [[buffer(1)]]",
    ]


def test_atomic_outputs() -> None:
    assert "device atomic<float>* out" in signature(kernel("out;", atomic_outputs=True))


def test_kernels_of_one_name_have_functions_of_their_own() -> None:
    first, second = (generate(kernel(f"out[0] = {n};"), operands("x"), operands("out")) for n in (1, 2))
    assert first.function != second.function
    assert generate(kernel("out[0] = 1;"), operands("x"), operands("out")).function == first.function


def test_the_header_is_part_of_the_hash() -> None:
    plain, other = (
        generate(kernel("out[0] = N;", header=f"#define N {n}"), operands("x"), operands("out")).function
        for n in (1, 2)
    )
    assert plain != other


def test_helpers_come_only_when_they_are_named() -> None:
    def source(body: str) -> str:
        return generate(kernel(body), operands("x"), operands("out")).source

    assert "ceildiv" not in source("out[0] = 1;")
    assert "N ceildiv(" in source("out[0] = ceildiv(5, 2);")
    assert "elem_to_loc(uint3" in source("out[0] = x[elem_to_loc(0u, x_shape, x_strides, x_ndim)];")


def test_tensors_take_several_indices() -> None:
    value = kernel("C[g.x, g.y] = A[k, g.y] * TYPE4(0).x;", "A", "C", placeholders=(("A", "TYPE"),), tensors=True)
    generated = generate(value, operands("A", "half", 2), operands("C", "half", 2))
    assert_expected_inline(
        generated.source[generated.source.index("[[kernel]]") :],
        """\
[[kernel]] void f_89fcfc47(
    device const half* A_data [[buffer(0)]],
    constant const int* A_extents [[buffer(1)]],
    device half* C_data [[buffer(2)]],
    constant const int* C_extents [[buffer(3)]]) {
  const porter_tensor<device const half*, 2> A{A_data, A_extents};
  const porter_tensor<device half*, 2> C{C_data, C_extents};
#line 1 "f body"
C(g.x, g.y) = A(k, g.y) * half4(0).x;
}
""",
    )
    assert [b.content for b in generated.buffers] == [Content.DATA, Content.EXTENTS] * 2


@pytest.mark.parametrize(
    "text", ["int x_shape[2] = {1, 2};", "const int* x_shape = p;", "vec<int> x_shape;", "int x_shape = 0;"]
)
def test_what_the_body_declares_itself_is_not_added(text: str) -> None:
    assert "x_shape [[" not in signature(kernel(f"{text} out[0] = x_shape[0];"))


@pytest.mark.parametrize(
    "text", ["out[0] = n * x_shape[0];", "return x_shape[0];", "if (a * x_shape == b) {}", "b = a & x_shape;"]
)
def test_expressions_are_no_declarations(text: str) -> None:
    assert "x_shape [[" in signature(kernel(text))
