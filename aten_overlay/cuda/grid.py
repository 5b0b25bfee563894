"""The grid of a call: threads are dispatched, and the threadgroups at an edge are smaller than the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MOST_THREADS = 1024
_DIMENSIONS = 3
# Threads of a block where the kernel cannot know: enough for full occupancy, few enough to fill the last ones.
_USUAL = 256
Three = tuple[int, int, int]


@dataclass(frozen=True)
class Grid:
    """Threads of a grid, and of one of its threadgroups."""

    threads: Three
    group: Three

    @property
    def is_flat(self) -> bool:
        """Whether all has one dimension."""
        return self.threads[1:] == (1, 1) and self.group[1:] == (1, 1)

    @property
    def is_empty(self) -> bool:
        """Whether it has no threads."""
        return 0 in self.threads

    def regroup(self) -> Grid:
        """The same threads in groups that suit the GPU, for a kernel that does not know its group."""
        return Grid(self.threads, (_USUAL, 1, 1))


def read_grid(threads: int | Sequence[int], group: int | Sequence[int] | None) -> Grid:
    """The grid of a call. Raises what torch's own binding raises for sizes that fit no grid."""
    sizes = _list_sizes(threads)
    if not 1 <= len(sizes) <= _DIMENSIONS:
        raise RuntimeError("Number of threads is undefined or has wrong dimension")
    if group is None:
        return Grid(_three(sizes), (max(1, min(sizes[0], MOST_THREADS)), 1, 1))
    groups = _list_sizes(group)
    if len(groups) != len(sizes):
        raise RuntimeError("size and group_size must have same number of dimensions")
    if math.prod(groups) > MOST_THREADS:
        raise ValueError(f"Threadgroup size exceeds {MOST_THREADS} limit")
    return Grid(_three(sizes), _three(groups))


def _list_sizes(sizes: int | Sequence[int]) -> list[int]:
    return [sizes] if isinstance(sizes, int) else [int(size) for size in sizes]


def _three(sizes: Sequence[Any]) -> Three:
    x, y, z = (*(int(size) for size in sizes), *[1] * (_DIMENSIONS - len(sizes)))
    return x, y, z
