"""The threadgroups of launches that leave their size open, which a check sets, and those that launches had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch

# One thread; a simdgroup, one less and one more; a third simdgroup of one thread; the most that Metal has.
SIZES = (1, 31, 32, 33, 65, 1024)


@dataclass
class Groups:
    """What is asked of the launches of a block, and what was seen of them.

    `size` is how many threads a group has that a launch leaves open, 0 for as many as usual.
    """

    size: int = 0
    left_open: bool = False
    launched: set[tuple[int, ...]] = field(default_factory=set)
    kernels: dict[str, None] = field(default_factory=dict)


_current: ContextVar[Groups | None] = ContextVar("groups", default=None)


@contextmanager
def watching(groups: Groups) -> Iterator[Groups]:
    """Sets the open threadgroups of a block, and notes all that it launches."""
    token = _current.set(groups)
    try:
        yield groups
    finally:
        _current.reset(token)


def choose_open(usual: Sequence[int], most: int = SIZES[-1]) -> Sequence[int]:
    """The threadgroup of a launch that leaves it open: `usual`, or the size that is asked for, up to `most` threads."""
    groups = None if torch.compiler.is_compiling() else _current.get()  # torch.compile reads no context variable
    if groups is None:
        return usual
    groups.left_open = True
    return (min(groups.size, most), *[1] * (len(usual) - 1)) if groups.size else usual


def note(kernel: str, group: Sequence[int]) -> None:
    """Notes a launch and its threadgroup."""
    if (groups := _current.get()) is not None:
        groups.launched.add(tuple(group))
        groups.kernels[kernel] = None
