"""What a child process answers, and what becomes of one that dies."""

from __future__ import annotations

import os
import signal

import pytest

from porter.verdict.suite.children import ask_child, survives, survives_each


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise ValueError


@pytest.mark.parametrize("answer", [None, True, 7, [[0, 1], []], list(range(100_000))])
def test_an_answer(answer: object) -> None:
    assert ask_child(lambda: answer) == answer


def test_a_child_that_raises_lives() -> None:
    assert ask_child(fail) is None
    assert survives(fail)


def test_a_child_that_dies() -> None:
    assert ask_child(die) is None
    assert not survives(die)


def test_each_that_dies_is_named_and_those_after_it_run() -> None:
    assert survives_each([fail, die, int, die, fail]) == [True, False, True, False, True]
    assert survives_each([]) == []


def test_what_an_earlier_one_brings_about_is_not_blamed_on_a_later_one() -> None:
    broken: list[int] = []
    assert survives_each([lambda: broken.append(1), lambda: die() if broken else None]) == [True, True]
