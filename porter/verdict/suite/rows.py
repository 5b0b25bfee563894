"""Operators over more rows than 32 bits count, where each row's result depends on that row alone.

The rows at both ends have values, the others are zeros whose pages are never made: a launch runs at its ends alone.
A child process does it and is ended if it goes over all of the rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from aten_overlay.device import frameworks, load
from aten_overlay.device.apart import run_apart
from aten_overlay.device.placements import Boundary, allocate
from aten_overlay.device.windows import WINDOW
from aten_overlay.metal.launch import WITHOUT_CELLS
from porter.verdict.suite import counters, results, samples
from porter.verdict.suite.context import Context
from porter.verdict.suite.leaves import change_tensors, compute

PADDING = 3  # rows between the ends, where the CPU tells what an operator does
_CODED = "PTR"


@dataclass(frozen=True)
class Found:
    """What is wrong with the rows at the ends, or why there are none; both "" if all is right."""

    wrong: str = ""
    refused: str = ""


def find_rows(op: OpInfo, sample: SampleInput) -> torch.Tensor | None:
    """The operator's result for the rows of a sample; None if more rows change it, or other rows."""
    try:
        want = compute(op, sample)
        padded = widen_rows(sample, lambda t: torch.cat([t, t.new_zeros((PADDING, *t.shape[1:])), t]))
        more = compute(op, padded)
    except Exception:  # the operator is somebody else's, and need not take other shapes
        return None
    count = len(sample.input) if sample.input.ndim else 0
    if not isinstance(want, torch.Tensor) or not isinstance(more, torch.Tensor) or not want.ndim or not count:
        return None
    alone = len(want) == count and len(more) == 2 * count + PADDING
    same = alone and all(torch.equal(_bits(part), _bits(want)) for part in (more[:count], more[-count:]))
    return want if same else None


def is_native(op: OpInfo, sample: SampleInput, context: Context) -> bool:
    """Whether kernels under test compute the sample, and nothing falls back to the CPU, which would visit all rows."""
    before = counters.read()
    try:
        op(*samples.mirror((sample.input, *sample.args), "mps"), **samples.mirror(sample.kwargs, "mps"))
    except Exception:  # what is wrong with a small sample, other tests tell
        return False
    seen = counters.since(before)
    return bool(context.count_ported(seen.kernels)) and not seen.fallbacks


def compare_ends(op: OpInfo, sample: SampleInput, want: torch.Tensor, boundary: Boundary) -> Found:
    """Runs the operator over so many rows that their elements pass a boundary."""
    told = run_apart(lambda: json.dumps(asdict(_compare_here(op, sample, want, boundary))))
    return Found(**json.loads(told)) if told else Found(refused="not run: code goes over all of a storage")


def _compare_here(op: OpInfo, sample: SampleInput, want: torch.Tensor, boundary: Boundary) -> Found:
    count = len(sample.input)
    row = max(sample.input[0].numel(), 1)
    many = boundary.elements(sample.input.element_size()) // row + 2 * count

    def widen(tensor: torch.Tensor) -> torch.Tensor:
        shape = (many, *tensor.shape[1:])
        wide = allocate(shape, tensor.dtype, (torch.empty(shape, device="meta").stride(), 0))
        wide[:count].copy_(tensor)
        wide[-count:].copy_(tensor)
        return wide

    placed = widen_rows(sample, widen)
    before = counters.read()
    try:
        with windows():
            got = op(placed.input, *placed.args, **samples.mirror(placed.kwargs, "mps"))
            ends = got[:count].cpu(), got[-count:].cpu()
    except Exception as error:
        told = results.describe_error(error).splitlines()[0]
        return Found(wrong=told) if _CODED in told else Found(refused=f"refused: {told}")
    for end, part in zip(("first", "last"), ends, strict=True):
        try:
            torch.testing.assert_close(part, want, equal_nan=True, rtol=1e-3, atol=1e-4)
        except AssertionError as error:
            ran = ", ".join(f"`{name}`" for name in counters.since(before).kernels)
            return Found(wrong=f"PTR270 kernel {ran}: the {end} rows of {many} are wrong: {error}")
    return Found()


def widen_rows(sample: SampleInput, widen: Callable[[torch.Tensor], torch.Tensor]) -> SampleInput:
    """The sample with tensors of as many rows as its input has widened; others as they are."""
    count = len(sample.input) if sample.input.ndim else -1

    def move(tensor: torch.Tensor) -> torch.Tensor:
        return widen(tensor.detach()) if tensor.ndim == sample.input.ndim and len(tensor) == count else tensor

    return change_tensors(sample, move)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().view(torch.uint8)


@contextmanager
def windows(threads: int = WINDOW) -> Iterator[None]:
    """Larger grids run at their ends alone."""
    device = load.started()
    assert device is not None
    library = frameworks.load(device).library
    library.porter_launch_window(threads)
    try:
        yield
    finally:
        library.porter_launch_window(0)


# Operators that reduce more rows than 32 bits count.
#
# The rows are zeros whose pages are never made, and those of a sample behind them. What is made of so many is known
# where
# the CPU makes the same of any few zeros, as a sum does, or whole numbers that grow with each, as an index does. Every
# thread of such a launch runs, in a child process; races and memory without a value, which take a record of each byte,
# are not looked for.


ZEROS = (3, 5, 9)  # rows before the sample's, where the CPU tells what an operator makes of them
SECONDS = 45.0  # of all runs of one test, which is ended after 60
_RIGHT: dict[str, Any] = {"equal_nan": True, "rtol": 1e-3, "atol": 1e-4}

Predicted = Callable[[int], torch.Tensor]


def reduces_rows(op: OpInfo, sample: SampleInput) -> bool:
    """Whether the operator makes one tensor of a sample whose shape does not tell how many rows there are."""
    found = _reduce_few(op, sample)
    return len({each.shape for each in found}) == 1


def predict(op: OpInfo, sample: SampleInput) -> Predicted | None:
    """What a reduction makes of a sample behind any number of zero rows; None if a few do not tell."""
    few, more, most = _reduce_few(op, sample)
    if all(few.dtype == each.dtype and torch.allclose(few, each, **_RIGHT) for each in (more, most)):
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
        given = [widen_rows(sample, lambda t: torch.cat([t.new_zeros((zeros, *t.shape[1:])), t])) for zeros in ZEROS]
        found = [compute(op, each) for each in given]
    except Exception:  # the operator is somebody else's, and need not take other shapes
        return []
    return found if all(isinstance(each, torch.Tensor) for each in found) else []


def compare_reduced(
    op: OpInfo, sample: SampleInput, predicted: Predicted, boundary: Boundary, seconds: float = SECONDS
) -> Found:
    """Runs the operator over so many rows that their elements pass a boundary."""
    told = run_apart(lambda: json.dumps(asdict(_compare_reduced(op, sample, predicted, boundary))), seconds)
    if told:
        return Found(**json.loads(told))
    return Found(refused="PTR356 not run to its end: there is no more time, or code goes over all of a storage")


def _compare_reduced(op: OpInfo, sample: SampleInput, predicted: Predicted, boundary: Boundary) -> Found:
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
