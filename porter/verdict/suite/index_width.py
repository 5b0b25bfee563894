"""Has host code take small tensors for ones whose offsets need 64 bits.

The code that loads host code installs what turns that on and off. Without it nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class _Switch:
    turn: Callable[[bool], None] = lambda is_wide: None


_switch = _Switch()


def install(turn: Callable[[bool], None]) -> None:
    """Sets what turns wide indices on and off."""
    _switch.turn = turn


@contextmanager
def wide_indices() -> Iterator[None]:
    """Host code asks for kernels with indices of 64 bits meanwhile."""
    _switch.turn(True)
    try:
        yield
    finally:
        _switch.turn(False)
