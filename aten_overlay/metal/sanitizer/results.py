"""What a launch left unwritten."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from aten_overlay.metal import compiler


@dataclass(frozen=True)
class Unwritten:
    """Elements that no thread wrote: how many, and the number of the first."""

    count: int
    first: int


def find_unwritten(address: int, count: int, size: int) -> Unwritten | None:
    """The elements at an address of the host that the last launch of this thread, if the sanitizer watched it, left."""
    function = ctypes.CDLL(str(compiler.runtime_library())).pm_count_unwritten
    function.restype = ctypes.c_uint64
    first = ctypes.c_uint64()
    found = function(ctypes.c_void_p(address), ctypes.c_uint64(count), ctypes.c_uint64(size), ctypes.byref(first))
    return Unwritten(found, first.value) if found else None
