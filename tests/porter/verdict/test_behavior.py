"""What changes for users, from the same samples on the old path and the new one."""

from __future__ import annotations

from porter.verdict.behavior import (
    Behavior,
    PathCount,
    SampleResult,
    Status,
    compare_paths,
    find_lost,
    find_worse,
    status_of_error,
)


def make_results(dtype: str, *found: tuple[Status, str, bool, float | None]) -> list[SampleResult]:
    return [SampleResult(dtype, f"sample {i}", *each) for i, each in enumerate(found)]


AGREES = (Status.AGREES, "", False, 0.5)
NAN = (Status.DIFFERS, "at (nan): 1.0, the CPU gives nan", True, None)
OFF = (Status.DIFFERS, "at (2): 4.0, the CPU gives 5.0", False, None)
NO = (Status.REFUSED, "not for int64", False, None)


def test_nothing_changes() -> None:
    found = compare_paths(make_results("float32", AGREES, AGREES), make_results("float32", AGREES, AGREES))
    assert found == Behavior((PathCount("float32", 2, 2, 2, 0.5),), ())


def test_a_type_gained_in_two_types_is_one_line() -> None:
    old = make_results("int64", NO, NO) + make_results("int32", NO, NO)
    new = make_results("int64", AGREES, AGREES) + make_results("int32", AGREES, AGREES)
    assert compare_paths(old, new).changes == ("int64, int32: now supported (before: not for int64)",)


def test_a_type_lost() -> None:
    [line] = compare_paths(make_results("int64", AGREES, AGREES), make_results("int64", AGREES, NO)).changes
    assert line == "int64: no longer supported in 1 of 2 samples (not for int64)"


def test_only_samples_that_were_right_are_lost() -> None:
    old = make_results("int64", AGREES, NO, OFF)
    assert [each.sample for each in find_lost(old, make_results("int64", NO, NO, NO))] == ["sample 0"]


def test_samples_that_were_right_and_differ_now_are_worse() -> None:
    old = make_results("float32", AGREES, OFF, NAN, AGREES, AGREES)
    worse = find_worse(old, make_results("float32", OFF, OFF, NAN, NO, NAN))
    assert [each.sample for each in worse] == ["sample 0", "sample 4"]


def test_nan_and_values_are_separate_lines() -> None:
    nan, value = compare_paths(
        make_results("float32", NAN, OFF, AGREES), make_results("float32", AGREES, AGREES, AGREES)
    ).changes
    assert "NaN" in nan and "(nan)" in nan
    assert "values" in value and "(2)" in value
    assert "1 of 3 samples" in nan and "1 of 3 samples" in value


def test_a_worse_port_is_reported() -> None:
    [line] = compare_paths(make_results("float32", AGREES), make_results("float32", OFF)).changes
    assert line.startswith("float32: values matched the CPU's and no longer do")


def test_precision_counts_when_it_shows() -> None:
    def of(ulp: float) -> list[SampleResult]:
        return make_results("float32", (Status.AGREES, "", False, ulp))

    assert compare_paths(of(3.4), of(0.5)).changes == ("float32: max error 3.4 ULP before, 0.5 now",)
    assert compare_paths(of(1.2), of(0.5)).changes == ()


def test_overlay_limits_are_not_counted_against_the_old_path() -> None:
    message = "PTR131 MPSGraph's `x` is not supported"
    undeclared = "PTR120 -[MPSGraph x] is not supported"
    assert status_of_error(message) == status_of_error(undeclared) == Status.UNKNOWN
    assert status_of_error("PTR126 too large") == status_of_error("not for int64") == Status.REFUSED
    unknown = (Status.UNKNOWN, message, False, None)
    found = compare_paths(make_results("int64", unknown, AGREES), make_results("int64", AGREES, AGREES))
    assert found.counts == (PathCount("int64", 1, 1, 1, 0.5),)
    assert found.changes == (f"int64: not compared in 1 of 2 samples ({message})",)
    assert found.unknown == found.changes and not found.gained
    alone = compare_paths(make_results("int64", unknown), make_results("int64", AGREES))
    assert (alone.counts, alone.changes) == ((), (f"int64: not compared ({message})",))


def test_types_the_cpu_lacks_may_be_lost_or_gained() -> None:
    alone, too = (Status.COMPUTED_ALONE, "", False, None), (Status.REFUSED_TOO, "no kernel", False, None)
    lost = compare_paths(
        make_results("int32", alone) + make_results("bool", too), make_results("int32", too) + make_results("bool", too)
    )
    gone = "int32: no longer supported, nor is it on the CPU"
    assert lost == Behavior((), (gone,), (gone,))
    gained = compare_paths(make_results("int32", too), make_results("int32", alone))
    now = "int32: now supported, unlike on the CPU"
    assert gained == Behavior((), (now,), gained=(now,))
    unknown = (Status.UNKNOWN, "PTR131", False, None)
    assert compare_paths(make_results("int32", unknown), make_results("int32", too)) == Behavior((), ())
    assert status_of_error("no kernel", alone=False) == Status.REFUSED_TOO


def test_samples_of_one_path_alone_are_not_compared() -> None:
    found = compare_paths(make_results("float32", AGREES), make_results("float32", AGREES, OFF))
    assert found.counts == (PathCount("float32", 1, 1, 1, 0.5),)
