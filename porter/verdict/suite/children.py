"""Runs what may end a process in a child: some kernels of the CPU use memory that they do not check."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch

_SECONDS = 5  # of its own process, for a call on the CPU: a loaded machine does not cut it


def ask_child(run: Callable[[], Any], seconds: int = _SECONDS) -> Any:
    """What a function returns in a process of its own, as JSON keeps it; None if it raises, or that process dies.

    It dies after `seconds` of its processor time.
    """
    answer, ended = run_forked(partial(_tell, run, seconds))
    return json.loads(answer or b"null") if ended else None


def survives(run: Callable[[], object]) -> bool:
    """Whether a process that runs something on the CPU lives, whatever it raises."""
    return survives_each([run])[0]


def survives_each(runs: Sequence[Callable[[], object]]) -> list[bool]:
    """Whether a process lives that runs each; one process runs them in turn, as long as it lives.

    What it dies of may be memory that an earlier one corrupted: only the first of a process is taken to be the reason.
    """
    lived: list[bool] = []
    while len(lived) < len(runs):
        letters, _ = run_forked(partial(_tell_each, runs[len(lived) :]))
        lived += [True] * len(letters) or [False]
    return lived


def run_forked(tell: Callable[[int], None]) -> tuple[bytes, bool]:
    """What a process of its own writes to a file descriptor, and whether it ends by itself."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        settle()
        try:
            tell(writing)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    return answer, os.WIFEXITED(os.waitpid(child, 0)[1])


def settle() -> None:
    """Makes a process that was forked one that may end in any way, without a word."""
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the C library reports memory that is corrupted
    torch.set_num_threads(1)  # a thread pool does not survive a fork


def _tell(run: Callable[[], Any], seconds: int, writing: int) -> None:
    """Writes what a function returns."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    value = None
    with suppress(Exception):
        value = run()
    with os.fdopen(writing, "w") as answer:
        answer.write(json.dumps(value))


def _tell_each(runs: Sequence[Callable[[], object]], writing: int) -> None:
    """Writes a letter after each function that has run."""
    for run in runs:
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        with suppress(Exception):
            run()
        os.write(writing, b".")
