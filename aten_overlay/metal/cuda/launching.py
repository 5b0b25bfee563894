"""How Metal's grids and threadgroups become a launch on a GPU."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from aten_overlay.errors import OverlayError
from aten_overlay.metal.cuda.module import NARROW, Entry
from aten_overlay.metal.cuda.target import FLAT, GRID, SEVERAL

SHARED_LIMIT = 99 * 1024  # of a block on the smallest of the GPUs from sm_80 on
_MOST_BLOCKS = (1 << 31) - 1, 65535, 65535
_ALIGNMENT = 16


@dataclass(frozen=True)
class Launch:
    """The entry to launch, in blocks of one dimension. `sizes` are the bytes of its first parameter, `offsets` the
    values of its threadgroup parameters by index, `dynamic_bytes` the shared memory that they are offsets in."""

    symbol: str
    blocks: tuple[int, int, int]
    threads: int
    sizes: bytes
    offsets: Mapping[int, int]
    dynamic_bytes: int


def plan_launch(
    entry: Entry,
    form: str,
    grid: Sequence[int],
    group: Sequence[int],
    threadgroup_bytes: Mapping[int, int] | None = None,
) -> Launch:
    """A launch over `grid` threads in threadgroups of `group`, in `form` or, where that cannot be, one that can.

    `threadgroup_bytes` has the length of each threadgroup argument, by index. Raises PTR383.
    """
    whole, threads = _three(grid), _three(group)
    _check(entry, whole, threads)
    counts = _three([-(-n // m) for n, m in zip(whole, threads, strict=True)])
    chosen = _choose(entry, form, whole, threads, counts)
    offsets, dynamic = _lay_out(entry, threadgroup_bytes or {})
    if entry.static_bytes + dynamic > SHARED_LIMIT:
        what = f"kernel `{entry.name}` uses {entry.static_bytes + dynamic} bytes of threadgroup memory"
        raise OverlayError("PTR383", f"{what}: a GPU has {SHARED_LIMIT}", hint="Give it less.")
    sizes = struct.pack("<9I", *whole, *threads, *counts)
    positions = entry.positions if chosen == SEVERAL else 1
    blocks = _fold(counts) if chosen == GRID else (-(-whole[0] // (threads[0] * positions)), 1, 1)
    symbols = entry.narrow if prod(threads) <= NARROW and chosen in entry.narrow else entry.symbols
    return Launch(symbols[chosen], blocks, prod(threads), sizes, offsets, dynamic)


def _three(numbers: Sequence[int]) -> tuple[int, int, int]:
    first, second, third = (*numbers, 1, 1, 1)[:3]
    return first, second, third


def _check(entry: Entry, grid: Sequence[int], group: Sequence[int]) -> None:
    if min(*grid, *group) < 1 or max(grid) >= 1 << 32:
        what = f"kernel `{entry.name}` cannot run over a grid of {tuple(grid)} in threadgroups of {tuple(group)}"
        raise OverlayError("PTR383", what, hint="A dimension is from 1 to 2^32 - 1: launch nothing for an empty grid.")
    if prod(group) > entry.thread_limit:
        what = f"kernel `{entry.name}` is given threadgroups of {prod(group)} threads; it takes {entry.thread_limit}"
        raise OverlayError("PTR383", what, hint="Use smaller threadgroups.")


def _choose(entry: Entry, form: str, grid: Sequence[int], group: Sequence[int], counts: Sequence[int]) -> str:
    """The form asked for, or the first after it that can run this grid."""
    is_flat = prod(grid[1:]) == prod(group[1:]) == 1 and counts[0] <= _MOST_BLOCKS[0]
    possible = {SEVERAL: is_flat and grid[0] < 1 << 31, FLAT: is_flat, GRID: True}
    order = (SEVERAL, FLAT, GRID)
    for each in order[order.index(form) :]:
        if possible[each] and each in entry.symbols:
            return each
    what = f"kernel `{entry.name}` was compiled without the form that a grid of {tuple(grid)} needs"
    raise OverlayError("PTR383", what, hint=f'Compile it with the form "{GRID}" as well.')


def _fold(counts: tuple[int, int, int]) -> tuple[int, int, int]:
    """The blocks of a grid of threadgroups: its own dimensions, or two that count all where one is too large."""
    if counts[1] <= _MOST_BLOCKS[1] and counts[2] <= _MOST_BLOCKS[2]:
        if counts[0] > _MOST_BLOCKS[0]:
            raise OverlayError("PTR383", f"{counts[0]} threadgroups in a row are too many", hint="Use larger ones.")
        return counts
    total = prod(counts)
    rows = -(-total // _MOST_BLOCKS[0])
    if rows > _MOST_BLOCKS[1]:
        raise OverlayError("PTR383", f"{total} threadgroups are too many for one launch", hint="Use larger ones.")
    return -(-total // rows), rows, 1


def _lay_out(entry: Entry, lengths: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """The offset of each threadgroup argument, and the bytes of all."""
    offsets, end = {}, 0
    for parameter in entry.parameters:
        if parameter.kind == "threadgroup":
            if parameter.index not in lengths:
                what = f"kernel `{entry.name}` has no length for threadgroup argument {parameter.index}"
                raise OverlayError("PTR383", what, hint="Give its length in bytes.")
            offsets[parameter.index] = end
            end += -(-lengths[parameter.index] // _ALIGNMENT) * _ALIGNMENT
    return offsets, end
