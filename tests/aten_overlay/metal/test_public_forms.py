"""What public Metal code is written in, by kernels whose results can be worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library
from aten_overlay.metal.source.swizzles import choose_library
from shared.metal_batch import compile_many

SOURCE = Path(__file__).with_name("public_forms.metal")
CONSTANTS = ((20, 3), (21, True), (8, 5))
RIGHT = ("arrays", "spaces", "swizzles", "scalars", "matrices", "logs", "too_much", "limited_2", "limited_2_1",
         "twice", "swizzles_of_swizzles", "known", "packed_conversions",
         "repeated_colors")  # fmt: skip


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(compile_kernels(SOURCE, RIGHT))


def _run(library: Library, name: str, count: int, *others: np.ndarray) -> list[float]:
    out = np.full(count, np.nan, np.float32)
    library.run(name, [out, *others], [1])
    return [float(v) for v in out]


def test_vertex_and_fragment_functions_are_no_kernels() -> None:
    assert not {"draw", "shade"} & set(host_names(SOURCE))


@pytest.mark.parametrize(("has_extra", "expected"), [(True, 42), (False, -1)])
def test_function_constants_are_expressions_and_parameters_depend_on_them(has_extra: bool, expected: int) -> None:
    options = Options(constants=((20, 3), (21, has_extra), (8, 5)))
    library = Library(compile_kernels(SOURCE, ["constants"], options))
    out, extra = np.zeros(5, np.float32), np.array([42], np.int32)
    library.run("constants", [out, None, None, extra if has_extra else None], [1])
    assert out.tolist() == [3, 6, 5, expected, 0]


def test_a_constant_without_a_value_fails_its_users_alone() -> None:
    found = dict(compile_many(SOURCE, ["constants", "needs_unset"], Options(constants=CONSTANTS)))
    assert isinstance(found["constants"], Path)
    assert isinstance(found["needs_unset"], OverlayError) and found["needs_unset"].code == "PTR105"


def test_broken_kernels_fail_alone() -> None:
    found = dict(compile_many(SOURCE, ["broken", "swizzles", "broken_parameter"]))
    assert isinstance(found["swizzles"], Path)
    broken, parameter = found["broken"], found["broken_parameter"]
    assert isinstance(broken, OverlayError) and isinstance(parameter, OverlayError)
    assert (broken.code, parameter.code) == ("PTR101", "PTR109")
    line = next(n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) if "no_such_name" in text)
    assert str(broken.place) == f"{SOURCE}:{line}"


def test_a_kernel_whose_function_is_defined_elsewhere_fails_alone() -> None:
    found = dict(compile_many(SOURCE, ["swizzles", "calls_elsewhere"]))
    assert isinstance(found["swizzles"], Path)
    error = found["calls_elsewhere"]
    assert isinstance(error, OverlayError)
    assert (error.code, error.what.partition(": ")[2]) == ("PTR348", "elsewhere(float)")


def test_a_kernel_may_be_named_as_functions_are(library: Library) -> None:
    assert _run(library, "twice", 1) == [10]


def test_thread_limits_are_expressions_of_template_arguments(library: Library) -> None:
    assert (library.thread_limit("limited_2"), library.thread_limit("limited_2_1")) == (256, 64)


def test_array_parameters_unrolled_loops_and_constructors_of_constants(library: Library) -> None:
    out, seen = np.zeros(4, np.float32), np.zeros(1, np.uint32)
    library.run("arrays", [np.array([5, 7], np.int64), np.array([2, 3], np.int32), out, seen], [1])
    assert out.tolist() == [10, 21, 3, 4]
    assert seen[0] == 7


def test_members_overloaded_by_address_space(library: Library) -> None:
    assert _run(library, "spaces", 5, np.array([0.25], np.float32)) == [3.75, 1, 2.5, 1, 9]


def test_swizzles_compute_as_vectors(library: Library) -> None:
    # v is (4, 6, 3, 4) once its first half has been increased
    assert _run(library, "swizzles", 6) == [7, 10, 0x4000, 6 + 36 + 5, -3, 21]


def test_numbers_beside_vectors(library: Library) -> None:
    found = _run(library, "scalars", 12)
    assert found == [1, -np.inf, 2.5, 3 + 2, 16, 3, 65504, 1, 4 + 4, 1 + 1, 1, 7]


def test_types_that_convert_to_numbers_count_as_those(library: Library) -> None:
    values = np.arange(16, dtype=np.float32)
    assert _run(library, "known", 4, values) == [6 + 800, 4 + 600, 2 + 400, 5.5]


def test_swizzles_of_swizzles_are_places_too(library: Library) -> None:
    corners = np.array([7, 80], np.float32)
    found = _run(library, "swizzles_of_swizzles", 5, corners)
    assert found == [4, 1 + 20 + 30, 20 + 10 * 4, 1 * 4 + 20 * 30 + 60, 87]


def test_swizzles_of_colors_may_repeat_them(library: Library) -> None:
    # v is (1 + 3, 1 + 3, 1 + 2, 1 + 1), then (8, 8, 3, 2)
    found = _run(library, "repeated_colors", 4, np.array([1, 2, 3, 4], np.float32))
    assert found == [4 + 40 + 300 + 2000, 8 + 8, 3 * (8 + (3 - 8) * 8) + 2, 7]


def test_vectors_have_swizzles_if_the_source_names_one_wherever_it_stands() -> None:
    assert choose_library("v.x = v.w + f(color.b, arg) + g(args...\n  arg)").name == "unswizzled.h"
    assert choose_library("rows -> zw").name == "metal_stdlib"
    assert choose_library('v.\n# 7 "header.h"\nwzyx').name == "metal_stdlib"
    source = """#include <metal_stdlib>
#define PAIR z ## x
#define OF(vector, part) vector. \\
    part
kernel void spread(device float* x) { metal::float4 v(1, 2, 3, 4); x[0] = OF(v, PAIR).y; }"""
    values = np.zeros(1, np.float32)
    Library(compile_kernels(source, ["spread"])).run("spread", [values], [1])
    assert values[0] == 1


def test_matrices_convert_and_accumulate(library: Library) -> None:
    assert _run(library, "matrices", 6) == [3, 4, 6, 9, 17, 4 + 2]


def test_packed_vectors_convert_to_those_of_other_elements(library: Library) -> None:
    found = _run(library, "packed_conversions", 9, np.array([17, -2, 35, 4], np.int8))
    assert found == [2 + 17, 28 - 2, 6 + 35, 8 + 4, 4, -2, 17, 2, -1]


def test_a_kernel_has_the_name_of_a_library_function() -> None:
    text = (
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "kernel void abs(device float* out [[buffer(0)]]) { out[0] = metal::abs(-3.0f); }\n"
    )
    assert _run(Library(compile_kernels(text, ["abs"])), "abs", 1) == [3]


def test_simd_names_of_types() -> None:
    text = (
        "#include <simd/simd.h>\nkernel void named(device float* out [[buffer(0)]]) {\n"
        "  const simd::float4 a = simd_float4(1, 2, 3, 4);\n  const matrix_float4x4 m = simd_float4x4(2.0);\n"
        "  const vector_float4 b = m * a;\n  out[0] = b.w + simd::dot(a.xy, b.xy);\n}\n"
    )
    assert _run(Library(compile_kernels(text, ["named"])), "named", 1) == [8 + 10]


def test_a_log_goes_to_standard_error(library: Library, capfd: pytest.CaptureFixture[str]) -> None:
    out = np.array([0.5], np.float32)
    library.run("logs", [out], [1])
    assert (capfd.readouterr().err, out[0]) == ("porter forms: 3 is not 0.50\n", 1)


def test_threadgroup_memory_beyond_the_limit_is_refused(library: Library) -> None:
    with pytest.raises(OverlayError, match="32772 bytes of threadgroup memory; the limit is 32768"):
        library.run("too_much", [np.zeros(4, np.float32)], [4])
