"""What the host reads of memory that a kernel was to write: numbers, copies and operators that run on the host."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from aten_overlay.device.load import started
from aten_overlay.device.shader import MetalKernel, ShaderLibrary
from aten_overlay.device.windows import running_ends

SOURCE = """
kernel void rows(device float* out, constant uint& count, uint i [[thread_position_in_grid]]) {
  if (i < count) out[i] = 1;
}
kernel void flags(device bool* out, constant uint& count, uint i [[thread_position_in_grid]]) {
  if (i < count) out[i] = true;
}
"""


def load(name: str, sanitize: bool = True) -> MetalKernel:
    device = started()
    assert device is not None
    kernel: MetalKernel = getattr(ShaderLibrary(SOURCE, device, sanitize=sanitize), name)
    return kernel


def write(count: int, dtype: torch.dtype = torch.float32, sanitize: bool = True) -> torch.Tensor:
    """A tensor of 8 x 8 elements, of which a kernel wrote so many."""
    out = torch.empty(8, 8, dtype=dtype, device="mps")
    load("flags" if dtype == torch.bool else "rows", sanitize)(out, count, threads=64, arg_casts="int32")
    return out


@pytest.mark.parametrize(
    "read",
    [
        torch.Tensor.cpu, torch.Tensor.tolist, lambda x: x[7, 7].item(), lambda x: torch.linalg.matrix_norm(x),
        lambda x: torch.cat([torch.zeros(8, 8, device="mps"), x]), lambda x: torch.zeros(8, 8).copy_(x),
    ],
)  # fmt: skip
def test_what_no_thread_wrote_is_named(read: Callable[[torch.Tensor], object]) -> None:
    read(write(64))
    with pytest.raises(RuntimeError, match=r"PTR262: the host reads \[.*\] of a tensor.*; kernel `rows` was the last"):
        read(write(60))


def test_the_first_element_and_their_number_are_told() -> None:
    with pytest.raises(RuntimeError, match=r"the host reads \[7, 4\] of a tensor, and 3 more of its elements, which"):
        write(60).cpu()
    with pytest.raises(RuntimeError, match=r"the host reads \[4, 7\] of a tensor, and 3 more of its elements, which"):
        write(60).T.cpu()
    with pytest.raises(RuntimeError, match=r"the host reads \[7, 0\] of a tensor, and 7 more of its elements, which"):
        write(56, torch.bool).cpu()


def test_what_was_written_may_be_read_whoever_wrote_it() -> None:
    part = write(60)
    assert part[:7].sum().item() == 56
    assert part.shape == part.view(64).view(8, 8).shape
    part.view(64)[60:] = 2
    assert part.sum().item() == 68
    write(60).zero_().cpu()


def test_memory_that_no_kernel_was_given_is_nobodys_fault() -> None:
    write(60)
    torch.empty(8, 8, device="mps").cpu()


def test_unwatched_kernels_and_parts_of_grids_pass() -> None:
    write(60, sanitize=False).cpu()
    with running_ends(4):
        write(60).cpu()
