"""Atomic updates that lock only where they have to, as text."""

from __future__ import annotations

from expecttest import assert_expected_inline

from aten_overlay.metal.passes.updates import ask_for_lock, tell_of_updates

ADDING = """@pm_updates = weak hidden constant i32 0, align 4

define void @add(ptr %p, float %v) {
  %0 = atomicrmw volatile fadd ptr %p, float %v monotonic, align 4, !dbg !7
  ret void
}
"""


def test_an_update_locks_unless_its_launch_is_alone() -> None:
    assert_expected_inline(
        ask_for_lock(ADDING),
        """\
@pm_updates = weak hidden constant i32 0, align 4

define void @add(ptr %p, float %v) {
  %0 = call float @pm_update.fadd.float.4(ptr %p, float %v), !dbg !7
  ret void
}

@pm_alone = external global i32

define internal float @pm_update.fadd.float.4(ptr %p, float %v) alwaysinline nounwind {
  %alone = load i32, ptr @pm_alone
  %shared = icmp eq i32 %alone, 0
  br i1 %shared, label %locked, label %plain
locked:
  %old = atomicrmw fadd ptr %p, float %v monotonic, align 4
  ret float %old
plain:
  %was = load float, ptr %p, align 4
  %was.new = fadd float %was, %v
  store float %was.new, ptr %p, align 4
  ret float %was
}
""",
    )


def test_what_has_no_form_without_a_lock_stays() -> None:
    text = ADDING.replace("fadd", "fmax")
    assert ask_for_lock(text) == text


def test_a_library_says_whether_it_has_updates() -> None:
    assert tell_of_updates(ADDING) == ADDING.replace("i32 0", "i32 1")
    assert tell_of_updates(text := ADDING.replace("atomicrmw", "call")) == text
