"""Large allocations of the device as addresses alone, whose pages exist once they are touched."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from aten_overlay.device import load
from aten_overlay.errors import OverlayError

if TYPE_CHECKING:
    from aten_overlay.device.state import Device

SPARSE_FROM = 1 << 30
_ZERO = "zero_"
_kept: list[torch.library.Library] = []


@contextmanager
def sparse_memory() -> Iterator[None]:
    """Large allocations of the device are sparse inside. Raises PTR271 if the system has no addresses for them."""
    device = load.started()
    _allocate_sparsely(device)
    assert device is not None
    try:
        yield
    finally:
        device.allocate_sparsely(0)


def start_large(device: Device | None) -> None:
    """From now on large allocations are sparse, and zeros that fill one take no memory. Raises PTR271."""
    _allocate_sparsely(device)
    fill_sparsely()


def fill_sparsely() -> None:
    """From now on zeros that fill a large allocation take no memory. Not for where an operator that writes them is
    tested.
    """
    if not _kept:
        _kept.append(torch.library.Library("aten", "IMPL"))
        _kept[0].impl(_ZERO, _write_zeros, "MPS")


def _allocate_sparsely(device: Device | None) -> None:
    if device is None or not device.allocate_sparsely(SPARSE_FROM):
        raise OverlayError(
            "PTR271", "the system gives no address space for large tensors",
            hint="Raise the limit of virtual memory (ulimit -v unlimited), or omit --large.",
        )  # fmt: skip


def _write_zeros(tensor: torch.Tensor) -> torch.Tensor:
    """Drops the pages of a sparse tensor, which read as zeros then."""
    device = load.started()
    assert device is not None
    size = tensor.numel() * tensor.element_size()
    if size < SPARSE_FROM or not tensor.is_contiguous() or size != tensor.untyped_storage().nbytes():
        return tensor.fill_(0)
    address = device.host_address(tensor.data_ptr())
    whole = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    status = ctypes.CDLL(None).madvise(ctypes.c_void_p(address), ctypes.c_size_t(whole), mmap.MADV_DONTNEED)
    return tensor if status == 0 else tensor.fill_(0)
