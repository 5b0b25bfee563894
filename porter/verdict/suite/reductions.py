"""Operators that reduce more rows than 32 bits count.

The rows are zeros whose pages are never made, and those of a sample behind them. What is made of so many is known where
the CPU makes the same of any few zeros, as a sum does, or whole numbers that grow with each, as an index does. Every
thread of such a launch runs, in a child process; races and memory without a value, which take a record of each byte,
are not looked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from aten_overlay.device import frameworks, load
from aten_overlay.device.apart import run_apart
from aten_overlay.device.placements import Boundary, allocate
from aten_overlay.metal.launch import WITHOUT_CELLS
from porter.verdict.suite import counters, results, samples
from porter.verdict.suite.leaves import compute
from porter.verdict.suite.rows import Found, widen_rows

ZEROS = (3, 5, 9)  # rows before the sample's, where the CPU tells what an operator makes of them
SECONDS = 45.0  # of all runs of one test, which is ended after 60
_CODED = "PTR"
_RIGHT: dict[str, Any] = {"equal_nan": True, "rtol": 1e-3, "atol": 1e-4}

Predicted = Callable[[int], torch.Tensor]


def reduces_rows(op: OpInfo, sample: SampleInput) -> bool:
    """Whether the operator makes one tensor of a sample whose shape does not tell how many rows there are."""
    found = _reduce_few(op, sample)
    return len({each.shape for each in found}) == 1


def predict(op: OpInfo, sample: SampleInput) -> Predicted | None:
    """What a reduction makes of a sample behind any number of zero rows; None if a few do not tell."""
    few, more, most = _reduce_few(op, sample)
    if all(_is_same(few, each) for each in (more, most)):
        return lambda zeros: few
    if few.dtype != torch.int64 or not torch.equal((more - few) * 2, most - more):
        return None
    step = torch.div(more - few, ZEROS[1] - ZEROS[0], rounding_mode="floor")
    return lambda zeros: few + step * (zeros - ZEROS[0])


def _reduce_few(op: OpInfo, sample: SampleInput) -> list[torch.Tensor]:
    """The CPU's results for a few zero rows before a sample; none where it makes no tensor of them."""
    if not isinstance(sample.input, torch.Tensor) or not sample.input.numel() or not sample.input.ndim:
        return []
    try:
        given = [_put_behind_zeros(sample, zeros) for zeros in ZEROS]
        found = [compute(op, each) for each in given]
    except Exception:  # the operator is somebody else's, and need not take other shapes
        return []
    return found if all(isinstance(each, torch.Tensor) for each in found) else []


def compare_reduced(
    op: OpInfo, sample: SampleInput, predicted: Predicted, boundary: Boundary, seconds: float = SECONDS
) -> Found:
    """Runs the operator over so many rows that their elements pass a boundary."""
    told = run_apart(lambda: json.dumps(asdict(_compare_here(op, sample, predicted, boundary))), seconds)
    if told:
        return Found(**json.loads(told))
    return Found(refused="PTR356 not run to its end: there is no more time, or code goes over all of a storage")


def _compare_here(op: OpInfo, sample: SampleInput, predicted: Predicted, boundary: Boundary) -> Found:
    count = len(sample.input)
    zeros = boundary.elements(sample.input.element_size()) // max(sample.input[0].numel(), 1) + 1

    def widen(tensor: torch.Tensor) -> torch.Tensor:
        shape = (zeros + count, *tensor.shape[1:])
        wide = allocate(shape, tensor.dtype, (torch.empty(shape, device="meta").stride(), 0))
        wide[-count:].copy_(tensor)
        return wide

    placed = widen_rows(sample, widen)
    before = counters.read()
    device = load.started()
    assert device is not None
    frameworks.load(device).library.porter_launch_options(WITHOUT_CELLS, 0, 0)
    try:
        got = op(placed.input, *placed.args, **samples.mirror(placed.kwargs, "mps")).cpu()
    except Exception as error:
        told = results.describe_error(error).splitlines()[0]
        return Found(wrong=told) if _CODED in told else Found(refused=f"refused: {told}")
    try:
        torch.testing.assert_close(got, predicted(zeros), **_RIGHT)
    except AssertionError as error:
        ran = ", ".join(f"`{name}`" for name in counters.since(before).kernels)
        return Found(wrong=f"PTR270 kernel {ran}: what is made of {zeros + count} rows is wrong: {error}")
    return Found()


def _put_behind_zeros(sample: SampleInput, zeros: int) -> SampleInput:
    return widen_rows(sample, lambda t: torch.cat([t.new_zeros((zeros, *t.shape[1:])), t]))


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and torch.allclose(one, other, **_RIGHT)
