"""Times on a CUDA device, by events in its stream."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch

_WARM_UP, _ROUNDS = 3, 21
_COPIED = 1 << 29  # bytes: far more than any cache holds


def time_by_events(runs: Sequence[Callable[[], Any]]) -> list[float]:
    """The median seconds of each, in turns after a warm-up, so that what else the device does slows all of them."""
    for run in list(runs) * _WARM_UP:
        run()
    spans: list[list[tuple[torch.cuda.Event, torch.cuda.Event]]] = [[] for _ in runs]
    for _ in range(_ROUNDS):
        for run, found in zip(runs, spans, strict=True):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            run()
            end.record()
            found.append((start, end))
    torch.cuda.synchronize()
    return [statistics.median(start.elapsed_time(end) for start, end in found) / 1e3 for found in spans]


@lru_cache(maxsize=1)
def copy_bandwidth() -> float:
    """Bytes a second that a copy from device memory to device memory reads and writes."""
    source = torch.empty(_COPIED, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    (seconds,) = time_by_events([lambda: target.copy_(source)])
    return 2 * _COPIED / seconds
