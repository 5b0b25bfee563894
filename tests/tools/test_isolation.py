"""What a forked process makes arrives, however the process ends."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from shared.isolation import run_isolated


def _dying() -> Iterator[int]:
    yield 1
    os._exit(1)


def _endless() -> Iterator[int]:
    yield 1
    while True:
        pass


@pytest.mark.parametrize("make", [_dying, _endless])
def test_results_survive_a_process_that_dies_or_hangs(make: object) -> None:
    assert list(run_isolated(make, -1, seconds=0.5)) == [1, -1]  # type: ignore[arg-type]


def test_a_process_that_ends_says_so() -> None:
    assert list(run_isolated(lambda: range(3), -1, seconds=60)) == [0, 1, 2]
