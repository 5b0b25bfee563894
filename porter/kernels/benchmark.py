"""`benchmark`: a kernel against torch over several sizes, with the threadgroup that is best for each."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import torch

from aten_overlay.device import load
from porter.core.errors import PorterError
from porter.kernels.call import Value
from porter.kernels.check import to_device
from porter.kernels.compare import BY_TYPE, compare, largest_of
from porter.kernels.references import Reference

WINDOW = 0.02
REPEATS = 5
Clock = Callable[[], float]


def synchronize() -> None:
    """Waits for the mps device, if there is one."""
    if torch.backends.mps.is_available():
        torch.mps.synchronize()


def measure(
    function: Callable[[], object],
    *,
    wait: Callable[[], None] = synchronize,
    clock: Clock = time.perf_counter,
    window: float = WINDOW,
    repeats: int = REPEATS,
) -> float:
    """The median over `repeats` windows of the seconds that one call takes.

    The first call, which may compile, is not measured; the second says how many fill a window.
    """
    _seconds(function, 1, wait, clock)
    calls = max(1, math.ceil(window / max(_seconds(function, 1, wait, clock), 1e-9)))
    return statistics.median(_seconds(function, calls, wait, clock) / calls for _ in range(repeats))


def _seconds(function: Callable[[], object], calls: int, wait: Callable[[], None], clock: Clock) -> float:
    wait()
    start = clock()
    for _ in range(calls):
        function()
    wait()
    return clock() - start


GROUPS: tuple[tuple[int, int, int], ...] = tuple((n, 1, 1) for n in (32, 64, 128, 256, 512, 1024))
Group: TypeAlias = Sequence[int] | None
RunInGroups: TypeAlias = Callable[[Group, Sequence[Value]], Any]
Measure: TypeAlias = Callable[[Callable[[], object]], float]


@dataclass(frozen=True)
class Timing:
    """Seconds of the kernel with one threadgroup; without a group, with that of its `launch`."""

    group: tuple[int, ...] | None
    seconds: float


@dataclass(frozen=True)
class Measurement:
    """One size: the inputs as text, the kernel's timings from the fastest on, and the seconds that torch takes.

    `wrong` is how the kernel differs from its reference, whose time then says nothing.
    """

    inputs: str
    timings: tuple[Timing, ...]
    torch_seconds: float
    wrong: str = ""

    @property
    def best(self) -> Timing:
        """The fastest."""
        return self.timings[0]

    @property
    def ratio(self) -> float:
        """The kernel's time in units of torch's: below 1 the kernel is faster."""
        return self.best.seconds / self.torch_seconds


@dataclass(frozen=True)
class BenchmarkReport:
    """What a benchmark measured, and on what."""

    kernel: str
    device: str
    measurements: tuple[Measurement, ...]

    def __str__(self) -> str:
        head = f"{self.kernel} on {self.device}: seconds of the kernel / seconds of torch"
        rows = (
            f"  {m.ratio:7.2f}  {m.best.seconds * 1e6:10.1f} us  {m.torch_seconds * 1e6:10.1f} us"
            f"  {_written(m.best.group)}  {m.inputs}{f'  WRONG: {m.wrong}' if m.wrong else ''}"
            for m in self.measurements
        )
        return "\n".join((head, "    ratio         kernel          torch  threadgroup  inputs", *rows))


def benchmark(
    name: str,
    run: RunInGroups,
    reference: Reference,
    examples: Sequence[Sequence[Value]],
    groups: Sequence[Group],
    measured: Measure = measure,
) -> BenchmarkReport:
    """Times `run(group, inputs)` for every example and group, and the reference on the same inputs.

    The reference runs where torch computes itself: on the CPU beside the stand-in, on the device of a Mac.
    """
    measurements = tuple(_measure(run, reference, example, groups, measured) for example in examples)
    return BenchmarkReport(name, "the stand-in" if load.started() else "mps", measurements)


def _measure(
    run: RunInGroups, reference: Reference, example: Sequence[Value], groups: Sequence[Group], measured: Measure
) -> Measurement:
    inputs = [to_device(v) if isinstance(v, torch.Tensor) else v for v in example]
    baseline = [v.cpu() if load.started() and isinstance(v, torch.Tensor) else v for v in inputs]
    results = _listed(run(groups[0], inputs))
    timings = [
        Timing(tuple(group) if group else None, measured(partial(run, group, inputs)))
        for group in _agreeing(run, inputs, groups, results)
    ]
    fastest = tuple(sorted(timings, key=lambda timing: timing.seconds))
    # How results differ from the reference's; "" if they do not
    found = (
        compare(f"result {number} ", ours, theirs, BY_TYPE, largest_of(theirs))[1]
        for number, (ours, theirs) in enumerate(zip(results, _listed(reference(*baseline)), strict=False))
    )
    wrong = next((str(each) for each in found if each is not None), "")
    return Measurement(_describe(inputs), fastest, measured(lambda: reference(*baseline)), wrong)


def _agreeing(
    run: Callable[[Group, Sequence[Value]], Any],
    inputs: Sequence[Value],
    groups: Sequence[Group],
    expected: Sequence[torch.Tensor],
) -> list[Group]:
    """The groups with which a kernel computes what it does with the first: a fast wrong answer is none."""
    first, *others = groups
    found: list[Group] = [first]
    for group in others:
        try:
            got = _listed(run(group, inputs))
        except PorterError:
            continue
        differ = (compare("", a, b, BY_TYPE)[1] for a, b in zip(got, expected, strict=True))
        if not any(differ):
            found.append(group)
    return found


def _listed(found: Any) -> list[torch.Tensor]:
    return [t.cpu() for t in ([found] if isinstance(found, torch.Tensor) else found)]


def _describe(inputs: Sequence[Value]) -> str:
    """Types and shapes: `float32[4, 16], 0.5`."""
    return ", ".join(_describe_one(value) for value in inputs)


def _describe_one(value: Value) -> str:
    if not isinstance(value, torch.Tensor):
        return str(value)
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"


def _written(group: tuple[int, ...] | None) -> str:
    return f"{'as launched' if group is None else 'x'.join(map(str, group)):11}"


def draw(report: BenchmarkReport, path: Path) -> None:
    """Writes the times of kernel and torch over the sizes to `path`; its suffix is the format. Raises PTR233."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PorterError(
            "PTR233",
            "plots need matplotlib, which is not installed",
            hint="Install it: pip install 'torch-porter[plot]'.",
        ) from error
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot(title=f"{report.kernel} on {report.device}", ylabel="microseconds per call", yscale="log")
    labels = [m.inputs for m in report.measurements]
    axes.plot(labels, [m.best.seconds * 1e6 for m in report.measurements], marker="o", label="kernel")
    axes.plot(labels, [m.torch_seconds * 1e6 for m in report.measurements], marker="o", label="torch")
    axes.tick_params(axis="x", rotation=30)
    axes.legend()
    figure.savefig(path)
