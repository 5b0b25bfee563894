"""Operators of a fork on the stand-in for Apple's GPU against ATen's own on the CPU: ratios of medians of CPU time.

    python benchmarks/ports.py FORK OPINFO... [--elements N] [--rounds N]

The whole fork is built, which takes minutes the first time. An operator is called as its OpInfo does, in float32 and on
one thread, with rows made long: along the first or the last dimension, along columns, or by more of them. Where no
sample allows that, the largest is called, where a launch is most of the time. Both sides are measured in turns. A ratio
says what the stand-in costs, not what a GPU would: lanes of one threadgroup take turns at every barrier.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aten_overlay
from porter.core.checkout import find_checkout
from porter.verdict.backends import host

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo, SampleInput

COLUMNS = 64
LARGEST = "largest of OpInfo"
SAMPLES = 12  # of an OpInfo that are tried


def main(fork: Path, ops: Sequence[str], elements: int, rounds: int) -> int:
    os.environ.setdefault("MTL_DEBUG_LAYER", "0")
    checkout = find_checkout(fork, Path.cwd(), dict(os.environ))
    aten_overlay.start_as_mac(checkout.root)
    host.start()
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    sys.path.append(str(Path(__file__).parents[1] / "tools"))
    from shared.whole_fork import build_whole, load_whole

    torch.set_num_threads(1)
    load_whole(build_whole(checkout))
    for op in (each for each in op_db if each.name in ops):
        for label, sample in list_samples(op, elements):
            runs = run_on(op, sample, "cpu"), run_on(op, sample, "mps")
            if not takes(runs[1]):
                print(f"{op.name} {label}: the device refuses it")
                continue
            on_cpu, on_host = compare(*runs, rounds)
            print(
                f"{op.name} {label} {tuple(sample.input.shape)}: {1000 * on_cpu:.3f} ms, {on_host / on_cpu:.2f} times"
            )
    return 0


def list_samples(op: OpInfo, elements: int) -> Iterator[tuple[str, SampleInput]]:
    """A sample of each way to make rows long that the CPU takes; the largest one if it takes none."""
    import torch

    from porter.verdict.suite.long_rows import lengthen, repeat_rows

    samples = list(islice(op.sample_inputs("cpu", torch.float32), SAMPLES))
    made = (
        each
        for sample in samples
        for each in chain(lengthen(sample, elements, (elements // COLUMNS, COLUMNS)), repeat_rows(sample, elements))
    )
    found: dict[str, SampleInput] = {}
    for label, sample in made:
        if label not in found and not label.endswith("0s") and takes(run_on(op, sample, "cpu")):
            found[label] = sample
    yield from found.items() or [(LARGEST, max(samples, key=lambda each: each.input.numel()))]


def takes(run: Callable[[], object]) -> bool:
    from porter.verdict.suite.refusals import REFUSALS

    try:
        run()
    except REFUSALS:
        return False
    return True


def run_on(op: OpInfo, sample: SampleInput, device: str) -> Callable[[], object]:
    """A call of an operator on copies of its operands, until the device has computed it."""
    import torch

    moved = sample.transform(lambda each: each.detach().to(device) if isinstance(each, torch.Tensor) else each)

    def run() -> Any:
        found = op(moved.input, *moved.args, **moved.kwargs)
        if device == "mps":
            torch.mps.synchronize()
        return found

    return run


def compare(first: Callable[[], object], second: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The median seconds of CPU time of each, in turns, after a first round."""
    times: tuple[list[float], list[float]] = ([], [])
    for counted in (False, *[True] * rounds):
        for run, found in zip((first, second), times, strict=True):
            started = time.process_time()
            run()
            if counted:
                found.append(time.process_time() - started)
    return statistics.median(times[0]), statistics.median(times[1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fork", type=Path)
    parser.add_argument("ops", nargs="+", help="names of OpInfos")
    parser.add_argument("--elements", type=int, default=1 << 20)
    parser.add_argument("--rounds", type=int, default=9)
    sys.exit(main(**vars(parser.parse_args())))
