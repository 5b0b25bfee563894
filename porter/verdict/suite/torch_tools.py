"""Quick forms of what torch's test tools do for every sample: theirs read source files for stacks that none shows."""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import sys
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.testing._internal import common_utils
from torch.testing._internal.opinfo import core
from torch.utils._python_dispatch import TorchDispatchMode


def make_quick() -> None:
    """Replaces torch's tools in this process; what they compute, and the random numbers of samples, stay the same."""
    for module in (common_utils, core):
        module.extract_test_fn = find_test
    for device in (torch.cuda, torch.xpu, torch.mtia):
        if not (device._is_compiled() and device.device_count()):
            device.manual_seed_all = _seed_nothing


@contextmanager
def unfused_attention() -> Iterator[None]:
    """The CPU computes attention as it is computed where the device is asked to: scores, their weights, then sums.

    Its fused kernel hides keys before it multiplies scores, of which a negative scale makes NaN, and gives zeros for a
    query of NaN.
    """
    was_enabled = torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(False)  # the CPU's too
    try:
        yield
    finally:
        torch.backends.cuda.enable_flash_sdp(was_enabled)


class Decomposing(TorchDispatchMode):
    """Computes operators by torch's decompositions in the place of the CPU's kernels, where these exist and succeed.

    Both are ATen's word for an operator. The CPU's batch norm multiplies its mean by the weight first: infinite weights
    make NaN where the decomposition, and CUDA's kernel, have infinity.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with suppress(Exception):  # one of batch norm divides by zero for a single element
            return decomposition_table[func](*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def find_test() -> Callable[..., Any] | None:
    """The function of the test that runs, None outside of one; as `extract_test_fn`, whose name seeds samples.

    Source: torch/testing/_internal/common_utils.py.
    """
    frame: FrameType | None = sys._getframe(1)
    with suppress(Exception):
        while frame is not None:
            found = _read_test(frame.f_locals.get("self"))
            if found:
                return found
            frame = frame.f_back
    return None


def _read_test(value: object) -> Callable[..., Any] | None:
    if not isinstance(value, unittest.TestCase):
        return None
    *_, cls, name = value.id().rsplit(".", 2)
    is_running = cls == type(value).__name__ and name.startswith("test")
    found: Callable[..., Any] | None = getattr(value, name).__func__ if is_running else None
    return found


def _seed_nothing(seed: int) -> None:
    """Seeds the devices of a kind of which there is none; torch's own keeps the stack, until there is one.

    PyPI's torch for Linux is built for CUDA, which most machines that verify ports lack.
    """
