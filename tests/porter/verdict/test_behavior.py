"""What changes for users, told from the same samples on the old path and the new one."""

from __future__ import annotations

from dataclasses import asdict

from porter.verdict.behavior import (
    AGREES,
    ALONE,
    DIFFERS,
    REFUSED,
    REFUSED_TOO,
    UNKNOWN,
    Behaviour,
    PathCount,
    Sampled,
    compared,
    from_json,
    refusal,
    to_json,
)


def sampled(dtype: str, *found: tuple[str, str, bool, float | None]) -> list[Sampled]:
    return [Sampled(dtype, f"sample {i}", *each) for i, each in enumerate(found)]


RIGHT = (AGREES, "", False, 0.5)
NAN = (DIFFERS, "at (nan): 1.0, the CPU gives nan", True, None)
OFF = (DIFFERS, "at (2): 4.0, the CPU gives 5.0", False, None)
NO = (REFUSED, "not for int64", False, None)


def test_nothing_changes() -> None:
    found = compared(sampled("float32", RIGHT, RIGHT), sampled("float32", RIGHT, RIGHT))
    assert found == Behaviour((PathCount("float32", 2, 2, 2),), ())


def test_a_type_gained_in_two_types_is_one_line() -> None:
    old = sampled("int64", NO, NO) + sampled("int32", NO, NO)
    new = sampled("int64", RIGHT, RIGHT) + sampled("int32", RIGHT, RIGHT)
    assert compared(old, new).changes == ("int64, int32: was refused (not for int64), is computed now",)


def test_a_type_lost() -> None:
    [line] = compared(sampled("int64", RIGHT, RIGHT), sampled("int64", RIGHT, NO)).changes
    assert line == "int64: was computed, is refused now in 1 of 2 samples (not for int64)"


def test_nan_and_values_are_told_apart() -> None:
    nan, value = compared(sampled("float32", NAN, OFF, RIGHT), sampled("float32", RIGHT, RIGHT, RIGHT)).changes
    assert "NaN" in nan and "(nan)" in nan
    assert "values" in value and "(2)" in value
    assert "1 of 3 samples" in nan and "1 of 3 samples" in value


def test_a_worse_port_is_reported() -> None:
    [line] = compared(sampled("float32", RIGHT), sampled("float32", OFF)).changes
    assert line.startswith("float32: values were the CPU's and differ now")


def test_precision_counts_when_it_shows() -> None:
    def of(ulp: float) -> list[Sampled]:
        return sampled("float32", (AGREES, "", False, ulp))

    assert compared(of(3.4), of(0.5)).changes == ("float32: at most 3.4 ULP before, 0.5 now",)
    assert compared(of(1.2), of(0.5)).changes == ()


def test_overlay_limits_are_not_counted_against_the_old_path() -> None:
    told = "PTR131 MPSGraph's `x` is not known here"
    undeclared = "PTR120 -[MPSGraph x] is not part of the stand-in for Apple's frameworks"
    assert refusal(told) == refusal(undeclared) == UNKNOWN
    assert refusal("PTR126 too large") == refusal("not for int64") == REFUSED
    unknown = (UNKNOWN, told, False, None)
    found = compared(sampled("int64", unknown, RIGHT), sampled("int64", RIGHT, RIGHT))
    assert found.counts == (PathCount("int64", 1, 1, 1),)
    assert found.changes == (f"int64: not compared in 1 of 2 samples ({told})",)
    alone = compared(sampled("int64", unknown), sampled("int64", RIGHT))
    assert (alone.counts, alone.changes) == ((), (f"int64: not compared ({told})",))


def test_types_the_cpu_lacks_may_be_lost_or_gained() -> None:
    alone, too = (ALONE, "", False, None), (REFUSED_TOO, "no kernel", False, None)
    lost = compared(sampled("int32", alone) + sampled("bool", too), sampled("int32", too) + sampled("bool", too))
    assert lost == Behaviour((), ("int32: was computed where the CPU refuses, is refused now",))
    gained = compared(sampled("int32", too), sampled("int32", alone))
    assert gained == Behaviour((), ("int32: was refused as on the CPU, is computed now",))
    unknown = (UNKNOWN, "PTR131", False, None)
    assert compared(sampled("int32", unknown), sampled("int32", too)) == Behaviour((), ())
    assert refusal("no kernel", alone=False) == REFUSED_TOO


def test_samples_of_one_path_alone_are_not_compared() -> None:
    found = compared(sampled("float32", RIGHT), sampled("float32", RIGHT, OFF))
    assert found.counts == (PathCount("float32", 1, 1, 1),)


def test_round_trips() -> None:
    samples = sampled("float32", RIGHT, NAN)
    assert from_json(to_json(samples)) == samples
    found = compared(samples, samples)
    assert Behaviour.from_json(asdict(found)) == found
