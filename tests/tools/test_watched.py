"""Findings of a run over many operators, each once."""

from __future__ import annotations

from shared.watched import collect


def reason(
    kernel: str, line: int, code: str = "PTR264", what: str = "reads 4 bytes out of bounds of argument `x`"
) -> str:
    place = f"at aten/src/kernels/Pool.metal:{line}, in thread (3, 0, 0) of threadgroup (0, 0, 0) (seed 7)"
    return f"RuntimeError: {code}: kernel `{kernel}` {what}, {place}\ninput: SampleInput(...)"


def test_a_line_is_named_once_with_all_its_kernels() -> None:
    found = collect(
        [reason("pool_half", 12), reason("pool_float", 12), reason("pool_half", 12), reason("pool_half", 30)]
    )
    assert [(each.place, each.kernels) for each in found] == [
        ("aten/src/kernels/Pool.metal:12", ("pool_float", "pool_half")),
        ("aten/src/kernels/Pool.metal:30", ("pool_half",)),
    ]


def test_two_checks_of_a_line_are_two_findings() -> None:
    race = "has a data race in device memory: it writes argument `x` (buffer 0) at byte 0, which another thread wrote at a.metal:1"
    first, second = collect([reason("sum", 5), reason("sum", 5, "PTR261", race)])
    assert (first.code, second.code) == ("PTR261", "PTR264")
    assert str(second) == f"PTR264\t{second.place}\tsum\treads 4 bytes out of bounds of argument `x`"


def test_other_failures_are_no_findings() -> None:
    assert (
        collect(["AssertionError: Tensor-likes are not close!", "RuntimeError: PTR126: kernel `mm`: no buffer"]) == []
    )
