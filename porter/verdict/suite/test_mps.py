"""`TestConsistencyMPS.test_output_match_<op>_mps_<dtype>` and its relatives, over the device of this process.

Each OpInfo sample runs on mps and on the CPU, with the tolerances, lists and names of upstream's `test/test_mps.py`. A
test whose operator never reached a kernel under test fails: a CPU fallback is always right and proves nothing.
"""

# mypy: disable-error-code="no-untyped-call, misc, no-any-return, untyped-decorator"
# mypy: disable-error-code="arg-type, truthy-function, assignment"

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.testing._internal.common_device_type import (
    DeviceTypeTestBase,
    OpDTypes,
    device_type_test_bases,
    instantiate_device_type_tests,
    ops,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase, run_tests
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, SampleInput, UnaryUfuncInfo
from torch.utils import _pytree as pytree

from porter.core import dtypes
from porter.verdict.suite import compare, counters, execution, lists, results, samples, tolerances
from porter.verdict.suite.context import current

CONTEXT = current()
# Upstream leaves out complex32, but here may be a port that has it.
MPS_DTYPES = [
    getattr(torch, dtype.torch) for dtype in dtypes.ALL if dtype in dtypes.TESTED or dtype.torch in CONTEXT.dtypes
]
GRAD_DTYPES = [getattr(torch, name) for name in lists.grad_dtypes(CONTEXT.precision if CONTEXT.as_is else "")]
LAYOUT_SAMPLES = 3
_OTHER_DEVICE = "Expected all tensors to be on the same device"
GUARD = 64

_modifiers = lists.modifiers(CONTEXT.lists_file, CONTEXT.lists)
_made: dict[tuple[str, torch.dtype, bool], list[SampleInput]] = {}
_precision = lists.low_precision(CONTEXT.precision)
_tolerances = tolerances.tolerances(CONTEXT.precision)


def chosen(modifier: str, besides: Sequence[str] = ()) -> list[OpInfo]:
    """The OpInfos of this run, and those of these full names, as one of the fork's modifiers leaves them."""
    names = {*CONTEXT.through, *besides}
    return list(_modifiers[modifier]([comparable(op) for op in op_db if CONTEXT.names(op) or op.full_name in names]))


def comparable(op: OpInfo) -> OpInfo:
    """A copy whose mps dtypes are those that the CPU has too: there is nothing to compare the others with."""
    op = copy.deepcopy(op)
    op.dtypesIf["mps"] = set(op.supported_dtypes("mps")) & set(op.supported_dtypes("cpu"))
    op.backward_dtypesIfMPS = set(op.backward_dtypesIfMPS) & set(op.supported_dtypes("cpu"))
    return op


def is_pointwise(op: OpInfo) -> bool:
    """Whether every row of the ATen operator is tagged pointwise."""
    if isinstance(op, (UnaryUfuncInfo, BinaryUfuncInfo)):
        return True
    packet = getattr(torch.ops.aten, op.aten_name, None)
    rows = [getattr(packet, name) for name in packet.overloads()] if packet else []
    return bool(rows) and all(torch.Tag.pointwise in row.tags for row in rows)


class over(ops):
    """`ops`, for a run whose operators may all be of another kind: then there is no test."""

    def _parametrize_test(self, test: Any, generic_cls: Any, device_cls: Any) -> Iterator[Any]:
        return super()._parametrize_test(test, generic_cls, device_cls) if self.op_list else iter(())


def _computed(one: torch.dtype, other: torch.dtype) -> bool:
    """Whether a kernel computes in the type that these two are promoted to."""
    return not CONTEXT.dtypes or _name(torch.promote_types(one, other)) in CONTEXT.dtypes


def _exact_slopes(op: OpInfo, sample: SampleInput, seeds: list[torch.Tensor]) -> Any:
    """The gradients of a sample's inputs on the CPU in float64."""
    outputs, inputs = _outputs(op, sample.transform(_to_double_leaf))
    return torch.autograd.grad(outputs, inputs, [seed.double() for seed in seeds], allow_unused=True)


class Refused(Exception):
    """The CPU refuses this sample, so there is nothing to compare."""


class Consistency(TestCase):
    """How a sample is run on both devices and compared, and how a test's kernel calls are counted."""

    @contextmanager
    def counted(self, dtype: torch.dtype) -> Iterator[None]:
        """Counts the test's kernel calls, and fails it if none was of a kernel under test."""
        before = counters.read()
        record = results.of(self._testMethodName)
        self.elements = 0
        try:
            yield
        finally:
            seen = counters.since(before)
            record.calls, record.kernels, record.fallbacks = CONTEXT.ported(seen.kernels), seen.kernels, seen.fallbacks
        if self.elements and not record.calls and CONTEXT.demands(_name(dtype)):
            self.fail(unreached(record))
        if CONTEXT.as_is and CONTEXT.fell_back(record.fallbacks):
            self.fail(f"fell back to the CPU: {', '.join(record.fallbacks)}")

    def cpu(self, op: Callable[..., Any], sample: SampleInput) -> Any:
        try:
            return op(sample.input, *sample.args, **sample.kwargs)
        except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError) as error:
            raise Refused(str(error)) from error

    def mps(self, op: Callable[..., Any], sample: SampleInput, device: str) -> Any:
        args = samples.mirror((sample.input, *sample.args), device)
        with execution.calling():
            result = op(*args, **samples.mirror(sample.kwargs, device))
        self.elements += _computed_elements(result, args)
        return result

    def match(self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, device: str, told: str = "") -> None:
        """Runs a sample on both devices; the results have to be equal within upstream's tolerances."""
        want = self.cpu(op, sample)
        try:
            got = self.mps(op, sample, device)
        except Exception as error:
            # The operator's own iterator decides whether a CPU scalar may stand beside a tensor of the device.
            if "CPU scalar" in told and _OTHER_DEVICE in str(error):
                raise Refused(str(error)) from error
            raise AssertionError(f"{told}{error}\n{_summary(sample)}") from error
        self.same(op, dtype, sample, got, want, told)

    def same(self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, got: Any, want: Any, told: str = "") -> None:
        """Upstream's comparison. Of 16 bits, a result that is nearer to float64 than the CPU's own is right too."""
        tolerance = _tolerances(op, dtype, sample.kwargs)
        try:
            self.assertEqual(got, want, **tolerance, exact_device=False)
        except AssertionError as error:
            plain = isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor)
            if plain and want.dtype in compare.HALVES:
                exact = self.cpu(op, sample.transform(compare.widened))
                if not compare.disagreement(_to_cpu(got), want.detach(), exact.detach(), []):
                    return
            raise AssertionError(f"{told}{error}\n{_summary(sample)}") from None

    def on_device(self, op: Callable[..., Any], target: torch.Tensor, sample: SampleInput, device: str) -> Any:
        with execution.calling():
            return op(target, *samples.mirror(sample.args, device), **samples.mirror(sample.kwargs, device))

    def refused(self, op: OpInfo, sample: SampleInput, device: str, why: str) -> None:
        """What the CPU refuses has to be refused on the device too."""
        try:
            self.mps(op, sample, device)
        except Exception:
            return
        self.fail(f"accepted on mps, but the CPU refuses: {why}\n{_summary(sample)}")

    def match_all(self, op: OpInfo, dtype: torch.dtype, found: Iterable[tuple[str, SampleInput]], device: str) -> None:
        for told, sample in found:
            try:
                self.match(op, dtype, sample, device, f"{told}: ")
            except Refused:
                continue


class TestConsistency(Consistency):
    """Upstream's two tests, and those that put the same samples in other clothes."""

    @over(chosen("mps_ops_modifier"), allowed_dtypes=MPS_DTYPES)
    def test_output_match(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.counted(dtype):
            for sample in _samples(op, dtype):
                try:
                    self.match(op, dtype, sample, device)
                except Refused as refused:
                    self.refused(op, sample, device, str(refused))

    @over(
        chosen("mps_ops_grad_modifier", CONTEXT.through_backward),
        dtypes=OpDTypes.supported_backward,
        allowed_dtypes=GRAD_DTYPES,
    )
    def test_output_grad_match(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.counted(dtype):
            for sample in _samples(op, dtype, requires_grad=True):
                want, wanted_from = _outputs(op, sample)
                mirrored = _mirrored(sample, device)
                with execution.calling():
                    got, got_from = _outputs(op, mirrored)
                self.elements += _computed_elements(got, got_from)
                tolerance = _tolerances(op, dtype, sample.kwargs)
                for mine, theirs in zip(got, want, strict=True):
                    self.same(op, dtype, sample, mine, theirs)
                if want:
                    seeds = [torch.rand_like(t, dtype=torch.float64).to(t.dtype) for t in want]
                    slopes = torch.autograd.grad(want, wanted_from, seeds, allow_unused=True)
                    with execution.calling():
                        ours = torch.autograd.grad(got, got_from, [s.to(device) for s in seeds], allow_unused=True)
                    self.same_slopes(ours, slopes, lambda s=sample, d=seeds: _exact_slopes(op, s, d), **tolerance)

    def same_slopes(self, ours: Any, theirs: Any, exact: Callable[[], Any], **tolerance: Any) -> None:
        """Gradients agree with the CPU's, or else with those in float64: the CPU's own rounding is no fault here."""
        try:
            self.assertEqual(ours, theirs, **tolerance, exact_device=False)
        except AssertionError:
            precise = [e if e is None else e.to(t.dtype) for e, t in zip(exact(), theirs, strict=True)]
            self.assertEqual(ours, precise, **tolerance, exact_device=False)

    @over(chosen("mps_ops_modifier"), allowed_dtypes=MPS_DTYPES)
    def test_layouts(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.counted(dtype):
            for sample in _some(op, dtype):
                self.match_all(op, dtype, samples.laid_out(sample, is_pointwise(op)), device)

    @over([o for o in chosen("mps_ops_modifier") if isinstance(o, BinaryUfuncInfo)], allowed_dtypes=MPS_DTYPES)
    def test_mixed_dtypes(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        others = [d for d in op.supported_dtypes("mps") if d in MPS_DTYPES and d != dtype and _computed(d, dtype)]
        with self.counted(dtype):
            for sample in _some(op, dtype)[:1]:
                self.match_all(op, dtype, samples.mixed(sample, sorted(others, key=str)), device)

    @over([o for o in chosen("mps_ops_modifier") if is_pointwise(o)], allowed_dtypes=MPS_DTYPES)
    def test_edge_values(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.counted(dtype):
            for sample in _some(op, dtype)[:1]:
                self.edges(op, dtype, samples.at_the_edges(sample, dtype), device)

    def edges(self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, device: str) -> None:
        try:
            want = self.cpu(op, sample)
        except Refused:
            sample = samples.without_zeros(sample)
            want = self.cpu(op, sample)
        got = pytree.tree_leaves(pytree.tree_map(_to_cpu, self.mps(op, sample, device)))
        precise = flushed = [None] * len(got)
        if dtype.is_floating_point or dtype.is_complex:
            precise = pytree.tree_leaves(self.cpu(op, sample.transform(compare.widened)))
            if CONTEXT.flushes:
                flushed = pytree.tree_leaves(self.cpu(op, sample.transform(compare.flushed)))
        for mine, theirs, exact, zeroed in zip(got, pytree.tree_leaves(want), precise, flushed, strict=True):
            tolerance = compare.tolerances(_precision, op.name, dtype)
            told = compare.disagreement(mine, theirs, exact, _operands(sample), zeroed, **tolerance)
            if told:
                self.fail(told)

    @over([o for o in chosen("mps_ops_modifier") if is_pointwise(o)], allowed_dtypes=GRAD_DTYPES)
    def test_accuracy(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.counted(dtype):
            for sample in _some(op, dtype)[:1]:
                dense = samples.spread(sample, dtype, getattr(op, "domain", None))
                got = _to_cpu(self.mps(op, dense, device))
                if not isinstance(got, torch.Tensor) or got.dtype != dtype:
                    return
                theirs, exact = self.cpu(op, dense), self.cpu(op, dense.transform(compare.widened))
                found = compare.accuracy(got, theirs, exact, _operands(dense))
                record = results.of(self._testMethodName)
                record.max_ulp, record.cpu_ulp, record.worst = found.max_ulp, found.cpu_ulp, found.worst
                if found.beyond:
                    self.fail(found.beyond)


class TestVariants(Consistency):
    """`out=` and in-place, which must write what they are told to write and nothing beside it."""

    @over([o for o in chosen("mps_ops_modifier") if o.supports_out], allowed_dtypes=MPS_DTYPES)
    def test_out(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.counted(dtype):
            for sample in _some(op, dtype):
                want = op(sample.input, *sample.args, **sample.kwargs)
                if isinstance(want, torch.Tensor):
                    self.guarded_out(op, dtype, sample, want, device)
                    self.resized_out(op, sample, want, device)
                    self.cast_out(op, dtype, sample, want, device)

    def guarded_out(self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, want: torch.Tensor, device: str) -> None:
        """`out=` a dense view, then a strided one, in the middle of a larger buffer whose rest must not change."""
        for step in (1, 2):
            count = want.numel()
            buffer = torch.full((2 * GUARD + step * count,), 1, dtype=want.dtype).to(device)
            room = torch.zeros_like(buffer, dtype=torch.bool, device="cpu")
            room[GUARD : GUARD + step * count : step] = True
            out = buffer[GUARD : GUARD + step * count : step].view(want.shape) if step == 1 else None
            if out is None:
                out = buffer[GUARD : GUARD + step * count].view((*want.shape, step))[..., 0]
            self.mps(lambda *a, o=out, **k: op(*a, **k, out=o), sample, device)
            told = f"out= a {'dense' if step == 1 else 'strided'} view"
            self.same(op, dtype, sample, out, want, f"{told}: ")
            rest = buffer.cpu()[~room]
            if not bool((rest == torch.ones_like(rest)).all()):
                self.fail(f"{told}: wrote outside of it")

    def resized_out(self, op: OpInfo, sample: SampleInput, want: torch.Tensor, device: str) -> None:
        out = torch.empty(0, dtype=want.dtype, device=device)
        got = self.mps(lambda *a, **k: op(*a, **k, out=out), sample, device)
        self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype), "out= an empty tensor")

    def cast_out(self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, want: torch.Tensor, device: str) -> None:
        """`out=` of other types: what the CPU accepts is accepted with the same values, what it refuses is refused."""
        for other in (torch.float32, torch.float16, torch.int64, torch.bool):
            theirs = torch.empty(want.shape, dtype=other)
            ours = torch.empty(want.shape, dtype=other, device=device)
            try:
                op(sample.input, *sample.args, **sample.kwargs, out=theirs)
            except RuntimeError:
                with self.assertRaises(RuntimeError, msg=f"out= of {other}"):
                    self.mps(lambda *a, o=ours, **k: op(*a, **k, out=o), sample, device)
            else:
                self.mps(lambda *a, o=ours, **k: op(*a, **k, out=o), sample, device)
                self.same_cast(op, dtype, sample, ours, theirs)

    def same_cast(self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, ours: Any, theirs: Any) -> None:
        """As `same`, for a result in another type: of 16 bits, what float64 rounds to is right too."""
        told, close = f"out= of {ours.dtype}", {"atol": 1e-2, "rtol": 1e-2, "exact_device": False}
        try:
            self.assertEqual(ours, theirs, **close, msg=told)
        except AssertionError:
            if dtype not in compare.HALVES:
                raise
            exact = self.cpu(op, sample.transform(compare.widened))
            self.assertEqual(ours, exact.to(dtype).to(ours.dtype), **close, msg=told)

    @over([o for o in chosen("mps_ops_modifier") if o.get_inplace()], allowed_dtypes=MPS_DTYPES)
    def test_inplace(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.counted(dtype):
            for sample in _some(op, dtype):
                for step in (1, 2):
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
        self.elements += int((views[0] != target).sum())  # what stays as it was needs no kernel
        told = "in place" if step == 1 else "in place on a strided view"
        self.same(op, dtype, sample, views[1], views[0], f"{told}: ")
        self.assertEqual(buffers[1][..., 1:], buffers[0][..., 1:], f"{told}: wrote beside it", exact_device=False)


class TestErrorInputs(TestCase):
    """The wrong calls that OpInfo lists are refused with the words it lists."""

    @over([o for o in chosen("mps_ops_error_inputs_modifier") if o.error_inputs_func], dtypes=OpDTypes.none)
    def test_error_inputs(self, device: str, op: OpInfo) -> None:
        for error in op.error_inputs(device, set_seed=False):
            sample = error.sample_input
            with self.assertRaisesRegex(error.error_type, error.error_regex), execution.calling():
                op(sample.input, *sample.args, **sample.kwargs)


def unreached(record: results.Record) -> str:
    """Why a test that passed proves nothing: what ran instead of the kernels under test."""
    names = ", ".join(CONTEXT.kernels)
    ran = [f"kernel {n}" for n in record.kernels] + [f"CPU fallback of {n}" for n in record.fallbacks]
    instead = f"; it ran {', '.join(ran[:6])}" if ran else "; no kernel ran at all"
    return f"never reached the ported kernel ({names}){instead}"


def _samples(op: OpInfo, dtype: torch.dtype, requires_grad: bool = False) -> list[SampleInput]:
    """The OpInfo's samples, in memory of their own: making them takes longer than most tests."""
    key = (op.formatted_name, dtype, requires_grad)
    if key not in _made:
        _made[key] = list(op.sample_inputs("cpu", dtype, requires_grad=requires_grad, set_seed=True))
    return [samples.copied(sample) for sample in _made[key]]


def _some(op: OpInfo, dtype: torch.dtype) -> list[SampleInput]:
    """A few samples with a tensor input, with dimensions where there are any: first those of operands of one shape."""
    found = [s for s in _samples(op, dtype) if isinstance(s.input, torch.Tensor)]
    large = [s for s in found if s.input.ndim > 1 and s.input.numel()] or found
    return sorted(large, key=lambda s: len({t.shape for t in _operands(s)}))[:LAYOUT_SAMPLES]


def _mirrored(sample: SampleInput, device: str) -> SampleInput:
    args, kwargs = samples.mirror(sample.args, device), samples.mirror(sample.kwargs, device)
    return SampleInput(samples.mirror(sample.input, device), args=args, kwargs=kwargs)


def _outputs(op: OpInfo, sample: SampleInput) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The differentiable outputs of a call, and the inputs to differentiate by."""
    result = op(sample.input, *sample.args, **sample.kwargs)
    leaves = pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    return _differentiable(pytree.tree_leaves(result)), _differentiable(leaves)


def _differentiable(values: list[Any]) -> list[torch.Tensor]:
    return [v for v in values if isinstance(v, torch.Tensor) and v.requires_grad]


def _operands(sample: SampleInput) -> list[torch.Tensor]:
    return [v for v in pytree.tree_leaves((sample.input, sample.args)) if isinstance(v, torch.Tensor)]


def _computed_elements(results: Any, arguments: Any) -> int:
    """How many elements of the results had to be computed: an argument that is handed back needs no kernel."""
    given = {id(each) for each in pytree.tree_leaves(arguments)}
    found = [t for t in pytree.tree_leaves(results) if isinstance(t, torch.Tensor)]
    return sum(t.numel() for t in found if id(t) not in given)


def _to_cpu(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def _to_double_leaf(value: Any) -> Any:
    return compare.widened(value).requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _summary(sample: SampleInput) -> str:
    return f"input: {sample.summary()}"


class KernelTestBase(DeviceTypeTestBase):
    """Tests with mps names for a process without the device: their tensors are the CPU's."""

    device_type = "mps"

    @classmethod
    def get_primary_device(cls) -> str:
        return "cpu"


if execution.redirected():
    device_type_test_bases.append(KernelTestBase)
instantiate_device_type_tests(TestConsistency, globals(), only_for="mps", allow_mps=True)
instantiate_device_type_tests(TestVariants, globals(), only_for="mps", allow_mps=True)
instantiate_device_type_tests(TestErrorInputs, globals(), only_for="mps", allow_mps=True)

if __name__ == "__main__":
    run_tests()
