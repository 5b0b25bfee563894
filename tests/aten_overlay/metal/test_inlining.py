"""Which functions of a module are always inlined."""

from __future__ import annotations

from aten_overlay.metal.passes.inlining import inline_all, relax_inlining

MODULE = """\
define linkonce_odr i32 @_ZN2pm3addIiEET_S1_S1_(i32 %a, i32 %b) #1 comdat {
entry:
  %sum = add i32 %a, %b
  ret i32 %sum
}
define linkonce_odr void @_ZN5metal4waitEv() #1 comdat {
entry:
  call void @pm_threadgroup_barrier() #2
  ret void
}
define linkonce_odr void @_Z4bothv() #1 {
entry:
  call void @_ZN5metal4waitEv()
  ret void
}
define void @pm_lane_source_0(ptr %buffers) #0 {
entry:
  call void @_Z4bothv()
  ret void
}
declare void @pm_threadgroup_barrier() #2
attributes #0 = { mustprogress nounwind }
attributes #1 = { alwaysinline mustprogress nounwind }
attributes #2 = { convergent nomerge }
"""


def test_only_functions_in_which_a_lane_may_wait_are_always_inlined() -> None:
    relaxed = relax_inlining(MODULE)
    heads = {line.split("@")[1].split("(")[0]: line for line in relaxed.split("\n") if line.startswith("define")}
    assert heads["_ZN2pm3addIiEET_S1_S1_"].endswith(" #3 comdat {")
    assert all(heads[name].split("#")[1][0] == "1" for name in ("_ZN5metal4waitEv", "_Z4bothv"))
    assert heads["pm_lane_source_0"].endswith(" #0 {")
    assert relaxed.endswith("\nattributes #3 = { inlinehint mustprogress nounwind }\n")
    assert relaxed.replace(" #3 comdat", " #1 comdat").startswith(MODULE)


def test_functions_that_the_source_keeps_apart_are_inlined_where_everything_is() -> None:
    inlined = inline_all("attributes #0 = { mustprogress noinline nounwind }\nattributes #1 = { noinline optnone }\n")
    assert inlined == "attributes #0 = { mustprogress alwaysinline nounwind }\nattributes #1 = { noinline optnone }\n"
