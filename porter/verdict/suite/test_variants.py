"""`TestVariantsMPS.test_out_<op>_mps_<dtype>` and `test_inplace`: out= and in-place variants."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.result import ForkFinding
from porter.verdict.suite import compare, results
from porter.verdict.suite.consistency import Consistency, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.leaves import change_tensors, compute, compute_unless_refused
from porter.verdict.suite.opinfos import is_pointwise, operands, opinfos, parametrize_over
from porter.verdict.suite.refusals import OVERLAP_ERROR, REFUSALS, find_kind

OPINFOS = opinfos(get_context())
GUARD = 64
KNOWS_MEMORY = OPINFOS.select("mps_ops_modifier") if OPINFOS.context.runs_host_code else []

Overlap = Callable[[OpInfo, torch.Tensor, torch.Tensor, Sequence[Any], Mapping[str, Any]], Any]
# Calls of an operator on the memory that it writes to, and on that which it reads: of the same or of equal elements.
OVERLAPS: Mapping[str, Overlap] = {
    "in place on an expanded tensor": lambda op, w, r, a, k: op.get_inplace()(w[:1].expand(len(w) - 1), *a, **k),
    "in place with the elements after its own": lambda op, w, r, a, k: op.get_inplace()(w[:-1], *_with(r[1:], a), **k),
    "in place with itself": lambda op, w, r, a, k: op.get_inplace()(w[:-1], *_with(r[:-1], a), **k),
    "out= the input": lambda op, w, r, a, k: _write_first(op, r[:-1], a, k, w[:-1]),
    "out= the elements after the input": lambda op, w, r, a, k: _write_first(op, r[:-1], a, k, w[1:]),
}


def leaves_out_alone(op: OpInfo, sample: SampleInput, want: torch.Tensor) -> bool:
    """Whether the CPU writes nothing to `out=`: `ihfftn` along one dimension has its result and `out` exchanged."""
    kept = torch.full_like(want, 7)
    is_computed = compute_unless_refused(partial(op, out=kept), sample) is not None
    return is_computed and bool(want.numel() and (kept == 7).all() and not (want == 7).all())


class TestVariants(Consistency):
    """`out=` and in-place variants must write to their target and nothing else."""

    opinfos = OPINFOS

    @parametrize_over([o for o in OPINFOS.select("mps_ops_modifier") if o.supports_out], allowed_dtypes=OPINFOS.dtypes)
    def test_out(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            for sample in OPINFOS.pick_samples(op, dtype):
                want = compute(op, sample)
                if isinstance(want, torch.Tensor) and leaves_out_alone(op, sample, want):
                    what = f"{op.name} does not write to out=, also on the CPU"
                    results.get_record(self._testMethodName).fork_findings.append(ForkFinding(what))
                elif isinstance(want, torch.Tensor):
                    self.guarded_out(op, dtype, sample, want, device)
                    with self.asking():
                        self.resized_out(op, sample, want, device)
                    self.cast_out(op, dtype, sample, want, device)

    def guarded_out(self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, want: torch.Tensor, device: str) -> None:
        """`out=` a dense view, then a strided one, in the middle of a larger buffer whose rest must not change."""
        for step in (1, 2):
            with self.asking():
                self.guarded_out_of(step, op, dtype, sample, want, device)

    def guarded_out_of(
        self, step: int, op: OpInfo, dtype: torch.dtype, sample: SampleInput, want: torch.Tensor, device: str
    ) -> None:
        count = want.numel()
        buffer = torch.full((2 * GUARD + step * count,), 1, dtype=want.dtype).to(device)
        room = torch.zeros_like(buffer, dtype=torch.bool, device="cpu")
        room[GUARD : GUARD + step * count : step] = True
        out = buffer[GUARD : GUARD + step * count : step].view(want.shape) if step == 1 else None
        if out is None:
            out = buffer[GUARD : GUARD + step * count].view((*want.shape, step))[..., 0]
        self.mps(lambda *a, **k: op(*a, **k, out=out), sample, device)
        label = f"out= a {'dense' if step == 1 else 'strided'} view"
        self.same(op, dtype, sample, out, want, f"{label}: ")
        rest = buffer.cpu()[~room]
        if not bool((rest == torch.ones_like(rest)).all()):
            self.fail(f"{label}: wrote outside the view")

    def resized_out(self, op: OpInfo, sample: SampleInput, want: torch.Tensor, device: str) -> None:
        out = torch.empty(0, dtype=want.dtype, device=device)
        got = self.mps(lambda *a, **k: op(*a, **k, out=out), sample, device)
        self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype), "out= an empty tensor")

    def cast_out(self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, want: torch.Tensor, device: str) -> None:
        """`out=` of other dtypes: gives the same values, or an error, as on the CPU."""
        for other in (torch.float32, torch.float16, torch.int64, torch.bool):
            theirs = torch.empty(want.shape, dtype=other)
            ours = torch.empty(want.shape, dtype=other, device=device)
            try:
                op(sample.input, *sample.args, **sample.kwargs, out=theirs)
            except REFUSALS as refused:
                with self.asking(), self.assertRaises(find_kind(refused), msg=f"out= of {other}"):
                    self.mps(lambda *a, o=ours, **k: op(*a, **k, out=o), sample, device)
            else:
                call, label = partial(_write, op, ours), f"out= of {other}"
                with self.asking():
                    if self.computed(call, sample, device, label, may_lack=other != want.dtype):
                        self.same_cast(op, dtype, sample, ours, theirs)

    def computed(
        self, op: Callable[..., Any], sample: SampleInput, device: str, label: str, may_lack: bool = False
    ) -> bool:
        """Asserts that the device computes a sample, as the CPU does.

        False if it `may_lack` the kernel, and none of the fork's natives of the same kind has one: a finding.
        """
        siblings = OPINFOS.context.siblings
        try:
            self.mps(op, sample, device)
        except RuntimeError as error:
            gap = siblings.find_gap(str(error)) if may_lack and siblings else None
            if gap is None:
                self.fail(f"{label}: {error}")
            results.get_record(self._testMethodName).fork_findings.append(gap)
            return False
        return True

    def same_cast(self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, ours: Any, theirs: Any) -> None:
        """As `same`, for a result in another dtype; also accepts a 16-bit result that matches rounded float64."""
        label, close = f"out= of {ours.dtype}", {"atol": 1e-2, "rtol": 1e-2, "exact_device": False}
        try:
            self.assertEqual(ours, theirs, **close, msg=label)
        except AssertionError:
            if dtype not in compare.HALVES:
                raise
            exact = self.cpu(op, sample.transform(compare.widen))
            self.assertEqual(ours, exact.to(dtype).to(ours.dtype), **close, msg=label)

    @parametrize_over([o for o in OPINFOS.select("mps_ops_modifier") if o.get_inplace()], allowed_dtypes=OPINFOS.dtypes)
    def test_inplace(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            for sample in OPINFOS.pick_samples(op, dtype):
                for step in (1, 2):
                    with self.asking():
                        self.in_place(op, dtype, sample, step, device)

    def in_place(self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, step: int, device: str) -> None:
        """In place on every `step`-th element of a buffer; the elements between must not change."""
        target = sample.input.detach()
        buffers = [torch.ones((*target.shape, step), dtype=target.dtype, device=d) for d in ("cpu", device)]
        views = [b[..., 0] for b in buffers]
        for view in views:
            view.copy_(target)
        try:
            op.get_inplace()(views[0], *sample.args, **sample.kwargs)
        except RuntimeError:
            with self.assertRaises(RuntimeError):
                self.on_device(op.get_inplace(), views[1], sample, device)
            return
        self.on_device(op.get_inplace(), views[1], sample, device)
        if views[0].shape == target.shape:  # what changes the shape in place changes no element
            self.elements += int((views[0] != target).sum())  # unchanged elements need no kernel
        label = "in place" if step == 1 else "in place on a strided view"
        self.same(op, dtype, sample, views[1], views[0], f"{label}: ")
        outside = f"{label}: wrote outside the view"
        self.assertEqual(buffers[1][..., 1:], buffers[0][..., 1:], outside, exact_device=False)

    @parametrize_over([o for o in KNOWS_MEMORY if is_pointwise(o)], allowed_dtypes=[torch.float32, torch.int32])
    def test_overlap(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            alike = (s for s in OPINFOS.pick_samples(op, dtype) if len({t.shape for t in operands(s)}) == 1)
            for sample in list(alike)[:1]:
                flat = change_tensors(sample, lambda tensor: tensor.detach().flatten())
                for label, call in OVERLAPS.items():
                    if (op.supports_out or "out=" not in label) and (op.get_inplace() or "in place" not in label):
                        self.overlapping(op, dtype, flat, label, call, device)

    def overlapping(
        self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, label: str, call: Overlap, device: str
    ) -> None:
        """Operands and results in one memory: values as in memory apart, or an error where the CPU sees an overlap.

        A CPU kernel that sees none may read what it has written, by the width of its vectors: values of no operator.
        """
        start = torch.cat([sample.input, sample.input[:1]])
        ours, theirs, apart = start.to(device), start.clone(), start.clone()
        try:
            call(op, theirs, theirs, sample.args, sample.kwargs)
        except RuntimeError as error:
            if re.search(OVERLAP_ERROR, str(error)):
                with self.assertRaisesRegex(RuntimeError, OVERLAP_ERROR, msg=label):
                    self.on_device(lambda m, *a, **k: call(op, m, m, a, k), ours, sample, device)
            return
        want = call(op, apart, start, sample.args, sample.kwargs)
        got = self.on_device(lambda m, *a, **k: call(op, m, m, a, k), ours, sample, device)
        self.elements += int((apart != start).sum())
        self.same(op, dtype, sample, ours, apart, f"{label}: ")
        if isinstance(want, tuple):
            self.same(op, dtype, sample, tuple(got), tuple(want), f"{label}, every result: ")


def _write(op: OpInfo, out: torch.Tensor, *arguments: Any, **named: Any) -> Any:
    return op(*arguments, **named, out=out)


def _write_first(
    op: OpInfo, source: torch.Tensor, arguments: Sequence[Any], named: Mapping[str, Any], target: torch.Tensor
) -> Any:
    """Writes the result to a tensor; of several the first one, the others to tensors of their own."""
    try:
        return op(source, *arguments, **named, out=target)
    except TypeError:
        others = op(source, *arguments, **named)[1:]
        return op(source, *arguments, **named, out=(target, *map(torch.empty_like, others)))


def _with(tensor: torch.Tensor, arguments: Sequence[Any]) -> list[Any]:
    """The arguments with this tensor in place of the first one."""
    places = [i for i, each in enumerate(arguments) if isinstance(each, torch.Tensor)][:1]
    return [tensor if i in places else each for i, each in enumerate(arguments)]


instantiate(TestVariants, globals())
