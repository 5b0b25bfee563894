"""Whether kernels of the CPU write beyond what they allocate.

The code that starts the device installs what tells. Without it nothing is noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class _Watch:
    start: Callable[[], None] = lambda: None
    is_damaged: Callable[[], bool] = lambda: False


_watch = _Watch()


def install(start: Callable[[], None], is_damaged: Callable[[], bool]) -> None:
    """Sets what watches the memory of a process, and what says whether it is damaged."""
    _watch.start, _watch.is_damaged = start, is_damaged


def start_watching() -> None:
    """Watches what the CPU allocates from now on, until this process ends."""
    _watch.start()


def is_damaged() -> bool:
    """Whether something was written beyond memory of the CPU since then."""
    return _watch.is_damaged()
