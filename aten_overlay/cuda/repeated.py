"""A kernel launched again and again with arguments alike: all but addresses and numbers is prepared once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aten_overlay.cuda.driver import Driver
from aten_overlay.cuda.launch import Prepared
from aten_overlay.cuda.numbers import fit, pack_argument

ALIGNMENT = 16  # of addresses that are read and written 16 bytes at a time


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
    """

    name: str
    driver: Driver
    enqueue: Callable[[Prepared, int], int]
    device: int
    apart: Prepared
    plain: Prepared
    numbers: tuple[Number, ...]

    def run(self, addresses: Sequence[int], numbers: Sequence[Any]) -> None:
        """Launches in torch's current stream. `addresses` are of memory, and `numbers` the numbers, in order.

        What is written overlaps nothing else. Raises PTR389 and PTR390.
        """
        unaligned = 0
        for address in addresses:
            unaligned |= address
        prepared = self.plain if unaligned % ALIGNMENT else self.apart
        block = prepared.block
        with prepared.lock:
            for word, address in zip(prepared.words, addresses, strict=True):
                block[word] = address
            for place, number in zip(self.numbers, numbers, strict=True):
                prepared.put(place.offset, fit(pack_argument(place.index, number, place.cast), place.size) or b"")
            status = self.enqueue(prepared, self.device)
        if status:
            self.driver.refuse_launch(self.name, status)
