"""The planted faults: which check has to find each, and how its kernel is launched.

    compute-sanitizer ... python tests/aten_overlay/cuda/planted.py KERNEL

launches one on a GPU; tools/cuda_faults.py runs all of them under the tools. Those of MISSED need none: porter's own
count of the threads at a barrier finds them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("planted.metal")
FAULTS: Mapping[str, str] = {
    "missing_barrier": "races", "reused_too_early": "races", "simdgroups_not_in_step": "races",
    "halving_without_barrier": "races", "reads_one_past": "bounds", "writes_past_a_ragged_end": "bounds",
    "reads_before": "bounds", "past_threadgroup_memory": "bounds", "barrier_in_a_branch": "barriers",
    "barrier_in_both_branches": "barriers", "adds_to_nothing": "uninitialized",
}  # fmt: skip
MISSED = ("barrier_after_return", "barrier_in_a_branch")
N = 1024
# Threads more than there are elements.
RAGGED = {"writes_past_a_ragged_end": 256}
COUNTED = ("reads_one_past", "writes_past_a_ragged_end", "reads_before")


def find_lines(kernel: str) -> tuple[int, ...]:
    """The lines that a finding on a kernel may name."""
    marked = re.compile(rf"// {kernel}$")
    return tuple(n for n, line in enumerate(SOURCE.read_text().splitlines(), 1) if marked.search(line))


def launch(kernel: str, shuffle: int | None = None) -> None:
    """Launches a kernel over 1024 floats, in an order made of a seed or in the GPU's own, and waits."""
    import torch

    from aten_overlay.cuda.library import compile_shader
    from aten_overlay.cuda.schedule import compile_scheduled

    values = torch.ones(N)
    x, y = values.cuda(), torch.empty(N, device="cuda")
    numbers = [N] if kernel in COUNTED else []
    threads = N + RAGGED.get(kernel, 0)
    library: Any = compile_shader(SOURCE, restrict=False) if shuffle is None else compile_scheduled(SOURCE, shuffle)
    function = getattr(library, kernel)
    function(x, y, *numbers, threads=threads, group_size=256, arg_casts="int32")
    torch.cuda.synchronize()


if __name__ == "__main__":
    launch(sys.argv[1], *map(int, sys.argv[2:]))
