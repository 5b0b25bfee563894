"""What a process had of a processor, and what is left to it where others had the rest."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from porter.server.process import PATIENCE, Turn


def compute() -> None:
    while True:
        pass


def sleep() -> None:
    while True:
        time.sleep(60)


@contextmanager
def forked(act: Callable[[], None]) -> Iterator[int]:
    child = os.fork()
    if not child:
        act()
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def begun(process: int, seconds: float) -> Turn:
    """A turn that began so long ago, in which the process has had no processor yet."""
    return Turn(process, started=time.monotonic() - seconds)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the system does not tell")  # noqa: PTH112
def test_one_that_computes_has_its_seconds_of_a_processor() -> None:
    with forked(compute) as child:
        assert begun(child, 90).seconds_left(60) > 0
        assert begun(child, PATIENCE * 60).seconds_left(60) < 0


def test_one_that_sleeps_has_those_of_the_clock() -> None:
    with forked(sleep) as child:
        while not begun(child, 90).seconds_left(60) < 0:  # it starts by running
            time.sleep(0.01)
        assert begun(child, 30).seconds_left(60) > 0


def test_one_that_is_gone_has_those_of_the_clock() -> None:
    with forked(sleep) as child:
        pass
    assert begun(child, 90).seconds_left(60) < 0 < begun(child, 30).seconds_left(60)


@pytest.mark.skipif(not [*Path("/proc/self/task").glob("*/children")], reason="the system does not tell")
def test_one_that_waits_for_a_child_that_computes_has_the_seconds_of_a_processor() -> None:
    def wait() -> None:
        with forked(compute):
            sleep()

    with forked(wait) as child:
        while not Path(f"/proc/{child}/task/{child}/children").read_text():
            time.sleep(0.01)
        [grandchild] = map(int, Path(f"/proc/{child}/task/{child}/children").read_text().split())
        try:
            assert begun(child, 90).seconds_left(60) > 0
        finally:
            os.kill(grandchild, signal.SIGKILL)
