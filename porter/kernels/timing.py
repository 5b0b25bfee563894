"""Times a script's tiers beside the torch operator, in one process.

On the host the operator runs on the CPU: a ratio says what the host makes of the kernel, not what a GPU would. Both
run on one core there, and processor time counts: other programs and threads that wait do not. On a CUDA device both run
there, and events tell the time.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch

from aten_overlay.device import load
from aten_overlay.metal.launch import limit_threads
from porter.core.errors import PorterError
from porter.kernels.call import CUDA, DEVICE
from porter.kernels.script import Case, Kind, Script, Stage, Values, moved, on_cpu

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


ROUNDS = 100
_SECONDS = 1.0  # a measurement ends after this long, and after three rounds
_FEWEST = 3


@dataclass(frozen=True)
class Fused:
    """Milliseconds of a stage: of its kernel, and of separate operators of torch that compute the same."""

    stage: str
    kernel: float
    operators: float

    @property
    def ratio(self) -> float:
        """How many times as long as the kernel the operators take."""
        return self.operators / self.kernel


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one case: of the kernels, of their simple tier (None without one), and of torch.

    `fused` has the stages that are also written in separate operators of torch. `copied` is, on a CUDA device, the
    bytes of the kernels' inputs and outputs a second, as a fraction of those that a copy reads and writes.
    """

    case: str
    kind: Kind
    kernel: float
    simple: float | None
    torch: float
    fused: tuple[Fused, ...] = ()
    copied: float | None = None

    @property
    def ratio(self) -> float:
        """How many times as long as torch the kernels take."""
        return self.kernel / self.torch

    @property
    def to_simple(self) -> float | None:
        """How many times as long as their simple tier the kernels take."""
        return self.kernel / self.simple if self.simple else None


@contextmanager
def without_fill() -> Iterator[None]:
    """Leaves new memory of the stand-in as it is, as torch's allocator does, while something is measured."""
    device = load.started()
    if device is None:
        yield
        return
    device.fill_memory(False)
    try:
        yield
    finally:
        device.fill_memory(True)


@contextmanager
def on_one_core() -> Iterator[None]:
    """Runs kernels of the stand-in, and torch's operators, on the thread that calls them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with limit_threads(1):
            yield
    finally:
        torch.set_num_threads(threads)


def measure(script: Script, device: str = DEVICE) -> Iterator[Timing]:
    """Every size to time, in the script's first two element types. Raises PTR287 for a script without any."""
    if not script.benchmark:
        raise PorterError("PTR287", "`benchmark` of SCRIPT is ()", hint="Give it sizes to time: ((1 << 20,),).")
    for size in script.benchmark:
        for dtype in script.dtypes[:2]:
            case = Case(size, dtype, device=device)
            yield _measure_case(script, case)


def _measure_case(script: Script, case: Case) -> Timing:
    values = script.values(case)
    kernel, simple, reference = 0.0, 0.0, 0.0
    fused, moved_bytes, is_cuda = [], 0, case.device == CUDA
    for stage in script.stages:
        on_host = on_cpu(values) if not is_cuda and sys.platform != "darwin" else values
        runs = _runs(stage, values, on_host)
        listed = list(runs.values())
        times = dict(zip(runs, time_by_events(listed) if is_cuda else _fastest(listed), strict=True))
        kernel, reference = kernel + times["run"], reference + times["reference"]
        simple += times["simple"] if stage.simple else times["run"]
        if stage.operators:
            fused.append(Fused(stage.name, times["run"] * 1e3, times["operators"] * 1e3))
        results = moved(stage.results(stage.reference, on_host), case.device)
        moved_bytes += _count_bytes([*(values[name] for name in stage.takes), *results.values()])
        values |= results
    has_simple = any(stage.simple for stage in script.stages)
    plain = simple * 1e3 if has_simple else None
    copied = moved_bytes / kernel / copy_bandwidth() if is_cuda else None
    return Timing(str(case), script.kind, kernel * 1e3, plain, reference * 1e3, tuple(fused), copied)


def _count_bytes(values: Iterable[Any]) -> int:
    return sum(value.nbytes for value in values if isinstance(value, torch.Tensor))


def _runs(stage: Stage, values: Values, on_host: Values) -> dict[str, Callable[[], Any]]:
    """What is timed of a stage, by the field that holds it: functions that ran once. Raises PTR287."""
    given = {"run": values, "reference": on_host, "simple": values, "operators": on_host}
    runs: dict[str, Callable[[], Any]] = {}
    for name, taken in given.items():
        if function := getattr(stage, name):
            stage.results(function, taken)
            runs[name] = partial(function, *(taken[each] for each in stage.takes))
    return runs


def _fastest(runs: list[Callable[[], Any]]) -> list[float]:
    """Seconds of the fastest round of each, in turns, so that what else the machine does slows all of them.

    The first two rounds, which compile and warm caches, do not count.
    """
    for run in runs * 2:
        run()
    best = [float("inf")] * len(runs)
    end = time.perf_counter() + _SECONDS
    for done in range(ROUNDS):
        if done >= _FEWEST and time.perf_counter() > end:
            break
        for index, run in enumerate(runs):
            best[index] = min(best[index], _seconds(run))
    return best


def _seconds(run: Callable[[], Any]) -> float:
    clock = time.process_time if load.started() else time.perf_counter
    torch.mps.synchronize()
    start = clock()
    run()
    torch.mps.synchronize()
    return clock() - start
