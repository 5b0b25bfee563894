"""The front end: tokens, declarations, generated code, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Argument, Options, arguments, compile_kernels, host_names
from aten_overlay.metal.launch import Library
from aten_overlay.metal.source.declarations import parse
from aten_overlay.metal.source.generate import Edit, apply, generate
from aten_overlay.metal.source.lexer import read
from aten_overlay.metal.source.targets import host

FORMS = """#include <metal_stdlib>
using namespace metal;
namespace deep { namespace er {
template <typename T, enable_if_t<(sizeof(T) >= 2), bool> = true>
kernel void copied(constant T* x, device T* out, uint i [[thread_position_in_grid]]) { out[i] = x[i]; }
} }
template [[host_name("by_" "list")]] kernel void ::deep::er::copied<float>(constant float*, device float*, uint);
template [[host_name("by_type")]] [[kernel]] decltype(deep::er::copied<half>) deep::er::copied<half>;
template <typename A, typename B>
void kernel swapped(device A* a [[buffer(1)]], device B* b [[buffer(0)]]) { a[0] = b[0]; }
template [[host_name("swapped")]] void kernel swapped<int, long>(device int*, device long*);
[[kernel]] void plain(
    device float* out, threadgroup float* shared [[threadgroup(2)]], uint2 p [[thread_position_in_grid]]) {
  out[p.x] = 1;
}
[[host_name("renamed")]] kernel void named(device float* out) { out[0] = 1; }
kernel void later [[host_name("after_the_name")]] [[maybe_unused]] (device float* out) { out[0] = 1; }
kernel void unused_is_kept(device float* out) { out[0] = 1; }
"""


def test_every_form_of_a_kernel_is_found() -> None:
    assert host_names(FORMS) == (
        "by_list",
        "by_type",
        "swapped",
        "plain",
        "renamed",
        "after_the_name",
        "unused_is_kept",
    )
    compile_kernels(FORMS, host_names(FORMS))


def test_arguments_are_those_of_the_definition() -> None:
    assert arguments(FORMS, "by_type") == (
        Argument("x", "buffer", 0, "constant T *"),
        Argument("out", "buffer", 1, "device T *"),
        Argument("i", "thread_position_in_grid", 0, "uint"),
    )
    assert [(a.name, a.index) for a in arguments(FORMS, "swapped")] == [("a", 1), ("b", 0)]
    assert [(a.kind, a.index) for a in arguments(FORMS, "plain")][:2] == [("buffer", 0), ("threadgroup", 2)]


def test_only_requested_kernels_are_checked_beyond_syntax() -> None:
    source = (
        FORMS + '\ntemplate [[host_name("wrong")]] kernel void swapped<float, float2>(device float*, device float2*);'
    )
    compile_kernels(source, ["plain"])
    with pytest.raises(OverlayError) as error:
        compile_kernels(source, ["wrong"])
    assert error.value.code == "PTR101"


def test_namesakes_of_a_kernel_in_other_namespaces_are_not_compiled() -> None:
    source = """#include <metal_stdlib>
namespace there {
template <typename T> using made = T;
template <typename T> kernel void dense(device made<T>* x, uint i [[thread_position_in_grid]]) { x[i] = 2; }
}
using namespace there;
template <typename T> using made = T;
template <typename T> kernel void dense(device made<T>* x [[buffer(1)]], uint i [[thread_position_in_grid]]) { x[i] = 3; }
template [[host_name("theirs")]] kernel void ::there::dense<float>(device float*, uint);
template [[host_name("ours")]] kernel void ::dense<float>(device float*, uint);
"""
    assert [a.index for a in arguments(source, "theirs") if a.kind == "buffer"] == [0]
    x = np.zeros(4, dtype=np.float32)
    Library(compile_kernels(source, ["theirs"])).run("theirs", [x], [4])
    assert x.tolist() == [2] * 4
    with pytest.raises(OverlayError, match="'made' is ambiguous"):
        compile_kernels(source, ["ours"])


def test_synchronization_is_found_through_helpers_and_functors() -> None:
    source = """#include <metal_stdlib>
struct waits { template <typename T> T operator()(T v) { return metal::simd_sum(v); } };
struct adds { template <typename T> T operator()(T v) { return v + v; } };
template <typename F> float apply(float v) { return F()(v); }
template <typename F> kernel void k(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  x[i] = apply<F>(x[i]);
}
template [[host_name("k_waits")]] kernel void k<waits>(device float*, uint);
template [[host_name("k_adds")]] kernel void k<adds>(device float*, uint);
"""
    library = Library(compile_kernels(source, ["k_waits", "k_adds"]))
    assert library.synchronizes("k_waits") and not library.synchronizes("k_adds")


def test_a_source_may_end_with_the_name_of_a_template() -> None:
    source = "template <class T> T twice(T x) { return x + x; }\nkernel void f(device float* y) { y[0] = twice(1.0f); }\ntwice"
    assert "twice(1.0f)" in generate(parse(read(source)), ["f"], {}, host("0"))


def test_generated_code() -> None:
    source = read(
        "constant int size = 2;\nkernel void f(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
        "  threadgroup float shared[2];\n  threadgroup float* p = shared;\n  x[i] = p[i] + size;\n}\n"
    )
    text = generate(parse(source), ["f"], {}, host("0"))
    body = text[text.index("const int") : text.index("PM_LANE_SOURCE")]
    assert_expected_inline(
        body,
        """\
const int size = 2;
inline __attribute__((always_inline)) void f( float* x , uint i ) {
  static thread_local float shared[2];
   float* p = shared;
  x[i] = p[i] + size;
} """,
    )


CASES = {
    "PTR102": ("kernel void abcd(device float* x) {}", "abce", "Did you mean abcd"),
    "PTR103": ("kernel void f(device float* x [[buffer(size)]]) {}", "f", "not an integer constant"),
    "PTR104": (
        "inline float g(device float* p) { return p[0]; }\ninline float g(threadgroup float* p) { return p[1]; }\n"
        "template <typename P> float h(P p) { return g(p); }\nkernel void f(device float* x) { x[0] = h(x); }", "f",
        "an address space that does not show",
    ),
    "PTR105": (
        "constant int n [[function_constant(4)]];\nkernel void f(device int* x) { x[0] = n; }", "f", r"`n` \(4\)",
    ),
    "PTR108": (
        'kernel void f(device int* x) {}\n[[host_name("f")]] kernel void g(device int* x) {}', "f", "two kernels",
    ),
    "PTR109": ("kernel void f(float4 v [[stage_in]]) {}", "f", "stage_in"),
}  # fmt: skip


OVERLOADED = """#include <metal_stdlib>
struct Holder { device float* far; float own; };
constexpr Holder operator+(Holder a, const thread Holder& b) { return {a.far, a.own + b.own}; }
constexpr Holder operator+(Holder a, const device Holder& b) { return {a.far, a.own + b.own}; }
constant float known[2] = {100, 200};
float first(threadgroup float* p);
float first(const device float* p) { return p[0]; }
float first(threadgroup float* p) { return 10 * p[0]; }
float first(thread float& p) { return 1000 * p; }
float first(constant float* p) { return p[1]; }
template <typename T> float both(device T* a, threadgroup T* b, int n) { return n * first(a) - first(b); }
template <typename T> float both(threadgroup T* a, device T* b, int n) { return n * first(a) + first(b); }
kernel void f(device float* out, threadgroup float* shared, uint i [[thread_position_in_threadgroup]]) {
  threadgroup float here[4];
  here[i] = 2;
  shared[i] = 3;
  float own = 4;
  Holder holder;
  holder.far = out + 8;
  auto later = &here[0];
  out[8] = 5;
  out[0] = first(out + 8);
  out[1] = first(shared);
  out[2] = first(&here[i]);
  out[3] = first(own);
  out[4] = first(known);
  out[5] = first(holder.far);
  out[6] = first((threadgroup float*)later) + first(later);
  out[7] = both(shared, out + 8, 7) + both<float>(out + 8, shared, 1);
}
"""


def test_overloads_by_address_space_may_differ() -> None:
    out = np.zeros(9, np.float32)
    Library(compile_kernels(OVERLOADED, ["f"])).run("f", [out], [1], threadgroup_bytes=[16])
    assert out.tolist() == [5, 30, 20, 4000, 200, 5, 40, 215 + 5 - 30, 5]


def test_overloads_by_address_space_that_wait_collapse() -> None:
    body = "float first) { simdgroup_barrier(mem_flags::mem_none); return *p + first; }"
    source = f"""inline float g(device const float* p, {body}
inline float g(threadgroup const float* p, {body}
template <typename P, typename Q> float both(P p, Q q) {{ return g(p, 1) + g(q, 2); }}
kernel void f(device float* x) {{ threadgroup float t[1]; t[0] = 7; x[0] = both(x, t); }}"""
    x = np.ones(1, np.float32)
    Library(compile_kernels(f"#include <metal_stdlib>\nusing namespace metal;\n{source}", ["f"])).run("f", [x], [1])
    assert x.tolist() == [11]


def test_member_functions_overloaded_by_address_space_may_not_differ() -> None:
    source = """struct S { int v; int get() const device { return v; } int get() const thread { return -v; } };
kernel void f(device S* s) { s[0].v = s[0].get(); }"""
    with pytest.raises(OverlayError, match="PTR104 this overload differs"):
        compile_kernels(source, ["f"])


@pytest.mark.parametrize("code", CASES)
def test_refusals(code: str) -> None:
    source, name, message = CASES[code]
    with pytest.raises(OverlayError, match=message) as error:
        compile_kernels(f"#include <metal_stdlib>\n{source}", [name])
    assert error.value.code == code


@pytest.mark.parametrize(
    ("attribute", "hint"),
    [("thread_position_in_gri", "Did you mean [[thread_position_in_grid]]?"), ("color", "Pass the data in a buffer.")],
)
def test_a_misspelled_attribute_is_told(attribute: str, hint: str) -> None:
    with pytest.raises(OverlayError) as error:
        compile_kernels(f"kernel void f(device int* x, uint i [[{attribute}]]) {{ x[i] = 1; }}", ["f"])
    assert (error.value.code, error.value.hint) == ("PTR109", hint)


def test_a_compile_error_keeps_its_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.metal"
    file.write_text("#include <metal_stdlib>\n// a comment\nkernel void f(device float* x) {\n  x[0] = missing;\n}\n")
    with pytest.raises(OverlayError, match="undeclared identifier 'missing'") as error:
        compile_kernels(file, ["f"])
    assert error.value.place is not None
    assert (error.value.place.file, error.value.place.line) == (str(file), 4)


def test_a_place_counts_lines_after_its_marker() -> None:
    source = read('# 10 "a.metal"\nint a;\n\nint b;\n# 3 "b.h" 2\nint c;\n')
    assert [str(source.place(i)) for i in (0, 3, 6)] == ["a.metal:10", "a.metal:12", "b.h:3"]


@given(st.text(alphabet="abc_01.'\"\\{}[]()<>:;#=+-* \n", max_size=60))
def test_tokens_are_in_order_and_brackets_match_or_are_refused(text: str) -> None:
    try:
        source = read(text)
    except OverlayError as error:
        assert error.code == "PTR103"
        return
    for i, (start, end) in enumerate(zip(source.starts, source.ends, strict=True)):
        assert text[start:end] == source.tokens[i]
        assert i == 0 or source.ends[i - 1] <= start
        assert source.match[i] == -1 or source.match[source.match[i]] == i


PAIRS = st.sampled_from(["()", "[]", "{}"])
BALANCED = st.recursive(
    st.sampled_from(["a", "b1", "0.1", "==", ";"]),
    lambda inner: st.builds(lambda pair, parts: pair[0] + " ".join(parts) + pair[1], PAIRS, st.lists(inner)),
)


@given(BALANCED)
def test_text_with_matching_brackets_is_read(text: str) -> None:
    source = read(text)
    assert "".join(source.tokens) == text.replace(" ", "")


@given(st.text(max_size=30), st.data())
def test_edits_replace_exactly_their_spans(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), unique=True, max_size=8)))
    spans = list(zip(cuts[::2], cuts[1::2], strict=False))
    edits = [Edit(a, b, f"<{a}>") for a, b in spans]
    expected = text
    for a, b in reversed(spans):
        expected = expected[:a] + f"<{a}>" + expected[b:]
    assert apply(text, edits) == expected


def test_unknown_arithmetic_is_refused() -> None:
    with pytest.raises(ValueError, match="arithmetic must be one of"):
        compile_kernels(FORMS, ["plain"], Options(arithmetic="loose"))
