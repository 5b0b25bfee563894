"""A kernel that ends the process, in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from aten_overlay.metal.build import compile_kernels

WRITING = """#include <metal_stdlib>
using namespace metal;
kernel void far_away(device char* out, uint i [[thread_position_in_grid]]) { out[i + (1ul << 46)] = 1; }
kernel void far_away_after_a_barrier(device char* out, uint i [[thread_position_in_threadgroup]]) {
  threadgroup char shared[64];
  shared[i] = char(i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[shared[63 - i] + (1ul << 46)] = 1;
}
"""
NAMES = ("far_away", "far_away_after_a_barrier")
START = f"""
import ctypes, faulthandler, os, signal
import numpy as np
from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.launch import Library
library = Library(compile_kernels({WRITING!r}, {NAMES!r}))
def launch(name):
    library.run(name, [np.zeros(64, np.int8)], [64], [64])
"""


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    compile_kernels(WRITING, NAMES)


def end(program: str) -> str:
    """What a program prints that a signal for wrong memory ends."""
    done = subprocess.run([sys.executable, "-c", f"{START}{program}"], text=True, capture_output=True, check=False)
    assert done.returncode == -signal.SIGSEGV, done.stderr
    return done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_is_named_once(name: str) -> None:
    said = end(f"launch({name!r})")
    assert said.startswith(f"PTR445: kernel `{name}` accesses memory that is not there, and ends the process\n  Run")
    assert said.count("PTR445") == 1


@pytest.mark.parametrize("order", ["faulthandler.enable(); library.run", "library.run; faulthandler.enable()"])
def test_the_handler_that_was_there_runs_too(order: str) -> None:
    said = end(f"{order}\nlaunch('far_away')")
    assert "PTR445" in said and "Fatal Python error: Segmentation fault" in said


@pytest.mark.parametrize("cause", ["ctypes.string_at(8)", "os.kill(os.getpid(), signal.SIGSEGV)"])
def test_no_kernel_is_named_where_none_runs(cause: str) -> None:
    assert end(f"{cause}") == ""
