"""Runs what may end a process in a child: some kernels of the CPU use memory that they do not check."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

_SECONDS = 5  # for a call on the CPU


def ask_child(run: Callable[[], Any]) -> Any:
    """What a function returns in a process of its own, as JSON keeps it; None if it raises, or that process dies."""
    return json.loads(_run(run) or "null")


def survives(run: Callable[[], object]) -> bool:
    """Whether a process that runs something on the CPU lives, whatever it raises."""
    return _run(lambda: bool(run())) is not None


def _run(run: Callable[[], Any]) -> str | None:
    """What a function returns, as JSON: `null` if it raises, None if its process dies."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _answer(run, writing)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    status = os.waitpid(child, 0)[1]
    return text if os.WIFEXITED(status) else None


def _answer(run: Callable[[], Any], writing: int) -> None:
    """Ends the process with the answer written."""
    faulthandler.disable()
    signal.alarm(_SECONDS)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the C library reports memory that is corrupted
    torch.set_num_threads(1)  # a thread pool does not survive a fork
    value = None
    with suppress(Exception):
        value = run()
    with os.fdopen(writing, "w") as answer:
        answer.write(json.dumps(value))
    os._exit(0)
