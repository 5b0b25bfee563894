"""Has host code take small tensors for ones whose offsets need 64 bits.

The code that loads host code installs what sets a limit. Without it nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

NOTHING = 0  # a limit that no tensor is within


@dataclass
class _Limit:
    put: Callable[[int | None], None] = lambda largest: None


_limit = _Limit()


def install(put: Callable[[int | None], None]) -> None:
    """Sets what sets the largest offset in bytes that host code takes for one of 32 bits, or for None puts it back."""
    _limit.put = put


@contextmanager
def wide_indices(largest: int = NOTHING) -> Iterator[None]:
    """Host code asks for kernels with indices of 64 bits meanwhile, where a tensor is larger than that."""
    _limit.put(largest)
    try:
        yield
    finally:
        _limit.put(None)
