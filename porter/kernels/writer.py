"""Finds out which thread of which kernel wrote an element of a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from aten_overlay.device import load
from aten_overlay.metal.tracing import watching
from porter.kernels.call import Call
from porter.kernels.kernel import Kernel
from porter.kernels.launch import Mode, observing, running


@dataclass(frozen=True)
class Writer:
    """The last of `count` stores to an element: the kernel, its thread in the grid, and the line with its text.

    Without a thread, the kernel has the element among its outputs and never writes it.
    """

    kernel: str
    thread: tuple[int, int, int] | None = None
    file: str = ""
    line: int = 0
    text: str = ""
    count: int = 0


@dataclass(frozen=True)
class _Place:
    """Output number `output` of launch number `launch`, and its element there."""

    launch: int
    output: int
    element: int


@dataclass
class _Launches:
    """The launches of one run, in order."""

    seen: list[tuple[Kernel, Sequence[Tensor]]] = field(default_factory=list)

    def add(self, kernel: Kernel, _call: Call, outputs: Sequence[Tensor]) -> None:
        self.seen.append((kernel, outputs))


def find_writer(run: Callable[[], Tensor], index: Sequence[int], shuffle: int | None) -> Writer | None:
    """Who wrote element `index` of what `run` gives; None where no kernel's output holds it, and on a Mac.

    Runs twice: first to learn which launch the result comes from, then to watch the element.
    """
    device = load.started()
    if device is None:
        return None
    launches = _Launches()
    with observing(launches.add):
        result = run()
    if result.dim() != len(index):  # it has another shape than it should
        return None
    place = _find_place(launches.seen, result, index)
    if place is None:
        return None
    count = 0
    with watching() as watcher:

        def watch(_kernel: Kernel, _call: Call, outputs: Sequence[Tensor]) -> None:
            nonlocal count
            output = outputs[place.output] if count == place.launch else None
            count += 1
            if output is None:
                watcher.move(0, 0)
                return
            start = device.host_address(output.untyped_storage().data_ptr())
            size = output.element_size()
            watcher.move(start + (int(output.storage_offset()) + place.element) * size, size)

        with observing(watch), running(Mode(checked=True, shuffle=shuffle, traced=True)):
            run()
        write = watcher.last_write()
    kernel = launches.seen[place.launch][0]
    if write is None:
        return Writer(kernel.name)
    text = _find_line(kernel, write.file, write.line)
    return Writer(kernel.name, write.thread, write.file, write.line, text, write.count)


def _find_line(kernel: Kernel, file: str, line: int) -> str:
    """A line of a kernel's body or header, which are numbered as they are written; "" for that of another file."""
    text = {f"{kernel.name} body": kernel.body, f"{kernel.name} header": kernel.header}.get(file, "")
    lines = text.split("\n")
    return lines[line - 1].strip() if line <= len(lines) else ""


def _find_place(
    launches: Sequence[tuple[Kernel, Sequence[Tensor]]], result: Tensor, index: Sequence[int]
) -> _Place | None:
    """The last output that shares the result's memory, or else has its shape: of the one the result is a copy."""
    outputs = [(n, k, out) for n, (_, each) in enumerate(launches) for k, out in enumerate(each)][::-1]
    at = sum(i * stride for i, stride in zip(index, result.stride(), strict=True)) + int(result.storage_offset())
    for launch, number, output in outputs:
        if output.untyped_storage().data_ptr() == result.untyped_storage().data_ptr():
            return _Place(launch, number, at)
    for launch, number, output in outputs:
        if output.shape == result.shape:
            dense = sum(i * stride for i, stride in zip(index, output.stride(), strict=True))
            return _Place(launch, number, dense)
    return None
