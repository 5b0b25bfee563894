"""Old implementations of the embedded fork, run and told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import find_served
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import OPERATIONS
from porter.mpsgraph.agreement import compare_readings
from porter.mpsgraph.graph import Recording, graph_lines
from porter.recording.readings import NEWEST, describe_recordings, get_recordings, read_source_graph
from porter.report.status import Stage, stage_text

FORK = Checkout(EMBEDDED_FORK, "embedded")


def recorded(checkout: Checkout, base: str, name: str) -> Recording:
    return next(each for each in get_recordings(checkout, base) or () if each.name == name)


def test_a_scalar_baked_and_fed_a_branch_and_a_promotion() -> None:
    lines = "\n".join(graph_lines(recorded(FORK, "logit", "logit").graph))
    assert_expected_inline(
        lines,
        """\
float, half, bfloat if eps.has_value(): logarithm(division(clamp(self, eps, subtraction(1.0, eps)), subtraction(1.0, clamp(self, eps, subtraction(1.0, eps)))))
float, half, bfloat if !(eps.has_value()): logarithm(division(self, subtraction(1.0, self)))
long, int, short, uchar, char, bool if eps.has_value(): logarithm(division(clamp(float(self), eps, subtraction(1.0, eps)), subtraction(1.0, clamp(float(self), eps, subtraction(1.0, eps)))))
long, int, short, uchar, char, bool if !(eps.has_value()): logarithm(division(float(self), subtraction(1.0, float(self))))""",
    )


def test_a_refused_type_is_reported_with_the_message_of_the_fork() -> None:
    [left] = recorded(FORK, "atan2", "atan2").left
    assert (left.dtype.metal, left.code) == ("long", "refused")
    assert "does not support atan2 op with int64 input" in left.reason


@pytest.mark.parametrize("base", ["floor_divide", "ceil"])
def test_both_readings_agree(base: str) -> None:
    """A helper with a string branch, and one that a stub leads to."""
    entry = next(
        e for e in NativeFunctions.read(FORK).find_overloads(base) if (r := find_served(FORK, e)) and r.implementation
    )
    row = find_served(FORK, entry)
    assert row is not None
    judged = compare_readings(read_source_graph(FORK, row), recorded(FORK, base, base), through_stub=base == "ceil")
    assert judged.calls > 0
    assert judged.differences == ()


def test_recordings_are_cached_until_the_host_code_changes(tmp_path: Path) -> None:
    """What is kept is found again without running; other code is other evidence, and a wrong reading of it shows."""
    fork = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, fork)
    checkout = Checkout(fork, "copy")
    before = recorded(checkout, "hypot", "hypot")
    assert get_recordings(Checkout(fork, "copy"), "hypot", run=False) is not None

    host = fork / OPERATIONS / "BinaryOps.mm"
    text = host.read_text()
    assert "squareRootWithTensor" in text
    host.write_text(text.replace("squareRootWithTensor", "reciprocalSquareRootWithTensor"))
    edited = Checkout(fork, "copy")
    assert get_recordings(edited, "hypot", run=False) is None
    after = recorded(edited, "hypot", "hypot")
    assert list(graph_lines(after.graph)) != list(graph_lines(before.graph))
    row = find_served(edited, NativeFunctions.read(edited).by_name["hypot.out"])
    old = find_served(FORK, NativeFunctions.read(FORK).by_name["hypot.out"])
    assert row is not None and old is not None
    assert compare_readings(read_source_graph(edited, row), after, False).differences == ()
    assert compare_readings(read_source_graph(FORK, old), after, False).differences


def test_an_undeclared_message_is_reported_once_with_the_nearest(tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, fork)
    host = fork / OPERATIONS / "BinaryOps.mm"
    host.write_text(host.read_text().replace("squareRootWithTensor", "squareRootsWithTensor"))
    checkout = Checkout(fork, "copy")
    row = find_served(checkout, NativeFunctions.read(checkout).by_name["hypot.out"])
    assert row is not None
    assert_expected_inline(
        "\n".join(stage_text(Stage(*each)) for each in describe_recordings(checkout, row, None, NEWEST)),
        """\
graph, not recorded from any call of hypot (backend host, macOS newest)
  float, half, bfloat: PTR120: -[MPSGraph squareRootsWithTensor:name:] is not supported (did you mean `squareRootWithTensor`?)
no program of hypot
  PTR419 every call of hypot raises: RuntimeError: PTR120 -[MPSGraph squareRootsWithTensor:name:] is not supported (did you mean `squareRootWithTensor`?)""",
    )


def test_an_older_macos_takes_its_own_branch() -> None:
    """rsqrt sends another message before macOS 15.2."""
    older, newest = (get_recordings(FORK, "rsqrt", macos) or () for macos in ("15.0", ""))
    sent = [next(graph_lines(each[0].graph)).split(": ")[1] for each in (older, newest)]
    assert sent == ["reverseSquareRoot(self)", "reciprocalSquareRoot(self)"]


def test_a_macos_release_that_the_fork_does_not_know() -> None:
    with pytest.raises(PorterError, match=r"unknown macOS version 10\.4") as caught:
        get_recordings(FORK, "atan2", macos="10.4")
    assert caught.value.code == "PTR138"


def test_an_operator_that_no_sample_calls() -> None:
    with pytest.raises(PorterError) as caught:
        get_recordings(FORK, "zeros_like_nothing")
    assert caught.value.code in ("PTR012", "PTR136")
