"""`TestConsistencyMPS.test_output_match_<op>_mps_<dtype>` and its relatives, over the device of this process.

Each OpInfo sample runs on mps and on the CPU, with the tolerances, lists and names of upstream's `test/test_mps.py`.
The module is imported once for each run: what it tests is that run's context.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from torch.testing._internal.common_device_type import OpDTypes
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, SampleInput

from porter.verdict.suite import beyond, bounds, compare, counters, results, samples
from porter.verdict.suite.consistency import Refused, instantiate, to_cpu
from porter.verdict.suite.context import get_context
from porter.verdict.suite.elementwise import Elementwise
from porter.verdict.suite.indices import keep_written_once
from porter.verdict.suite.opinfos import is_pointwise, operands, opinfos, parametrize_over
from porter.verdict.suite.variations.choice import choose_vectors

OPINFOS = opinfos(get_context())
FORWARD = OPINFOS.select("mps_ops_modifier")
PLANNED_COMPLEX = [torch.complex64] if OPINFOS.plans(torch.complex64) else []


class TestConsistency(Elementwise):
    """Upstream's two tests, and tests of the same samples with other layouts, dtypes and values."""

    opinfos = OPINFOS

    @parametrize_over(FORWARD, allowed_dtypes=OPINFOS.dtypes)
    def test_output_match(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            for sample in OPINFOS.samples(op, dtype):
                with self.noting():
                    try:
                        self.match(op, dtype, sample, device)
                    except Refused as refused:
                        self.check_refusal(op, sample, device, str(refused))

    @parametrize_over(
        OPINFOS.select("mps_ops_grad_modifier", OPINFOS.context.through_backward),
        dtypes=OpDTypes.supported_backward,
        allowed_dtypes=OPINFOS.grad_dtypes,
    )
    def test_output_grad_match(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        self.match_gradients(device, dtype, op)

    @parametrize_over(FORWARD, dtypes=OpDTypes.supported_backward, allowed_dtypes=PLANNED_COMPLEX)
    def test_complex_gradients(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        self.match_gradients(device, dtype, op)

    def match_gradients(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op, slopes=True):
            for sample in OPINFOS.samples(op, dtype, requires_grad=True):
                with self.asking():
                    self.match_slopes(op, dtype, sample, device)

    @parametrize_over(FORWARD, allowed_dtypes=OPINFOS.dtypes)
    def test_layouts(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            for sample in OPINFOS.pick_laid_out(op, dtype):
                varied = samples.vary_layouts(sample, is_pointwise(op))
                self.match_all(op, dtype, compare.keep_with_digits(op, keep_written_once(op, varied)), device)
            if not is_pointwise(op):
                for sample in choose_vectors(OPINFOS, op, dtype):
                    self.match_all(op, dtype, keep_written_once(op, samples.vary_vectors(sample)), device)

    @parametrize_over([o for o in FORWARD if isinstance(o, BinaryUfuncInfo)], allowed_dtypes=OPINFOS.dtypes)
    def test_mixed_dtypes(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        others = [
            d for d in op.supported_dtypes("mps") if d in OPINFOS.dtypes and d != dtype and OPINFOS.computes(d, dtype)
        ]
        with self.count_calls(dtype, op):
            for sample in OPINFOS.pick_samples(op, dtype)[:1]:
                mixed = samples.vary_operands(sample, sorted(others, key=str))
                self.match_all(op, dtype, mixed, device, self.same_or_as_near)

    @parametrize_over([o for o in FORWARD if is_pointwise(o)], allowed_dtypes=OPINFOS.dtypes)
    def test_edge_values(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            for sample in OPINFOS.pick_kinds(op, dtype):
                edge = samples.with_edge_values(sample, dtype, OPINFOS.context.literals, OPINFOS.context.most)
                for each in self.accepted(op, edge):
                    with self.noting():
                        self.edges(op, dtype, each, device)
                for told, other in samples.with_other_scalars(edge, OPINFOS.context.literals):
                    with self.noting(), suppress(Refused):
                        self.edges(op, dtype, other, device, f"{told}: ")

    @parametrize_over([o for o in FORWARD if is_pointwise(o)], allowed_dtypes=[*OPINFOS.grad_dtypes, torch.complex64])
    def test_accuracy(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            for sample in OPINFOS.pick_kinds(op, dtype):
                spread = samples.with_spread_values(
                    sample, dtype, getattr(op, "domain", None), OPINFOS.context.literals, OPINFOS.context.most
                )
                for dense in self.accepted(op, spread):
                    with self.noting():
                        self.precise(op, dtype, dense, device)

    def precise(self, op: OpInfo, dtype: torch.dtype, dense: SampleInput, device: str) -> None:
        """Measures a result against float64, if it is of the type of the test."""
        if OPINFOS.context.flushes:  # what becomes of denormals is no matter of accuracy then
            dense = dense.transform(compare.flush_denormals)
        got = to_cpu(self.mps(op, dense, device))
        if isinstance(got, torch.Tensor) and got.dtype == dtype:
            theirs, exact = self.cpu(op, dense), self.cpu(op, dense.transform(compare.widen))
            self.accurate(got, theirs, exact, operands(dense))

    @parametrize_over([o for o in FORWARD if is_pointwise(o)], dtypes=OpDTypes.none)
    def test_types_beyond_the_cpu(self, device: str, op: OpInfo) -> None:
        """Planned types that the CPU has no kernel for match the results of a wider type."""
        for dtype, wide in beyond.WIDER.items():
            if OPINFOS.plans(dtype) and dtype not in op.supported_dtypes("cpu") and wide in op.supported_dtypes("cpu"):
                with self.count_calls(dtype, op):
                    for sample in OPINFOS.pick_kinds(op, wide):
                        most = OPINFOS.context.most  # a kernel that counts up to a number of any size would not end
                        spread = samples.with_spread_values(sample, wide, getattr(op, "domain", None), most=most)
                        self.beyond_the_cpu(op, spread.transform(beyond.convert(wide, dtype)), device, (dtype, wide))
                    self.assertGreater(self.elements, 0, f"no sample of {dtype} reaches a kernel")

    def beyond_the_cpu(
        self, op: OpInfo, sample: SampleInput, device: str, types: tuple[torch.dtype, torch.dtype]
    ) -> None:
        before = counters.read_kernels()
        try:
            got = to_cpu(self.mps(op, sample, device))
        except NotImplementedError:  # an overload of the operator that is not ported, which the CPU has to compute
            return
        if got.numel() and not OPINFOS.context.count_ported(counters.read_kernels() - before):
            return  # one that is not ported, which the old code computes
        precise = sample.transform(compare.widen)
        theirs = self.cpu(op, sample.transform(beyond.convert(*types)))
        why = beyond.excess(got, self.cpu(op, precise), operands(precise), theirs)
        if why:
            self.fail(why)

    def accurate(self, got: Any, theirs: Any, exact: Any, inputs: list[torch.Tensor]) -> None:
        """Records the largest error of a real result, and fails where it is beyond its bound."""
        beyond = bounds.excess(got, theirs, exact, inputs, flushes=OPINFOS.context.flushes)
        if not got.is_complex():
            found, record = (
                compare.measure_accuracy(got, theirs, exact, inputs),
                results.get_record(self._testMethodName),
            )
            if record.max_ulp is None or found.max_ulp > record.max_ulp:
                record.max_ulp, record.cpu_ulp, record.worst = found.max_ulp, found.cpu_ulp, found.worst
            beyond = found.beyond or beyond
        if beyond:
            self.fail(beyond)


instantiate(TestConsistency, globals())
