"""What two texts share at their start and end.

It is found by halves: comparing slices is far faster than comparing characters.
"""

from __future__ import annotations


def common_start(one: str, other: str) -> int:
    """How many characters two texts share at their start."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_end(one: str, other: str, start: int) -> int:
    """How many characters two texts share at their end, behind those of their common start."""
    low, high = 0, min(len(one), len(other)) - start
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
