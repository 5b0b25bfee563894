"""What Apple's compiler refuses and clang takes: each form that is refused, and its neighbors that are not."""

from __future__ import annotations

import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import compile_kernels, host_names

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
LIMIT = "[[max_total_threads_per_threadgroup(64)]]"
POSITION = "[[thread_position_in_grid]]"

REFUSED = {
    f"kernel void f(device float* x) {LIMIT} {{}}": "cannot be applied to types",
    f"template <class T>\nkernel void f(device T* x) {LIMIT} {{}}": "cannot be applied to types",
    f"kernel {LIMIT} void f(device float* x) {{}}": "an attribute list cannot appear here",
    f"kernel void {LIMIT} f(device float* x) {{}}": "an attribute list cannot appear here",
    f"kernel void f(uint i {POSITION}, uint3 n [[threads_per_threadgroup]]) {{}}": "`uint` of .* and `uint3` of",
    f"kernel void f(ushort2 i {POSITION}, uint3 n [[threadgroup_position_in_grid]]) {{}}": "`ushort2` of .* `uint3`",
    "constexpr float weights[2] = {1, 2};\nkernel void f() {}": "`weights` must reside in constant address space",
    "namespace n { static const int size = 3; }\nkernel void f() {}": "`size` must reside in constant",
    "template <class T> constexpr bool wide = sizeof(T) > 4;\nkernel void f() {}": "`wide` must reside in constant",
    "constexpr uint first{1};\nkernel void f() {}": "`first` must reside in constant",
    "kernel void f(device uint* x) { uint half = x[0] / 2; x[1] = half; }": "`half` is a type",
    "uint2 pair(uint a, uint bfloat) { return {a, bfloat}; }\nkernel void f() {}": "`bfloat` is a type",
    "void g(device uint* half) { half[0] = 1; }\nkernel void f() {}": "`half` is a type",
    "kernel void f(device float* x) { double sum = x[0]; x[1] = sum; }": "`double` is not supported",
    "kernel void f(device float* x [[buffer(31)]]) {}": "buffer 31 is out of bounds: the last one is 30",
    "kernel void f(device float* x [[buffer(0)]], constant int& n [[buffer(0)]]) {}": "two arguments are buffer 0",
}

TAKEN = (
    f"{LIMIT} kernel void f(device float* x) {{}}",
    f"{LIMIT} [[kernel]] void f(device float* x) {{}}",
    f"[[kernel]] {LIMIT} void f(device float* x) {{}}",
    "[[kernel, max_total_threads_per_threadgroup(64)]] void f(device float* x) {}",
    f"kernel void f {LIMIT} (device float* x) {{}}",
    "template <class T> [[kernel]] void g(device T* x) {}\n"
    'template [[host_name("f")]] [[kernel]] decltype(g<half>) g<half>;',
    f"kernel void f(uint3 i {POSITION}, ushort3 n [[threads_per_threadgroup]], uint k [[thread_index_in_simdgroup]],\n"
    "              ushort t [[thread_index_in_threadgroup]]) {}",
    f"kernel void f(uint i {POSITION}, ushort n [[threads_per_threadgroup]]) {{}}",
    "constant constexpr float weights[2] = {1, 2};\nconstexpr constant uint size = 2;\n"
    "static constant const int sizes[] = {3};\nconstexpr sampler nearest(filter::nearest);\nkernel void f() {}",
    "template <class T> constexpr constant bool wide = sizeof(T) > 4;\nkernel void f() {}",
    "constexpr float twice(float x = 1) { return 2 * x; }\nstruct S { static constexpr int n = 3; float x = 1; };\n"
    "enum class E : uint { a = 1 };\nusing T = float;\nkernel void f() {}",
    "kernel void f(device half* x, const device half* y) {\n  x[0] = half(2) * half(y[0]) + (half)1;\n"
    "  const half2 v = vec<half, 2>(x[0], half());\n  x[1] = v.x * half(sizeof(half));\n}",
    "template <class T, class U = half> U to(T x) { return static_cast<U>(x); }\n"
    "kernel void f(device float* x) { x[0] = to<float, half>(x[0]) + to<uint>(3u); }",
)


@pytest.mark.parametrize("source", REFUSED)
def test_what_apples_compiler_refuses(source: str) -> None:
    with pytest.raises(OverlayError, match=REFUSED[source]) as error:
        host_names(HEADER + source)
    assert error.value.code == "PTR101"


@pytest.mark.parametrize("source", TAKEN)
def test_what_it_takes(source: str) -> None:
    assert host_names(HEADER + source) == ("f",)
    compile_kernels(HEADER + source, ["f"])


def test_one_index_may_be_that_of_two_arguments_of_which_a_constant_chooses() -> None:
    choice = "constant bool wide [[function_constant(0)]];\nconstant bool narrow = !wide;\n"
    pair = ", ".join(f"device float* {name} [[buffer(30), function_constant({name})]]" for name in ("wide", "narrow"))
    assert host_names(f"{HEADER}{choice}kernel void f({pair}) {{}}") == ("f",)


def test_the_first_of_several_is_named_at_its_line() -> None:
    source = f"kernel void f() {{}}\nconst int a = 1;\nkernel void g() {LIMIT} {{}}\n"
    with pytest.raises(
        OverlayError, match=r"`a` must reside in constant address space \(and 1 more error\)\nprogram_source:5: "
    ) as error:
        host_names(HEADER + source)
    assert str(error.value.place) == "program_source:4"
