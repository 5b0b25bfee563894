"""Reads behind a tensor by every route to a kernel, and says what each ends in."""

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch.utils import cpp_extension

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void further(device float* out, constant float* in, uint i [[thread_position_in_grid]]) { out[i] = in[i + 1]; }
"""

cpp_extension.load("slices", [sys.argv[1]], build_directory=sys.argv[2], is_python_module=False)
ops = torch.ops.slices_test


def report(route: str, call: Callable[..., object], *arguments: object) -> None:
    try:
        call(*arguments)
        torch.mps.synchronize()
    except RuntimeError as error:
        print(f"{route}: {str(error)[:6]}")
    else:
        print(f"{route}: nothing")


def shade(x: torch.Tensor, out: torch.Tensor) -> None:
    torch.mps.compile_shader(SOURCE).further(out, x)


def call_directly(x: torch.Tensor, out: torch.Tensor) -> None:
    function = ctypes.CDLL(str(Path(sys.argv[2], "slices.so"))).read_further_directly
    function.argtypes, function.restype = [ctypes.c_void_p] * 2, ctypes.c_char_p
    if error := function(x._cdata, out._cdata):
        raise RuntimeError(error.decode())


def end_in_copy(x: torch.Tensor) -> None:
    x.cpu()  # the host waits, and the encoder has ended
    ops.makes_second_encoder(x, False)


def read_filled(read: Callable[[torch.Tensor], torch.Tensor], waits: bool) -> None:
    x = torch.zeros(4, dtype=torch.uint8, device="mps")
    torch.mps.synchronize()
    ops.fills_on_its_own_queue(x, 7, waits)
    if read(x).sum() != 28:
        raise RuntimeError("stale ")


whole, out = torch.arange(4.0, device="mps"), torch.zeros(4, device="mps")
report("compile_shader", shade, whole, out)
report("extension", ops.reads_further, whole, out)
report("extension, part of a buffer", ops.reads_further, torch.arange(8.0, device="mps")[2:6], out)
report("extension, no operator", call_directly, whole, out)
report("extension, no operator, part of a buffer", call_directly, torch.arange(8.0, device="mps")[2:6], out)
report("extension, right", ops.copies, whole, out)
report(
    "extension, a part unwritten", lambda x: (ops.copies(x, (y := torch.empty(8, device="mps"))[:4]), y.cpu()), whole
)
report("extension, all written", lambda x: (ops.copies(x, y := torch.empty(4, device="mps")), y.cpu()), whole)
report("encoder outside of the queue", ops.takes_encoder_outside, whole)
report("second encoder, after an operator", lambda x: ops.makes_second_encoder(x + 1, False), whole)
report("second encoder, the first ended", lambda x: ops.makes_second_encoder(x + 1, True), whole)
report("second encoder, after a copy to the host", end_in_copy, whole)
report("second encoder, after random numbers", lambda x: ops.makes_second_encoder((x + 1).normal_(), False), whole)
report("second encoder, after a copy", lambda x: ops.makes_second_encoder((x + 1).copy_(torch.ones(4)), False), whole)
report("own queue, a copy", read_filled, torch.Tensor.cpu, False)
report("own queue, an operator", read_filled, torch.Tensor.clone, False)
report("own queue, a number", read_filled, lambda x: torch.tensor(x.tolist()), False)
report("own queue, waited for", read_filled, torch.Tensor.cpu, True)
report("extension, all bound", lambda x: [ops.binds(x, out, True) for _ in range(2)], whole)
report("extension, one left over", lambda x: [ops.binds(x, out, every) for every in (True, False)], whole)
