"""What kernels of the CPU may allocate, and whether they write beyond it.

The code that starts the device installs what tells. Without it nothing is noticed.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


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


def limit_more(most: int) -> None:
    """Makes what this process allocates raise an error from so many bytes on, besides what it has; on Linux."""
    if sys.platform.startswith("linux"):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most_of_all = resource.getrlimit(resource.RLIMIT_AS)[1]
        with suppress(ValueError):  # the system allows less already
            resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + most, most_of_all))
