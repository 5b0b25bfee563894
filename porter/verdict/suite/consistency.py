"""Runs a sample on mps and on the CPU and compares the results, with the fork's tolerances.

A test whose operator never reached a kernel under test fails: a CPU fallback always passes and proves nothing.
"""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from unittest import SkipTest

import torch
from torch.testing._internal.common_device_type import (
    DeviceTypeTestBase,
    device_type_test_bases,
    instantiate_device_type_tests,
)
from torch.testing._internal.common_utils import TestCase
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.core.dtypes import name_torch
from porter.verdict.result import Finding, ForkFinding
from porter.verdict.suite import (
    bounds,
    compare,
    context,
    counters,
    cuts,
    execution,
    layouts,
    results,
    samples,
    transforms,
)
from porter.verdict.suite.arguments import Varied, keep_refused
from porter.verdict.suite.leaves import compute, list_tensors
from porter.verdict.suite.opinfos import OpInfos, is_pointwise, watching
from porter.verdict.suite.refusals import OVERLAP_ERROR, REFUSALS, is_raised_by_torch

Same = Callable[..., None]  # as `Consistency.same`
MOST_ASKED = 8  # samples of a test
MOST_WITH_NEIGHBORS = 1 << 18  # elements of results: of 32,769 matrices of two rows, one is ill conditioned
_OTHER_DEVICE = "Expected all tensors to be on the same device"
OVER_A_PART = " over the first element of "  # in the label of a call with such a result


class Refused(Exception):
    """The CPU raises an error for this sample, so there is nothing to compare."""


class OtherType(AssertionError):
    """A result has the CPU's values in another element type, or another shape: what host code chose, not a kernel.

    `error` says which, without the sample.
    """

    def __init__(self, message: str, error: str) -> None:
        super().__init__(message)
        self.error = error


class Nearer(AssertionError):
    """A result fails upstream's comparison with the CPU's values, and is as near to float64 as they are, or nearer."""


class AsNear(AssertionError):
    """A result or a gradient fails all comparisons, and is within the bound that the CPU's own error sets."""


class Accepted(AssertionError):
    """Host code accepts what the CPU refuses: no kernel is wrong, whatever it computes of that."""


class Consistency(TestCase):
    """Runs samples on both devices, compares them, and counts the kernel calls of each test."""

    opinfos: OpInfos
    noted = 0
    is_noting = False
    is_inner = False
    asked_memory = 0

    @contextmanager
    def count_calls(self, dtype: torch.dtype, op: OpInfo, slopes: bool = False, direct: bool = False) -> Iterator[None]:
        """Counts the test's kernel calls; fails the test if it called no kernel under test, or noted something.

        Skips a test all of whose calls were of overloads that no row under test serves. `slopes` are computed too.
        `direct` calls are of one row alone, and may all be of a branch that kernels of the fork serve: such a test is
        skipped where it is right.
        """
        context, before = self.opinfos.context, counters.read()
        record = results.get_record(self._testMethodName)
        self.elements = self.answers = 0
        wrong: AssertionError | None = None
        try:
            yield
        except AssertionError as error:
            wrong = error
        finally:
            seen = counters.since(before)
            record.calls, record.kernels, record.fallbacks = (
                context.count_ported(seen.kernels),
                seen.kernels,
                seen.fallbacks,
            )
        wrong = wrong or self.first_noted()
        if (
            self.elements
            and not record.calls
            and context.demands(name_torch(dtype))
            and not (record.fallbacks and self.is_composed(op, dtype, slopes))
        ):
            if not wrong and 0 < self.answers <= context.count_beside(record.fallbacks):
                self.skipTest(f"calls {', '.join(sorted(record.fallbacks))}, which no row under test serves")
            if direct and not wrong and record.kernels and not record.fallbacks:
                self.skipTest(f"calls a branch that kernels of the fork serve: {', '.join(sorted(record.kernels))}")
            differs = f"\n{wrong}" if wrong else ""
            self.fail(describe_unreached(record, context.kernels) + differs)
        if wrong:
            raise wrong
        if context.as_is and context.fell_back(record.fallbacks):
            self.fail(f"fell back to the CPU: {', '.join(record.fallbacks)}")

    def is_composed(self, op: OpInfo, dtype: torch.dtype, slopes: bool) -> bool:
        """Whether ATen computes each sample by the other operators that run for it."""
        found = self.opinfos.samples(op, dtype, slopes)
        return all(context.computes_all(op, [each], list_fallbacks(op, each, slopes), slopes) for each in found)

    @contextmanager
    def noting(self, before: Counter[str] | None = None) -> Iterator[None]:
        """Notes what is wrong with a sample, and how many kernels under test ran for it, and goes on.

        What is noted within another note is of its sample: the fork before the port may have made fewer, where it
        refuses what the port computes, and later samples have the same numbers all the same.
        """
        before = counters.read_kernels() if before is None else before
        is_outer, self.is_noting = not self.is_noting, True
        self.noted += is_outer
        try:
            yield
        except AssertionError as error:
            computed = counters.read_kernels() - before
            calls = 0 if isinstance(error, Accepted) else self.opinfos.context.count_ported(computed)
            finding = Finding(
                results.describe_error(error),
                calls,
                self.noted,
                is_type=isinstance(error, OtherType),
                is_nearer=isinstance(error, Nearer),
                is_as_near=isinstance(error, AsNear),
                is_inner=self.is_inner,
                type_error=error.error if isinstance(error, OtherType) else "",
                is_refusal=isinstance(results.find_cause(error), NotImplementedError),
            )
            results.get_record(self._testMethodName).findings.append(finding)
        finally:
            self.is_noting = not is_outer

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Notes what is wrong with a sample, as `noting` does; an error that the device raises is wrong too."""
        with self.noting():
            try:
                yield
            except (AssertionError, SkipTest):
                raise
            except Exception as error:
                raise AssertionError(str(error)) from error

    @property
    def has_upstreams_word(self) -> bool:
        """Whether the test is one that the fork's own file has, of the same samples: a port must not break it there."""
        return self.opinfos.context.has_before and self._testMethodName.startswith("test_output_match")

    def first_noted(self) -> AssertionError | None:
        return next((results.Noted(each.what) for each in results.get_record(self._testMethodName).findings), None)

    def raise_noted(self) -> None:
        """Fails the test for the first thing that was noted."""
        if wrong := self.first_noted():
            raise wrong

    def cpu(self, op: Callable[..., Any], sample: SampleInput) -> Any:
        """What the CPU computes. Raises Refused where it refuses the sample, and where it draws random numbers."""
        with watching(op, self.opinfos.context) as draws:
            try:
                result = compute(op, sample)
            except REFUSALS as error:
                raise Refused(str(error)) from error
        if draws.drawn and not self.has_upstreams_word:
            raise Refused("draws random numbers")
        return result

    def mps(self, op: Callable[..., Any], sample: SampleInput, device: str) -> Any:
        return self.mps_with_arguments(op, sample, device)[0]

    def mps_with_arguments(self, op: Callable[..., Any], sample: SampleInput, device: str) -> tuple[Any, Any]:
        """The result, and the arguments on the device, which the operator may have written to."""
        args, kwargs = samples.mirror(((sample.input, *sample.args), sample.kwargs), device)
        with execution.device_context():
            result = op(*args, **kwargs)
        self.elements += count_computed_elements(result, args)
        self.answers += 1
        return result, (args, kwargs)

    def match(
        self,
        op: OpInfo,
        dtype: torch.dtype,
        sample: SampleInput,
        device: str,
        label: str = "",
        same: Same | None = None,
    ) -> None:
        """Runs a sample on both devices and asserts that results match, by default within upstream's tolerances.

        So do arguments that the CPU writes to. Memory of one that overlaps itself is refused, as ATen's iterators do.
        """
        same = same or self.same
        before = samples.copy_sample(sample)
        want = self.cpu(op, sample)
        written = samples.find_written(before, sample)
        if any(map(samples.overlaps_itself, written.values())):
            raise Refused("writes to memory that overlaps itself")
        kernels = counters.read_kernels()
        try:
            got, given = self.mps_with_arguments(op, before, device)
        except Exception as error:
            # The operator's TensorIterator decides whether it allows a CPU scalar.
            if "CPU scalar" in label and _OTHER_DEVICE in str(error):
                raise Refused(str(error)) from error
            # ATen promises nothing for results that overlap a part of an argument, so host code may refuse them.
            if OVER_A_PART in label and re.search(OVERLAP_ERROR, str(error)):
                raise Refused(str(error)) from error
            if is_raised_by_torch(error) and counters.read_kernels() == kernels:  # nothing of the fork has run
                raise Refused(str(error)) from error
            raise AssertionError(f"{label}{error}\n{summary(sample)}") from error
        try:
            same(op, dtype, sample, got, want, label)
        except AssertionError:
            dense = self.dense_result(op, dtype, before, want)
            if dense is None:
                self.require_own_memory(op, before)
                raise
            same(op, dtype, sample, got, dense, label)
        shared = samples.list_shared(got, given) - samples.list_shared(
            want, ((sample.input, *sample.args), sample.kwargs)
        )
        if shared:
            self.fail(f"{label}a result is in the memory of an argument, which the CPU's is not\n{summary(sample)}")
        held, started = pytree.tree_leaves(given), pytree.tree_leaves(((before.input, *before.args), before.kwargs))
        compared = {id(each) for each in pytree.tree_leaves(got)}
        for i, theirs in written.items():
            if id(held[i]) not in compared:
                exact = partial(self.write_argument, op, at=i)
                same(op, dtype, before, held[i], theirs, f"{label}argument {i}: ", exact)
            if samples.has_written_beside(started[i], held[i]):
                self.fail(f"{label}argument {i}: wrote outside of it, in the same memory\n{summary(sample)}")

    def require_own_memory(self, op: OpInfo, sample: SampleInput) -> None:
        """Raises Refused for a sample on which the CPU reaches beyond its operands: a finding about the fork.

        Of the first few samples of a test that differ: to ask takes a process.
        """
        record = results.get_record(self._testMethodName)
        self.asked_memory += 1
        if self.asked_memory <= MOST_ASKED and cuts.reaches_beyond(op, sample):
            what = f"the CPU reaches beyond the operands of {op.name}, so that its results say nothing"
            record.fork_findings.append(ForkFinding(what))
            raise Refused(f"{what}\n{summary(sample)}")

    def write_argument(self, op: Callable[..., Any], sample: SampleInput, at: int) -> Any:
        """What the CPU writes to an argument, by its place among all leaves of the arguments."""
        copied = samples.copy_sample(sample)
        self.cpu(op, copied)
        return pytree.tree_leaves(((copied.input, *copied.args), copied.kwargs))[at]

    def dense_result(self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, want: Any) -> Any:
        """What the CPU gives for the same elements in dense memory; None unless that contradicts what it gave.

        A layout changes no result: the CPU's median of an expanded tensor has elements that are not in the tensor.
        """
        dense = self.cpu(op, sample.transform(layouts.make_dense))
        try:
            self.assertEqual(dense, want, **self.opinfos.tolerances(op, dtype, sample.kwargs))
        except AssertionError:
            return dense
        return None

    def same(
        self,
        op: OpInfo,
        dtype: torch.dtype,
        sample: SampleInput,
        got: Any,
        want: Any,
        label: str = "",
        compute: Callable[[SampleInput], Any] | None = None,
    ) -> None:
        """Upstream's comparison; also accepts a 16-bit result that matches float64 where the CPU's does not.

        In the fork's own test that raises Nearer instead, if the same test can be run on the fork before the port, and
        what `same_or_as_near` accepts raises AsNear.
        `compute` makes the result of a sample on the CPU, where that is not all that the operator returns.
        """
        tolerance = self.opinfos.tolerances(op, dtype, sample.kwargs)
        try:
            self.assertEqual(got, want, **tolerance, exact_device=False)
        except AssertionError as error:
            picks = isinstance(got, tuple) and isinstance(sample.input, torch.Tensor)
            if picks and self.same_but_ties(sample, got, want, **tolerance):
                return
            plain = isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor)
            if plain and want.dtype in compare.HALVES:
                wide = compare.widen_call(sample)
                exact = compute(wide) if compute else self.cpu(op, wide)
                mine, theirs = to_cpu(got), want.detach()
                is_alike = (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
                excused = compare.is_close(mine, theirs, **tolerance) if is_alike else None
                if not compare.find_disagreement(mine, theirs, exact.detach(), [], excused=excused):
                    if not self.has_upstreams_word:
                        return
                    raise Nearer(f"{label}{error}\n{summary(sample)}") from None
            if (
                plain
                and not self.has_upstreams_word
                and self.is_near_transform(op, sample, to_cpu(got), to_cpu(want), compute)
            ):
                return
            message = f"{label}{error}\n{summary(sample)}"
            if plain and isinstance(op, OpInfo) and is_pointwise(op):
                run = compute or partial(self.cpu, op)
                excused = self.find_as_near(sample, to_cpu(got), run, **tolerance)
                if excused is not None and bool((excused | compare.is_close(to_cpu(got), want, **tolerance)).all()):
                    if self.has_upstreams_word:
                        raise Nearer(message) from None
                    self.remark_on_cpu(op, dtype)
                    return
            if plain and self.has_upstreams_word:
                with suppress(Refused):
                    if self.is_as_near(op, dtype, sample, to_cpu(got), to_cpu(want), compute):
                        raise AsNear(message) from None
            if differs_in_shape(got, want) or self.differs_in_type(got, want, **tolerance):
                raise OtherType(message, str(error)) from None
            raise AssertionError(message) from None

    def find_as_near(
        self, sample: SampleInput, mine: Any, run: Callable[[SampleInput], Any], **tolerance: Any
    ) -> torch.Tensor | None:
        """Where a complex result is about as near to double precision as what `run` gives on the CPU, if that is beyond
        the tolerance; None for others.

        The CPU's powers of complex numbers are: an error of the logarithm is as many times as large in them.
        """
        if not mine.is_complex():
            return None
        calls = (sample, *samples.list_neighbors(sample))
        try:
            pairs = [(to_cpu(run(call)), to_cpu(run(compare.widen_call(call)))) for call in calls]
        except (*REFUSALS, Refused):
            return None
        return bounds.find_as_near(mine, pairs, **tolerance) if all(are_alike(mine, *pair) for pair in pairs) else None

    def remark_on_cpu(self, op: OpInfo, dtype: torch.dtype) -> None:
        """Remarks that results pass by the CPU's own error."""
        results.get_record(self._testMethodName).remarks.append(f"{op.name} in {name_torch(dtype)}: {_OFF_ITSELF}")

    def is_near_transform(
        self,
        op: Callable[..., Any],
        sample: SampleInput,
        mine: torch.Tensor,
        theirs: torch.Tensor,
        compute: Callable[[SampleInput], Any] | None = None,
    ) -> bool:
        """Whether a result of a transform is as near to the exact one as rounding of all elements lets it be."""
        try:
            return transforms.agrees(compute or partial(self.cpu, op), sample, mine, theirs)
        except (*REFUSALS, Refused):
            return False

    def differs_in_type(self, got: Any, want: Any, **tolerance: Any) -> bool:
        """Whether results differ in their element types alone, compared in the less precise of two."""
        mine, theirs = (pytree.tree_leaves(pytree.tree_map(to_cpu, each)) for each in (got, want))
        if len(mine) != len(theirs) or not all(isinstance(each, torch.Tensor) for each in (*mine, *theirs)):
            return False
        try:
            for one, other in zip(mine, theirs, strict=True):
                dtype = compare.less_precise(one.dtype, other.dtype)
                self.assertEqual(one.to(dtype), other.to(dtype), **tolerance)
        except AssertionError:
            return False
        return any(one.dtype != other.dtype for one, other in zip(mine, theirs, strict=True))

    def same_or_as_near(
        self,
        op: OpInfo,
        dtype: torch.dtype,
        sample: SampleInput,
        got: Any,
        want: Any,
        label: str = "",
        compute: Callable[[SampleInput], Any] | None = None,
    ) -> None:
        """As `same`; where the CPU's own 32-bit result is beyond the tolerance, its error sets the bound instead.

        For operands of types that upstream does not mix, and has no tolerances for.
        """
        try:
            self.same(op, dtype, sample, got, want, label, compute)
        except AssertionError:
            with suppress(Refused):
                if self.is_as_near(op, dtype, sample, to_cpu(got), to_cpu(want), compute):
                    if any(result.is_complex() for result in _list_results(want)):
                        self.remark_on_cpu(op, dtype)
                    return
            raise

    def is_as_near(
        self,
        op: OpInfo,
        dtype: torch.dtype,
        sample: SampleInput,
        mine: Any,
        theirs: Any,
        compute: Callable[[SampleInput], Any] | None = None,
    ) -> bool:
        """Whether each float32 result is within the bound that the CPU's errors set for operands and their neighbors.

        Results that match within the tolerance need no bound; of several, one may be a position.
        """
        run = compute or partial(self.cpu, op)
        # Many elements say by themselves how far off the CPU may be.
        neighbors = samples.list_neighbors(sample) if count_elements(theirs) <= MOST_WITH_NEIGHBORS else []
        near = [(sample, theirs)]
        for neighbor in neighbors:
            with suppress(*REFUSALS):  # binary_cross_entropy takes numbers from 0 to 1 and none beside them
                near.append((neighbor, run(neighbor)))
        known = [(_list_results(cpu), _list_results(run(compare.widen_call(neighbor)))) for neighbor, cpu in near]
        results = _list_results(mine)
        if any(len(results) != len(several) for pair in known for several in pair):
            return False
        tolerance = self.opinfos.tolerances(op, dtype, sample.kwargs)
        for at, result in enumerate(results):
            pairs = [(cpu[at], exact[at]) for cpu, exact in known]
            cpu = pairs[0][0]
            is_same_kind = result.shape == cpu.shape and result.dtype == cpu.dtype
            if is_same_kind and bool(compare.is_close(result, cpu, **tolerance).all()):
                continue
            if not all(are_alike(result, *pair) for pair in pairs):
                return False
            if not bounds.is_as_near(result, pairs, self.opinfos.context.flushes, **tolerance):
                return False
        return True

    def same_but_ties(self, sample: SampleInput, got: Any, want: Any, **tolerance: Any) -> bool:
        """Whether results differ only in which of equal elements they name, where the CPU keeps no order of these."""
        mine, theirs = ([t for t in map(to_cpu, each) if isinstance(t, torch.Tensor)] for each in (got, want))
        source = to_cpu(sample.input)
        if not compare.take_positions(source, mine, theirs) and not compare.place_nans(source, mine, theirs):
            return False
        self.assertEqual([mine[0], *mine[2:]], [theirs[0], *theirs[2:]], **tolerance)
        return True

    def on_device(self, op: Callable[..., Any], target: torch.Tensor, sample: SampleInput, device: str) -> Any:
        with execution.device_context():
            return op(target, *samples.mirror(sample.args, device), **samples.mirror(sample.kwargs, device))

    def check_refusal(self, op: OpInfo, sample: SampleInput, device: str, why: str) -> None:
        """Asserts that the device raises an error, as the CPU does."""
        try:
            self.mps(op, sample, device)
        except Exception:
            return
        self.fail(f"mps accepts it, but the CPU raises: {why}\n{summary(sample)}")

    def check_refusals(self, op: OpInfo, refused: Sequence[Varied], device: str) -> None:
        """Notes what the device accepts of calls that the CPU refuses, labeled by why. They run in a child process,
        which a kernel may end that reads outside of its tensors.
        """

        def call(*args: Any, **kwargs: Any) -> Any:
            given, named = samples.mirror(args, device), samples.mirror(kwargs, device)
            with execution.device_context():
                return op(*given, **named)

        rejected = [sample for _, sample in keep_refused(call, refused)]
        for label, sample in refused:
            with self.noting():
                if not any(sample is each for each in rejected):
                    raise Accepted(f"mps accepts it, but the CPU refuses the call {label}\n{summary(sample)}")

    def match_all(
        self,
        op: OpInfo,
        dtype: torch.dtype,
        found: Iterable[tuple[str, SampleInput]],
        device: str,
        same: Same | None = None,
    ) -> None:
        for label, sample in found:
            with self.asking(), suppress(Refused):
                self.match(op, dtype, sample, device, f"{label}: ", same)


def list_fallbacks(op: OpInfo, sample: SampleInput, slopes: bool) -> Collection[str]:
    """The operators that the CPU computes where a sample is one of the device's."""
    moved = samples.on_device(sample)
    before = counters.read()
    with execution.device_context():
        context.run_sample(op, moved, slopes)
    return counters.since(before).fallbacks


def describe_unreached(record: results.Record, kernels: Sequence[str]) -> str:
    """Describes what ran instead of the kernels under test."""
    names = ", ".join(kernels)
    ran = [f"kernel {n}" for n in record.kernels] + [f"CPU fallback of {n}" for n in record.fallbacks]
    instead = f"; it ran {', '.join(ran[:6])}" if ran else "; no kernel ran at all"
    return f"never reached the ported kernel ({names}){instead}"


def count_computed_elements(results: Any, arguments: Any) -> int:
    """The number of computed elements in the results; a returned argument needs no kernel."""
    given = {id(each) for each in pytree.tree_leaves(arguments)}
    return sum(result.numel() for result in list_tensors(results) if id(result) not in given)


def count_elements(results: Any) -> int:
    return sum(result.numel() for result in _list_results(results))


def differs_in_shape(got: Any, want: Any) -> bool:
    """Whether a result has another shape than the CPU's: host code allocates and resizes results, kernels do not."""
    mine, theirs = _list_results(got), _list_results(want)
    return len(mine) == len(theirs) and any(one.shape != other.shape for one, other in zip(mine, theirs, strict=True))


_OFF_ITSELF = "the CPU is farther from double precision than the tolerance, which bounds results of their magnitude"
_WIDENED = (
    (torch.float32, torch.float32, torch.float64),
    (torch.complex64, torch.complex64, torch.complex128),
)


def are_alike(mine: Any, theirs: Any, exact: Any) -> bool:
    """Whether two results are tensors of 32 bits, or complex of such parts, and the third is of 64, of one shape."""
    if not all(isinstance(each, torch.Tensor) for each in (mine, theirs, exact)):
        return False
    types = (mine.dtype, theirs.dtype, exact.dtype)
    return types in _WIDENED and mine.shape == theirs.shape == exact.shape


def _list_results(value: Any) -> list[torch.Tensor]:
    return [to_cpu(leaf) for leaf in list_tensors(value)]


def to_cpu(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def summary(sample: SampleInput) -> str:
    return f"input: {sample.summary()}"


class KernelTestBase(DeviceTypeTestBase):
    """Tests with mps names but CPU tensors, for a process without the device."""

    device_type = "mps"

    @classmethod
    def get_primary_device(cls) -> str:
        return "cpu"


def instantiate(tests: type[TestCase], scope: dict[str, Any]) -> None:
    """Instantiates the tests with mps names in a module's scope."""
    if execution.is_redirected() and KernelTestBase not in device_type_test_bases:
        device_type_test_bases.append(KernelTestBase)
    instantiate_device_type_tests(tests, scope, only_for="mps", allow_mps=True)
