"""Unions with vectors are assigned as a whole, by kernels whose results can be worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library
from aten_overlay.metal.sanitizer.checks import NAMES
from aten_overlay.metal.source.declarations import parse
from aten_overlay.metal.source.lexer import read
from aten_overlay.metal.source.unions import find_assignments

SOURCE = Path(__file__).with_name("unions.metal")
EXPECTED: dict[str, list[float]] = {
    "named": [7, 2, -1],
    "nameless": [12, 4, 2, 10.5, 3, 1],
    "templates": [3, 7, 6],
}


@pytest.fixture(scope="module", params=[(), NAMES], ids=["plain", "watched"])
def library(request: pytest.FixtureRequest) -> Library:
    return Library(compile_kernels(SOURCE, host_names(SOURCE), Options(sanitize=request.param)))


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_assigned_has_all_bytes(library: Library, name: str) -> None:
    out = np.full(len(EXPECTED[name]), np.nan, np.float32)
    library.run(name, [out, np.arange(1, 33, dtype=np.float32)], [1])
    assert out.tolist() == EXPECTED[name]


def test_lines_after_an_assignment_keep_their_numbers() -> None:
    text = '# 7 "own.metal"\nunion U {\n  float4 a;\n} u;\nkernel void k(device U* out) { out[0] = none; }\n'
    with pytest.raises(OverlayError, match=r"own\.metal:10: .*undeclared identifier 'none'"):
        compile_kernels(text, ["k"])


def owners(text: str) -> list[str]:
    """The names of classes that get an assignment, "" for one that a typedef or variable names."""
    source = read(text)
    found = [edit for entry in parse(source).entries for edit in find_assignments(source, entry.declaration)]
    names = [match[1] for _, each in found if (match := re.search(r"^inline (\w+)&", each, re.M))]
    return ["" if name.startswith("pm_class_") else name for name in names]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("union U { float4 a; uint b; };", ["U"]),
        ("union alignas(16) U { float4 a; };", ["U"]),
        ("union [[maybe_unused]] U { float4 a; };", ["U"]),
        ("struct S { union { float4 a; uint b; }; };", ["S"]),
        ("struct S : Base { struct { union { float4 a; }; }; union { half4 h; }; };", ["S"]),
        ("struct S { union { float4 a; } u; };", [""]),
        ("struct S { union U { float4 a; } u; };", ["U"]),
        ("typedef union { float4 a; } U;", [""]),
        ("template <typename T> struct S { union { T a; float b; }; };", ["S"]),
        ("template <> struct S<float> { union { float4 a; float b; }; };", ["S"]),
        ("union U { float4 a; thread U& operator=(const thread U& o) thread; };", []),
        ("void f() { union { float a; uint b; }; a = 1; }", []),
        ("void f() { union { float4 a; } u, v; }", [""]),
        ("union U; void f(union U a, thread union U* b);", []),
        ("struct S { float4 a; };", []),
        ("enum E { a, b }; struct S { E e; };", []),
    ],
)
def test_the_class_that_is_assigned_gets_it(text: str, names: list[str]) -> None:
    assert owners(text) == names
