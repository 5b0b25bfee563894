"""How a grid is shared out over threads of the host: each of its threads runs once, on no more than are allowed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.launch import Library

COUNTING = """#include <metal_stdlib>
kernel void count(device int* out, uint i [[thread_position_in_grid]]) { out[i] += 1; }
"""


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [65_536, 65_537, 300_001])
def test_every_thread_of_a_grid_runs_once(count: int, threads: int) -> None:
    out = np.zeros(count, np.int32)
    library = Library(compile_kernels(COUNTING, ["count"]))
    for _ in range(3):
        library.run("count", [out], [count], threads=threads)
    assert np.array_equal(out, np.full(count, 3, np.int32))


# In a process of its own: threads that were started once stay.
LIMITED = f"""
import os
import numpy as np
from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.launch import Library, limit_threads
library = Library(compile_kernels({COUNTING!r}, ["count"]))
out = np.zeros(300_000, np.int32)
before = len(os.listdir("/proc/self/task"))
for limit in (1, 3, 1):
    with limit_threads(limit):
        library.run("count", [out], [out.size])
    print(len(os.listdir("/proc/self/task")) - before)
assert (out == 3).all()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_limit_holds_for_launches_that_say_nothing_else() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], text=True, capture_output=True, check=True)
    assert done.stdout.split() == ["0", "2", "2"]
