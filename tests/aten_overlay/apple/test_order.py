"""What orders two launches, and what does not: each fault beside its repair."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PROGRAM = Path(__file__).with_name("order_cases.py")
CONCURRENT = "earlier in the same concurrent encoder, with no memoryBarrier between"
UNTRACKED = (
    "earlier in the queue, through a buffer whose hazards Metal does not track, with no barrier, fence or event between"
)
FAULTS = {
    "write_then_read": f"kernel `read_next` reads argument `x` (buffer 1) at byte 4 at program_source:7, which kernel `raise` "
    f"changes as argument `x` (buffer 0) at program_source:4, {CONCURRENT}",
    "read_then_write": f"kernel `raise` changes argument `x` (buffer 0) at byte 4 at program_source:4, which kernel `read_next` "
    f"reads as argument `x` (buffer 1) at program_source:7, {CONCURRENT}",
    "barrier_of_textures": CONCURRENT,
    "barrier_of_another_buffer": CONCURRENT,
    "alias": "earlier in the queue, through another MTLBuffer over the same memory, with no barrier, fence or event between",
    "untracked": UNTRACKED,
    "two_queues": "on another stream's queue, with no event between",
}
REPAIRS = (
    "barrier", "barrier_of_the_buffer", "other_bytes", "two_reads", "one_buffer", "alias_fenced", "untracked_fenced",
    "two_queues_event", "two_queues_waited",
)  # fmt: skip
NIL = "PTR124: newComputePipelineStateWithFunction was given nil; the library that was asked last has no function `raise_half`"


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    """In a process of its own: once launches are watched, they stay so."""
    names = (*FAULTS, *REPAIRS, "no_function")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *names], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", FAULTS)
def test_launches_that_nothing_orders_are_named(answers: dict[str, str], name: str) -> None:
    code, _, finding = answers[name].partition(": ")
    assert code == "PTR269"
    assert finding.endswith(FAULTS[name])


@pytest.mark.parametrize("name", REPAIRS)
def test_what_orders_them_is_no_finding(answers: dict[str, str], name: str) -> None:
    assert answers[name] == "nothing"


def test_a_function_that_is_not_there_is_named(answers: dict[str, str]) -> None:
    assert answers["no_function"] == NIL
