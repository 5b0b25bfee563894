"""`TestLargeMPS.test_large_<op>_mps_<dtype>`: small tensors in storages whose offsets pass 32 bits.

Not among the tests of every verdict: `porter verify OP --large` runs this module, with bounds checked. Operands, and
then the result of `out=`, are placed behind and across 2^32 bytes, 2^31 and 2^32 elements. An operator that computes
each row of its first dimension alone also runs over more rows than that; of these launches only the ends run. One that
reduces that dimension runs whole.
"""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from aten_overlay.device import frameworks, load
from aten_overlay.device.apart import run_apart
from aten_overlay.device.large import sparse_memory
from aten_overlay.device.placements import (
    BOUNDARIES,
    PLACEMENTS,
    Boundary,
    Placement,
    allocate,
    lay_out,
    place,
)
from aten_overlay.device.windows import WINDOW
from aten_overlay.metal.launch import WITHOUT_CELLS
from porter.verdict.suite import counters, execution, results, samples
from porter.verdict.suite.consistency import Consistency, Refused, count_computed_elements, instantiate, summary
from porter.verdict.suite.context import Context, get_context
from porter.verdict.suite.leaves import change_tensors, compute
from porter.verdict.suite.opinfos import OpInfos, opinfos, parametrize_over

PADDING = 3  # rows between the ends, where the CPU tells what an operator does


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
        given = [_put_behind_zeros(sample, zeros) for zeros in ZEROS]
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


def _put_behind_zeros(sample: SampleInput, zeros: int) -> SampleInput:
    return widen_rows(sample, lambda t: torch.cat([t.new_zeros((zeros, *t.shape[1:])), t]))


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


OPINFOS: OpInfos = opinfos(get_context())
DTYPES = [torch.float32, torch.int32]
SAMPLES = 2
_CODED = "PTR"

Call = Callable[..., Any]


class TestLarge(Consistency):
    """A kernel that computes offsets in 32 bits touches bytes where no element lies, or gives wrong values."""

    opinfos = OPINFOS
    compared = 0

    @parametrize_over(OPINFOS.select("mps_ops_modifier"), allowed_dtypes=DTYPES)
    def test_large(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with sparse_memory(), self.count_calls(dtype, op):
            for sample in OPINFOS.pick_samples(op, dtype)[:SAMPLES]:
                with suppress(Refused):
                    want = self.cpu(op, samples.copy_sample(sample))
                    for label, placed in vary_placements(sample):
                        with self.noting():
                            self.run_placed(op, dtype, sample, placed, want, label)
                    for label, out in vary_results(op, want):
                        with self.noting():
                            self.run_placed(with_out(op, out), dtype, sample, sample, want, label, op)
            if not self.compared and not results.get_record(self._testMethodName).findings:
                self.skipTest("nothing was computed on large tensors")

    @parametrize_over(OPINFOS.select("mps_ops_modifier"), allowed_dtypes=DTYPES)
    def test_large_dense(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with sparse_memory():
            for sample in OPINFOS.pick_samples(op, dtype)[:SAMPLES]:
                want = find_rows(op, sample)
                if want is None or not is_native(op, sample, OPINFOS.context):
                    continue
                for boundary in BOUNDARIES[1:]:
                    label = f"more than {boundary.name}"
                    found = compare_ends(op, sample, want, boundary)
                    if found.wrong:
                        self.fail(f"{label}: {found.wrong}\n{summary(sample)}")
                    if found.refused:
                        results.get_record(self._testMethodName).notes.append(f"{label}: {found.refused}")
                return
            self.skipTest("no sample whose rows are computed apart, by kernels alone")

    @parametrize_over(OPINFOS.select("mps_ops_modifier"), allowed_dtypes=DTYPES)
    def test_large_reduced(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with sparse_memory():
            for sample in OPINFOS.samples(op, dtype):
                if not reduces_rows(op, sample) or not is_native(op, sample, OPINFOS.context):
                    continue
                predicted = predict(op, sample)
                if predicted is None:
                    results.get_record(self._testMethodName).notes.append(
                        f"PTR356 a few rows do not tell what {op.name} makes of more than 2^31: none were reduced"
                    )
                    continue
                until = time.monotonic() + SECONDS
                for boundary in BOUNDARIES:
                    label = f"reducing more than {boundary.name}"
                    found = compare_reduced(op, sample, predicted, boundary, until - time.monotonic())
                    if found.wrong:
                        self.fail(f"{label}: {found.wrong}\n{summary(sample)}")
                    results.get_record(self._testMethodName).notes.append(f"{label}: {found.refused or 'right'}")
                    if found.refused:
                        break
                return
            self.skipTest("no sample whose rows kernels alone reduce")

    def run_placed(
        self, call: Call, dtype: torch.dtype, sample: SampleInput, placed: SampleInput, want: Any, label: str,
        op: OpInfo | None = None,
    ) -> None:  # fmt: skip
        """Runs a call on placed operands. An error of host code is a refusal: noted, no failure."""
        args = samples.mirror((placed.input, *placed.args), "mps") if placed is sample else (placed.input, *placed.args)
        try:
            with execution.device_context():
                got = call(*args, **samples.mirror(placed.kwargs, "mps"))
                self.compared += 1
                self.elements += count_computed_elements(got, args)
                self.same(op or call, dtype, sample, got, want, f"{label}: ")
        except (RuntimeError, NotImplementedError) as error:
            told = results.describe_error(error)
            if _CODED in told:
                raise AssertionError(f"{label}: {told}") from error
            results.get_record(self._testMethodName).notes.append(f"{label}: refused: {told.splitlines()[0]}")


def vary_placements(sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with every tensor placed in each way, with names for messages."""
    for placement, boundary in product(PLACEMENTS, BOUNDARIES):
        moved = _place_operands(sample, placement, boundary)
        if moved is not None:
            yield f"operands, {placement.name} past {boundary.name}", moved


def _place_operands(sample: SampleInput, placement: Placement, boundary: Boundary) -> SampleInput | None:
    """None if no tensor can be placed."""
    found = 0

    def move(value: Any) -> Any:
        nonlocal found
        moved = place(value, placement, boundary) if isinstance(value, torch.Tensor) and value.ndim else None
        found += moved is not None
        return samples.mirror(value, "mps") if moved is None else moved

    moved = sample.transform(move)
    return moved if found else None


def vary_results(op: OpInfo, want: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """A tensor for `out=` placed in each way; none if the operator takes none or has several results."""
    if not op.supports_out or not isinstance(want, torch.Tensor):
        return
    for placement, boundary in product(PLACEMENTS, BOUNDARIES):
        layout = lay_out(want.shape, want.element_size(), placement, boundary)
        if layout is not None:
            yield f"out=, {placement.name} past {boundary.name}", allocate(want.shape, want.dtype, layout)


def with_out(op: OpInfo, out: torch.Tensor) -> Call:
    """The operator writing to `out`."""
    return lambda *args, **kwargs: op(*args, **kwargs, out=out)


instantiate(TestLarge, globals())
