"""Reads behind a tensor by every route to a kernel, and says what each ends in."""

import sys
from collections.abc import Callable

import torch
from torch.utils import cpp_extension

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void further(device float* out, constant float* in, uint i [[thread_position_in_grid]]) { out[i] = in[i + 1]; }
"""

cpp_extension.load("slices", [sys.argv[1]], build_directory=sys.argv[2], is_python_module=False)
ops = torch.ops.slices_test


def report(route: str, call: Callable[..., object], x: torch.Tensor) -> None:
    out = torch.zeros(4, device="mps")
    try:
        call(x, out)
        torch.mps.synchronize()
    except RuntimeError as error:
        print(f"{route}: {str(error)[:6]}")
    else:
        print(f"{route}: nothing")


def shade(x: torch.Tensor, out: torch.Tensor) -> None:
    torch.mps.compile_shader(SOURCE).further(out, x)


whole = torch.arange(4.0, device="mps")
report("compile_shader", shade, whole)
report("extension", ops.reads_further, whole)
report("extension, part of a buffer", ops.reads_further, torch.arange(8.0, device="mps")[2:6])
report("extension, right", ops.copies, whole)
