"""Layouts of types, and copies of what has padding, each on a few lines of LLVM's intermediate representation."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from aten_overlay.metal.passes.ir import NotUnderstood
from aten_overlay.metal.sanitizer.copies import copy_values
from aten_overlay.metal.sanitizer.layouts import Layouts
from aten_overlay.metal.sanitizer.marks import mark_undefined

TYPES = """\
%three = type <{ [0 x <16 x i8>], %union.anon, [4 x i8] }>
%union.anon = type { %names }
%names = type { float, float, float }
%plain = type { float, i8 }
%packed = type <{ i8, i32, i16 }>
%union.either = type { i16, [6 x i8] }
%all = type { %three, i8, %plain, [2 x %plain] }
"""
LAYOUTS = Layouts.read(TYPES)


def spans(kind: str) -> list[tuple[int, int]]:
    return [(each.offset, each.size) for each in LAYOUTS.find(kind).scalars]


@pytest.mark.parametrize(
    ("kind", "size", "scalars"),
    [
        ("i1", 1, [(0, 1)]),
        ("<4 x half>", 8, [(0, 2), (2, 2), (4, 2), (6, 2)]),
        ("{ i8, double }", 16, [(0, 1), (8, 8)]),
        ("%three", 16, [(0, 4), (4, 4), (8, 4)]),
        ("%plain", 8, [(0, 4), (4, 1)]),
        ("%packed", 7, [(0, 1), (1, 4), (5, 2)]),
        ("[2 x %plain]", 16, [(0, 4), (4, 1), (8, 4), (12, 1)]),
        ("%union.either", 8, [(0, 2), *((byte, 1) for byte in range(2, 8))]),
        ("%all", 44, [(0, 4), (4, 4), (8, 4), (16, 1), (20, 4), (24, 1), (28, 4), (32, 1), (36, 4), (40, 1)]),
    ],
)
def test_where_values_lie(kind: str, size: int, scalars: list[tuple[int, int]]) -> None:
    assert (LAYOUTS.find(kind).size, spans(kind)) == (size, scalars)


@pytest.mark.parametrize("kind", ["%unknown", "opaque", "", "[2 x %unknown]"])
def test_a_type_without_a_size_is_refused(kind: str) -> None:
    with pytest.raises(NotUnderstood):
        LAYOUTS.find(kind)


def copies(body: str, parameters: str = "ptr %p, ptr %q, i64 %n") -> list[tuple[int, int, int]]:
    """Byte, size and alignment of each copy in a function, after `copy_values`."""
    lines = "".join(f"  {line}\n" for line in dedent(body).strip().split("\n"))
    text = copy_values(f"{TYPES}define void @k({parameters}) {{\nentry:\n{lines}  ret void\n}}\n{NODES}")
    assert "tbaa" not in text
    starts = {
        name: int(at) for name, at in re.findall(r"(%pm\.copy\S+\.from) = getelementptr i8, ptr \S+, i64 (\d+)", text)
    }
    found = re.findall(r"memcpy\S*\(ptr align (\d+) \S+, ptr align \d+ (\S+), i64 (\d+)", text)
    return [(starts.get(source, 0), int(size), int(align)) for align, source, size in found]


NODES = "!7 = !{i64 0, i64 4, !8, i64 4, i64 1, !8}\n!9 = !{i64 0, i64 12, !8, i64 12, i64 32, !8}\n"
COPY = "call void @llvm.memcpy.p0.p0.i64(ptr align {0} %{1}, ptr align {0} %{2}, i64 {3}, i1 false), !dbg !1"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        pytest.param(COPY.format(8, "p", "q", 8) + ", !tbaa.struct !7", [(0, 4, 8), (4, 1, 4)], id="what_it_says"),
        pytest.param(COPY.format(4, "p", "q", 44) + ", !tbaa.struct !9", [(0, 44, 4)], id="without_padding"),
        pytest.param(COPY.format(4, "p", "q", 44), [(0, 44, 4)], id="not_known"),
        pytest.param(
            "%a = alloca %three, align 16\n" + COPY.format(16, "a", "q", 16), [(0, 8, 16), (8, 4, 8)], id="variable"
        ),
        pytest.param(
            "%m = getelementptr inbounds %all, ptr %q, i32 0, i32 1\n" + COPY.format(4, "p", "m", 9),
            [(0, 1, 4), (4, 4, 4), (8, 1, 4)],
            id="members",
        ),
        pytest.param(
            "%e = getelementptr inbounds [9 x %plain], ptr %q, i64 0, i64 %n\n" + COPY.format(4, "e", "p", 8),
            [(0, 4, 4), (4, 1, 4)],
            id="element",
        ),
        pytest.param("%a = alloca i64, align 8\n" + COPY.format(8, "a", "q", 16), [(0, 16, 8)], id="more_than_it_has"),
        pytest.param(
            "%a = alloca %plain, align 4\n" + COPY.format(4, "a", "q", 2), [(0, 2, 4)], id="a_part_of_a_value"
        ),
    ],
)
def test_a_copy_is_that_of_its_values(body: str, found: list[tuple[int, int, int]]) -> None:
    assert copies(body) == found


def test_a_parameter_has_the_type_that_is_returned_in_it() -> None:
    parameters = "ptr noalias sret(%plain) align 4 %r, ptr %q"
    assert copies(COPY.format(4, "r", "q", 8), parameters) == [(0, 4, 4), (4, 1, 4)]


FILLED = "%filled = type <{ %three, i8, [3 x i8], float }>\n"
NAMED = "define void @f(ptr %p) {\n  %m = getelementptr inbounds %filled, ptr %p, i32 0, i32 2\n  ret void\n}\n"


@pytest.mark.parametrize(("named", "unread"), [("", ["i16", "i8"]), (NAMED, [])], ids=["padding", "member"])
def test_bytes_that_nothing_names_are_copied_and_not_read(named: str, unread: list[str]) -> None:
    body = f"  %a = alloca %filled, align 16\n  {COPY.format(16, 'a', 'q', 24)}\n  ret void\n"
    text = copy_values(f"{TYPES}{FILLED}{named}define void @k(ptr %q) {{\nentry:\n{body}}}\n")
    assert re.findall(r"= load (i\d+), .*, !pm\.unread !\{\}", text) == unread


def test_a_variable_is_marked_where_it_has_values() -> None:
    text = mark_undefined(
        f"{TYPES}define void @k() {{\nentry:\n  %a = alloca %plain, align 4\n"
        "  call void @llvm.memset.p0.i64(ptr align 4 %a, i8 -86, i64 8, i1 false), !annotation !1\n  ret void\n}\n"
        '!1 = !{!"auto-init"}\n'
    )
    assert re.findall(r"store (i\d+) ", text) == ["i32", "i8"]
