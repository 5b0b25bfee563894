"""Whether kernels of the CPU write beyond what they allocate, or leave some of it unwritten.

The code that starts the device installs what tells. Without it nothing is noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class _Watch:
    start: Callable[[int], None] = lambda filling: None
    is_damaged: Callable[[], bool] = lambda: False
    is_installed: bool = False


_watch = _Watch()


def install(start: Callable[[int], None], is_damaged: Callable[[], bool]) -> None:
    """Sets what watches the memory of a process, and what says whether it is damaged."""
    _watch.start, _watch.is_damaged, _watch.is_installed = start, is_damaged, True


def is_installed() -> bool:
    """Whether something watches the memory of this process."""
    return _watch.is_installed


def start_watching(filling: int) -> None:
    """Watches what the CPU allocates from now on, and fills it with a byte, until this process ends."""
    _watch.start(filling)


def is_damaged() -> bool:
    """Whether something was written beyond memory of the CPU since then."""
    return _watch.is_damaged()
