"""How long a call takes: what runs once is left out, and the device is waited for at both ends of a window."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable

import torch

WINDOW = 0.02
REPEATS = 5
Clock = Callable[[], float]


def synchronize() -> None:
    """Waits for the mps device, if there is one."""
    if torch.backends.mps.is_available():
        torch.mps.synchronize()


def measure(
    function: Callable[[], object],
    *,
    wait: Callable[[], None] = synchronize,
    clock: Clock = time.perf_counter,
    window: float = WINDOW,
    repeats: int = REPEATS,
) -> float:
    """The median over `repeats` windows of the seconds that one call takes.

    The first call, which may compile, is not measured; the second says how many fill a window.
    """
    _seconds(function, 1, wait, clock)
    calls = max(1, math.ceil(window / max(_seconds(function, 1, wait, clock), 1e-9)))
    return statistics.median(_seconds(function, calls, wait, clock) / calls for _ in range(repeats))


def _seconds(function: Callable[[], object], calls: int, wait: Callable[[], None], clock: Clock) -> float:
    wait()
    start = clock()
    for _ in range(calls):
        function()
    wait()
    return clock() - start
