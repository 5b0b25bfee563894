"""A kernel launched again and again with arguments alike: all but addresses and numbers is prepared once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from aten_overlay.cuda.driver import Driver
from aten_overlay.cuda.launch import Prepared
from aten_overlay.cuda.numbers import fit, pack_argument

ALIGNMENT = 16  # of addresses that are read and written 16 bytes at a time
Piece: TypeAlias = tuple[int, bytes]  # an offset among a launch's parameters, and what lies there


@dataclass(frozen=True)
class Number:
    """Where a launch has a number that changes: argument `index`, in the `size` bytes of its parameter at `offset`."""

    index: int
    cast: str | None
    offset: int
    size: int


@dataclass(frozen=True)
class RepeatedLaunch:
    """A launch of a kernel on a device, with memory and numbers as in one that ran: nothing is checked.

    `apart` launches on aligned memory of which nothing that is written overlaps anything else, `plain` on any other.
    `enqueue_native` launches in C; -1 leaves it to `enqueue`.
    """

    name: str
    driver: Driver
    enqueue_native: Callable[[Prepared, int, list[int], list[Piece]], int]
    enqueue: Callable[[Prepared, int], int]
    device: int
    apart: Prepared
    plain: Prepared
    numbers: tuple[Number, ...]

    def run(self, addresses: list[int], numbers: Sequence[Any]) -> None:
        """Launches in torch's current stream. `addresses` are of memory, and `numbers` the numbers, in order.

        What is written overlaps nothing else. Raises PTR389 and PTR390.
        """
        unaligned = 0
        for address in addresses:
            unaligned |= address
        prepared = self.plain if unaligned % ALIGNMENT else self.apart
        pieces = [
            (place.offset, fit(pack_argument(place.index, number, place.cast), place.size) or b"")
            for place, number in zip(self.numbers, numbers, strict=True)
        ]
        status = self.enqueue_native(prepared, self.device, addresses, pieces)
        if status < 0:
            status = self._enqueue(prepared, addresses, pieces)
        if status:
            self.driver.refuse_launch(self.name, status)

    def _enqueue(self, prepared: Prepared, addresses: Sequence[int], pieces: Sequence[Piece]) -> int:
        block = prepared.block
        with prepared.lock:
            for word, address in zip(prepared.words, addresses, strict=True):
                block[word] = address
            for offset, data in pieces:
                prepared.put(offset, data)
            return self.enqueue(prepared, self.device)
