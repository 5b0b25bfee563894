"""What a fork's own files beside the new ones do, so that the new ones do it too."""

from __future__ import annotations

import re
from dataclasses import dataclass

from porter.core.checkout import Checkout
from porter.core.layout import DEVICE, KERNELS, OPERATIONS

_BFLOAT_GUARD = re.compile(rb"^#if __METAL_VERSION__ >= 310\s*$", re.M)


@dataclass(frozen=True)
class Style:
    """Whether kernels may be compiled at run time, calls are profiled, and bfloat needs a version of Metal."""

    jit: bool = True
    profiler: bool = True
    bfloat_guard: bool = False


def read_style(checkout: Checkout) -> Style:
    """The style of a fork, by its operations and kernels."""
    hosts = [data for _, data in checkout.folder(OPERATIONS, ".mm").files]
    kernels = [data for _, data in checkout.folder(KERNELS, ".metal").files]
    return Style(
        jit=any(b"#ifndef PYTORCH_JIT_COMPILE_SHADERS" in data for data in hosts),
        profiler=any(b"beginProfileKernel" in data for data in hosts) and checkout.exists(f"{DEVICE}/MPSProfiler.h"),
        bfloat_guard=any(_BFLOAT_GUARD.search(data) for data in kernels),
    )
