"""The device as it stands in this process."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Device:
    """The device as it stands in this process. `fork` is whose `c10/metal` headers shaders include."""

    fork: Path
    memory: ctypes.CDLL
    preload: ctypes.CDLL
    library: ctypes.CDLL

    def fallbacks(self) -> Mapping[str, int]:
        """How often each operator (`aten::name.overload`) fell back to the CPU since the last reset."""
        size = self.library.porter_fallback_counts(None, 0)
        text = ctypes.create_string_buffer(size)
        self.library.porter_fallback_counts(text, size)
        pairs = (line.rsplit(" ", 1) for line in text.value.decode().splitlines())
        return {name: int(count) for name, count in pairs}

    def reset_fallbacks(self) -> None:
        """Forgets the counts so far."""
        self.library.porter_fallback_reset()

    def refuse_fallbacks(self, refuse: bool = True) -> None:
        """Whether an operator without a kernel raises NotImplementedError instead of running on the CPU."""
        self.library.porter_fallback_refuse(int(refuse))

    def host_address(self, address: int) -> int:
        """Where the host finds the byte at a device address."""
        return int(self.memory.porter_host_address(address) or 0)

    def fill_memory(self, fill: bool) -> None:
        """Whether new memory is filled with a pattern, as it is at the start; that takes time."""
        self.memory.porter_memory_fill(int(fill))

    def allocate_sparsely(self, threshold: int) -> bool:
        """Makes new allocations of this many bytes and more addresses alone, whose pages exist once touched; 0 ends it.

        False if the system gives no addresses for that.
        """
        return int(self.memory.porter_memory_sparse(ctypes.c_uint64(threshold))) == 0

    def set_extents(self, address: int, extents: Sequence[tuple[int, int]]) -> None:
        """Says which bytes (from, to) of the sparse allocation at an address hold elements: kernels that are checked
        may touch no others."""
        flat = (ctypes.c_uint64 * (2 * len(extents)))(*(byte for extent in extents for byte in extent))
        status = self.memory.porter_memory_set_extents(ctypes.c_void_p(address), flat, ctypes.c_size_t(len(extents)))
        if status:
            raise ValueError(f"no sparse allocation starts at {address:#x}")

    def extents(self, address: int) -> list[tuple[int, int]]:
        """What was said of the sparse allocation at an address."""
        count = ctypes.c_size_t()
        found = self.memory.porter_memory_extents(ctypes.c_void_p(address), ctypes.byref(count))
        return [(found[2 * i], found[2 * i + 1]) for i in range(count.value)]

    def note_writer(self, address: int, kernel: str) -> None:
        """Says that a kernel may have written to the memory that the host finds at an address: what of it is unwritten
        is an error where the host reads it."""
        self.memory.porter_memory_note_writer(ctypes.c_void_p(address), kernel.encode())

    def overruns(self) -> int:
        """Allocations that something wrote past the end of, since the start."""
        return int(self.memory.porter_memory_overruns())

    def watch_cpu_memory(self, filling: int) -> None:
        """Gives what the CPU allocates from now on margins, and fills it with a byte.

        Refuses to allocate over 2 GiB at once. It cannot be undone: for a process that ends soon.
        """
        self.library.porter_margins_start(filling)

    def has_damaged_cpu_memory(self) -> bool:
        """Whether something was written beyond memory of the CPU since `watch_cpu_memory`."""
        return bool(self.library.porter_margins_damaged())
