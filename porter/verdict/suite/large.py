"""`TestLargeMPS.test_large_<op>_mps_<dtype>`: small tensors in storages whose offsets pass 32 bits.

Not among the tests of every verdict: `porter verify OP --large` runs this module, with bounds checked. Operands, and
then the result of `out=`, are placed behind and across 2^32 bytes, 2^31 and 2^32 elements. An operator that computes
each row of its first dimension alone also runs over more rows than that; of these launches only the ends run. One that
reduces that dimension runs whole.
"""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

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
from porter.verdict.suite import execution, results, rows, samples
from porter.verdict.suite.consistency import Consistency, Refused, count_computed_elements, instantiate, summary
from porter.verdict.suite.context import get_context
from porter.verdict.suite.opinfos import OpInfos, opinfos, parametrize_over

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
                want = rows.find_rows(op, sample)
                if want is None or not rows.is_native(op, sample, OPINFOS.context):
                    continue
                for boundary in BOUNDARIES[1:]:
                    label = f"more than {boundary.name}"
                    found = rows.compare_ends(op, sample, want, boundary)
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
                if not rows.reduces_rows(op, sample) or not rows.is_native(op, sample, OPINFOS.context):
                    continue
                predicted = rows.predict(op, sample)
                if predicted is None:
                    results.get_record(self._testMethodName).notes.append(
                        f"PTR356 a few rows do not tell what {op.name} makes of more than 2^31: none were reduced"
                    )
                    continue
                until = time.monotonic() + rows.SECONDS
                for boundary in BOUNDARIES:
                    label = f"reducing more than {boundary.name}"
                    found = rows.compare_reduced(op, sample, predicted, boundary, until - time.monotonic())
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
