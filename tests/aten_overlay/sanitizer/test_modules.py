"""The parts that watch code is made of, each on a few lines of LLVM's intermediate representation."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from aten_overlay.metal.headers import INCLUDE
from aten_overlay.metal.passes.ir import functions
from aten_overlay.metal.sanitizer.instrument import defer_to_sanitizer, watch_accesses
from aten_overlay.metal.sanitizer.marks import MOST_BYTES, mark_undefined
from aten_overlay.metal.sanitizer.meetings import Turns, mark_meetings, shuffles, watches_accesses
from aten_overlay.metal.sanitizer.places import Places, without_places
from aten_overlay.metal.sanitizer.private import watch_undefined
from aten_overlay.metal.sanitizer.roots import Kind, Root, Roots

KERNEL = """\
define void @pm_lane_source_0(ptr %buffers, ptr %threadgroup, ptr %where, i32 %i) {
entry:
  %array = alloca [4 x float], align 16
  %out = load ptr, ptr %buffers, align 8
  %slot = getelementptr i8, ptr %buffers, i64 16
  %in = load ptr, ptr %slot, align 8
  %shared = load ptr, ptr %threadgroup, align 8
  %grid = load ptr, ptr %where, align 8
  %next = getelementptr float, ptr %in, i64 1
  %either = select i1 true, ptr %in, ptr %next
  %mixed = select i1 true, ptr %in, ptr %out
  %loaded = load ptr, ptr %in, align 8
  %tile = tail call ptr @llvm.threadlocal.address.p0(ptr @_ZZ1kE4tile)
  %first = getelementptr float, ptr %array, i64 0
  %any = getelementptr [4 x float], ptr %array, i64 0, i64 %i64
  %later = getelementptr i8, ptr %any, i64 4
  ret void
}
"""


@pytest.mark.parametrize(
    ("name", "root"),
    [
        ("%out", Root(Kind.ARGUMENT, 0)),
        ("%in", Root(Kind.ARGUMENT, 2)),
        ("%next", Root(Kind.ARGUMENT, 2)),
        ("%either", Root(Kind.ARGUMENT, 2)),
        ("%shared", Root(Kind.THREADGROUP, 0)),
        ("%tile", Root(Kind.VARIABLE, name="@_ZZ1kE4tile")),
        ("%any", Root(Kind.PRIVATE, name="%array")),
        ("%grid", Root(Kind.INTERNAL)),
        ("@weights", Root(Kind.CONSTANT, name="@weights")),
        ("%mixed", None),
        ("%loaded", None),
    ],
)
def test_an_address_leads_to_what_it_was_made_from(name: str, root: Root | None) -> None:
    assert Roots.read(KERNEL, True).find(name) == root


def test_in_other_functions_nothing_is_known_of_parameters() -> None:
    roots = Roots.read(KERNEL, False)
    assert roots.find("%out") is None and roots.find("%i64") is None


def test_an_address_that_depends_on_itself_is_that_of_the_loop_s_start() -> None:
    text = """\
  %p = phi ptr [ %in, %entry ], [ %step, %loop ]
  %step = getelementptr float, ptr %p, i64 1
  %in = load ptr, ptr %buffers, align 8
"""
    assert Roots.read(text, True).find("%step") == Root(Kind.ARGUMENT, 0)


@pytest.mark.parametrize(("name", "kind"), [("%any", True), ("%later", True), ("%first", False), ("%in", False)])
def test_only_places_of_an_array_that_are_computed_are_checked(name: str, kind: bool) -> None:
    assert Roots.read(KERNEL, True).private_type(name) == ("[4 x float]" if kind else "")


LOCATED = f"""\
  store i32 0, ptr %p, align 4, !dbg !5
!llvm.dbg.cu = !{{!9}}
!1 = !DIFile(filename: "kernel.metal", directory: "/somewhere")
!2 = !DIFile(filename: "{INCLUDE}/pm/math.h", directory: "/")
!3 = distinct !DISubprogram(name: "k", scope: !1, file: !1, line: 3)
!4 = distinct !DISubprogram(name: "max", scope: !2, file: !2, line: 70)
!5 = !DILocation(line: 71, column: 3, scope: !4, inlinedAt: !6)
!6 = !DILocation(line: 8, column: 3, scope: !3)
!7 = !DILocation(line: 0, scope: !3)
"""


def test_a_place_in_the_standard_library_is_where_it_is_called() -> None:
    places = Places.read(LOCATED)
    assert places.find("5") == places.find("6") == ("kernel.metal", 8)
    assert places.find("7") is None and places.find("99") is None


def test_places_are_taken_out() -> None:
    assert "dbg" not in without_places(LOCATED)
    assert "store i32 0, ptr %p, align 4" in without_places(LOCATED)


def watched(body: str, name: str = "pm_lane_source_0") -> list[str]:
    """The calls of the runtime in a kernel with this body, and the sites that they name."""
    lines = "".join(f"  {line}\n" for line in dedent(body).strip().split("\n"))
    head = f"define void @{name}(ptr %buffers, ptr %threadgroup, ptr %where) {{\nentry:\n"
    text = watch_accesses(f"@table = constant [4 x i32] zeroinitializer\n{head}{lines}  ret void\n}}\n{LOCATED}")
    return [line.strip() for line in text.split("\n") if "call void @pm_" in line or line.startswith("@pm.site")]


def test_an_access_tells_line_size_alignment_argument_and_kind() -> None:
    assert watched("""
        %slot = getelementptr i8, ptr %buffers, i64 8
        %in = load ptr, ptr %slot, align 8
        store <4 x float> zeroinitializer, ptr %in, align 16, !dbg !5
    """) == [
        "call void @pm_access(ptr %in, ptr @pm.site.0)",
        "@pm.site.0 = private constant { ptr, ptr, i32, i32, i32, i32, i32, i32 } "
        "{ ptr @pm.file.0, ptr null, i32 8, i32 16, i32 16, i32 1, i32 1, i32 0 }",
    ]


@pytest.mark.parametrize(
    ("access", "kind", "size"),
    [
        ("%v = load i16, ptr %p, align 2", 4, 2),
        ("store i64 0, ptr %p, align 8", 1, 8),
        ("%v = load atomic i32, ptr %p monotonic, align 4", 6, 4),
        ("%v = atomicrmw add ptr %p, i32 1 monotonic, align 4", 7, 4),
        ("%v = cmpxchg ptr %p, i32 0, i32 1 monotonic monotonic, align 4", 7, 4),
    ],
)
def test_every_form_of_access(access: str, kind: int, size: int) -> None:
    call, site = watched(f"%p = load ptr, ptr %threadgroup, align 8\n{access}")
    assert call == "call void @pm_access(ptr %p, ptr @pm.site.0)"
    assert f"i32 0, i32 {size}, i32 {size}, i32 1000, i32 {kind}, i32 0 }}" in site


def test_a_range_is_read_and_written() -> None:
    calls = watched("""
        %to = load ptr, ptr %buffers, align 8
        call void @llvm.memcpy.p0.p0.i64(ptr align 4 %to, ptr align 4 @table, i64 16, i1 false)
        call void @llvm.memset.p0.i64(ptr align 4 %to, i8 0, i64 %n, i1 false)
    """)
    assert [call for call in calls if "site." in call and "call" in call] == [
        "call void @pm_access_range(ptr %to, i64 16, ptr @pm.site.0)",
        "call void @pm_access_range(ptr %to, i64 %n, ptr @pm.site.0)",
    ]


def test_a_constant_of_the_program_has_its_extent() -> None:
    call, site = watched("%at = getelementptr i32, ptr @table, i64 %n\n%v = load i32, ptr %at, align 4")
    assert call == "call void @pm_access_in(ptr %at, ptr @table, ptr @pm.site.0)"
    assert "ptrtoint (ptr getelementptr ([4 x i32], ptr null, i32 1) to i64)" in site


def test_what_no_other_thread_may_know_of_is_not_watched() -> None:
    assert watched("""
        %x = alloca i32, align 4
        store i32 0, ptr %x, align 4
        %in = load ptr, ptr %where, align 8
        %size = load i32, ptr %in, align 4
    """) == []  # fmt: skip
    assert watched("store i32 0, ptr %p, align 4", "pm_make_0") == []


def test_optimizations_are_held_back() -> None:
    assert defer_to_sanitizer("attributes #0 = { nounwind }") == "attributes #0 = { sanitize_thread nounwind }"


UNSET = """\
define void @k(ptr %out) {
entry:
  %x = alloca float, align 4
  %a = alloca [20 x float], align 16
  store float 0x7FFFFFFFE0000000, ptr %x, align 4, !annotation !1
  call void @llvm.memset.p0.i64(ptr align 16 %a, i8 -1, i64 80, i1 false), !annotation !1
  store float 0.0, ptr %x, align 4
  ret void
}
!1 = !{!"auto-init"}
"""


def test_a_pattern_becomes_a_call_and_a_value_does_not() -> None:
    marked = mark_undefined(UNSET)
    assert marked.count("call float @pm_undefined_float()") == 1
    assert marked.count("call i32 @pm_undefined_i32()") == 20
    assert "memset" not in marked and "store float 0.0, ptr %x" in marked


def test_code_without_patterns_stays_as_it_is() -> None:
    assert mark_undefined("define void @k() {\n  ret void\n}\n") == "define void @k() {\n  ret void\n}\n"


def test_a_large_array_is_not_followed() -> None:
    large = UNSET.replace("i64 80", f"i64 {MOST_BYTES + 4}")
    assert "memset" in mark_undefined(large)


def checked(body: str) -> str:
    lines = "".join(f"  {line}\n" for line in dedent(body).strip().split("\n"))
    return watch_undefined(f"define void @k(ptr %out, i32 %i) {{\nentry:\n{lines}  ret void\n}}\n")


def test_a_stored_value_is_checked_with_all_that_it_was_computed_from() -> None:
    text = checked("""
        %x = call float @pm_undefined_float()
        %y = fadd float %x, 1.0
        %z = fadd float 2.0, 1.0
        store float %y, ptr %out, align 4
        store float %z, ptr %out, align 4
    """)
    assert text.count("call void @pm_check_private(") == 1
    assert re.search(
        r"(%pm.open.\d+) = icmp ne i32 %pm.bit.y, 0\n"
        r"  call void @pm_check_private\(i1 zeroext \1, ptr @pm.private.0, i32 0\)\n  store float %y",
        text,
    )
    assert "pm_undefined" not in text


def test_a_choice_depends_on_its_condition_and_on_what_is_chosen() -> None:
    text = checked("""
        %x = call i1 @pm_undefined_i1()
        %y = select i1 %x, i32 1, i32 2
        store i32 %y, ptr %out, align 4
    """)
    assert "%pm.part.y.of = select i1 %x, i32 0, i32 0" in text
    assert "%pm.bit.y = select i1 %pm.bit.x, i32 -1, i32 %pm.part.y.of" in text


def test_values_whose_names_continue_one_another_have_bits_of_their_own() -> None:
    text = checked("""
        %x = call float @pm_undefined_float()
        %y = fadd float %x, %x
        %y.1 = fadd float %y, %x
        %y.0 = fadd float %y.1, %y
        store float %y.0, ptr %out, align 4
    """)
    defined = re.findall(r"^  (%\S+) = ", text, re.M)
    assert len(defined) == len(set(defined)) and "%pm.bit.y.1" in defined


def test_each_bit_of_an_array_has_its_own() -> None:
    text = checked("""
        %a = alloca [4 x float], align 16
        %at = getelementptr [4 x float], ptr %a, i64 0, i64 %n
        %x = call i32 @pm_undefined_i32()
        store i32 %x, ptr %a, align 4
        store <2 x float> zeroinitializer, ptr %at, align 4
        %y = load float, ptr %at, align 4
        store float %y, ptr %out, align 4
    """)
    assert "%pm.bit.a = alloca [4 x float], align 16" in text
    assert re.search(r"store i32 %pm.bit.x, ptr %pm.kept\S+.at, align 1", text)
    assert re.search(r"store i64 0, ptr %pm.kept\S+.at, align 1", text)
    assert "%pm.bit.y = load i32, ptr %pm.part.y.at, align 1" in text
    assert "= icmp ne i32 %pm.bit.y, 0\n  call void @pm_check_private(" in text


def test_an_array_whose_address_goes_elsewhere_is_not_followed() -> None:
    text = checked("""
        %a = alloca [4 x float], align 16
        %x = call i32 @pm_undefined_i32()
        store i32 %x, ptr %a, align 4
        call void @helper(ptr %a)
        %y = load float, ptr %a, align 4
        store float %y, ptr %out, align 4
    """)
    assert "pm.bit.a" not in text and "call void @pm_check_private" not in text


def test_a_filled_and_copied_array_keeps_the_bits() -> None:
    text = checked("""
        %a = alloca [4 x i32], align 16
        %b = alloca [4 x i32], align 16
        %x = call i8 @pm_undefined_i8()
        call void @llvm.memset.p0.i64(ptr align 16 %a, i8 %x, i64 16, i1 false)
        call void @llvm.memcpy.p0.p0.i64(ptr align 16 %b, ptr align 16 %a, i64 16, i1 false)
        %y = load i32, ptr %b, align 4
        store i32 %y, ptr %out, align 4
    """)
    assert re.search(r"memset.p0.i64\(ptr %pm.kept\S+.at, i8 %pm.bit.x, i64 16", text)
    assert (
        len(re.findall(r"call void @llvm.memmove.p0.p0.i64\(ptr %pm.kept\S+.at, ptr %pm.kept\S+.of.at, i64 16", text))
        == 1
    )
    assert "= icmp ne i32 %pm.bit.y, 0\n  call void @pm_check_private(" in text


LOOPS = """\
define void @pm_lane_source_0(i32 %n) {
entry:
  br label %outer
outer:
  %a = phi i32 [ 0, %entry ], [ %a.next, %outer.end ]
  br label %inner
inner:
  %k = phi i32 [ 0, %outer ], [ %k.next, %inner ]
  call void @pm_threadgroup_barrier(), !dbg !6
  %k.next = add i32 %k, 1
  %more = icmp ult i32 %k.next, %n
  br i1 %more, label %inner, label %other
other:
  %c = phi i32 [ 0, %inner ], [ %c.next, %other ]
  %c.next = add i32 %c, 1
  %again = icmp ult i32 %c.next, %n
  br i1 %again, label %other, label %outer.end
outer.end:
  %a.next = add i32 %a, 1
  %on = icmp ult i32 %a.next, %n
  br i1 %on, label %outer, label %end
end:
  call void @pm_threadgroup_barrier(), !dbg !6
  ret void
}
"""


def test_turns_are_counted_from_where_a_loop_is_entered() -> None:
    turns = Turns.read(LOOPS)
    assert turns.ways == {
        "outer": ["[ 0, %entry ]", '[ %"pm.turn.outer.next", %outer.end ]'],
        "inner": ["[ 0, %outer ]", '[ %"pm.turn.inner.next", %inner ]'],
    }
    assert turns.around["inner"] == ["outer", "inner"]
    assert turns.around["end"] == []


def test_a_meeting_tells_its_place_number_and_turn() -> None:
    text = mark_meetings(LOOPS + LOCATED)
    assert [line.strip() for line in text.split("\n") if "@pm_at_meeting(ptr @" in line] == [
        "call void @pm_at_meeting(ptr @pm.meeting.0, i32 8, i32 1, i32 %pm.turn.of.1.1)",
        "call void @pm_at_meeting(ptr @pm.meeting.0, i32 8, i32 2, i32 0)",
    ]
    inner = text[text.index("inner:") : text.index("other:")]
    assert inner.index('%"pm.turn.inner" = phi') < inner.index("%k = phi") < inner.index('%"pm.turn.inner.next" = add')
    assert len(list(functions(text))) == 1


def test_code_in_which_nobody_meets_stays_as_it_is() -> None:
    assert mark_meetings(KERNEL) == KERNEL


def test_which_checks_and_kernels_need_what() -> None:
    assert not watches_accesses(("lanes", "barriers")) and watches_accesses(("lanes", "bounds"))
    assert shuffles(["simd_shuffle_xor"]) and shuffles(["quad_broadcast"]) and not shuffles(["simd_sum"])
