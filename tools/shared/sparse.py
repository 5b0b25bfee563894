"""Memory for arguments that nobody chose: what strays out of it by up to a gigabyte reads zeros and writes nowhere."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

_REACH = 2 << 30  # bytes, before and after
_SIZE = 64 << 10
_NO_RESERVE = 0x4000  # Linux's MAP_NORESERVE, which Python does not name before 3.13
_LOW = 0x40  # Linux's MAP_32BIT, of x86-64 alone
_LOW_REACH = 256 << 20


class Sparse:
    """A range of addresses of which only the pages touched take memory."""

    def __init__(self, low: bool = False) -> None:
        """`low` memory, of a smaller reach, has an address of 31 bits where the processor has such."""
        reach, place = (_LOW_REACH, _LOW * (os.uname().machine == "x86_64")) if low else (_REACH, 0)
        self._memory = mmap.mmap(-1, 2 * reach, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE | place)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory)) + reach
        self._words = (ctypes.c_uint64 * (_SIZE // 8)).from_address(self.address)

    def fill(self, value: int) -> Any:
        """The middle of the range, filled anew: each eight bytes are `value`."""
        self._words[:] = [value] * len(self._words)
        return self._words
