"""Compares gradients on mps with the CPU's, or with those in float64 in case the CPU's own rounding is off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import torch
from torch.testing._comparison import default_tolerances
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.errors import Refusal, refusal_in
from porter.verdict.result import ForkFinding
from porter.verdict.suite import bounds, compare, counters, execution, layouts, results, samples, transforms
from porter.verdict.suite.backward import run_backward
from porter.verdict.suite.bounds import TIMES
from porter.verdict.suite.consistency import AsNear, Consistency, count_computed_elements, to_cpu
from porter.verdict.suite.kept_outcomes import on_cpu
from porter.verdict.suite.leaves import compute, list_operands
from porter.verdict.suite.opinfos import Called, watching
from porter.verdict.suite.refusals import is_raised_by_torch

# Of the largest gradient: rounding in 16 bits is off by less, and what is wrong by more.
LARGEST_ERROR = 2.0**-5
_FED_NOTHING = "Placeholder tensor is empty!"  # aten/src/ATen/native/mps/OperationUtils.mm
_OFF_ITSELF = (
    "gradients of the CPU are beyond the tolerance of double precision themselves, and the device's by no more"
)
# Of so many addends a sum in 32 bits is off by more than upstream's tolerances, the CPU's too.
MANY = 1 << 16


class Gradients(Consistency):
    """Runs samples forward and backward on both devices."""

    def match_slopes(
        self,
        op: OpInfo,
        dtype: torch.dtype,
        sample: SampleInput,
        device: str,
        label: str = "",
        seeds: Sequence[torch.Tensor] | None = None,
        dense: SampleInput | None = None,
    ) -> None:
        """Notes where results or gradients differ.

        `seeds` are gradients of the results, by default random ones, and `dense` is the sample that the CPU computes,
        where that has other layouts than what the device gets.
        """
        with watching(op, self.opinfos.context) as draws:
            want, wanted_from = run_forward(op, dense or sample)
        if draws.drawn and label:  # upstream's lists know its own samples
            return
        mirrored = mirror_sample(sample, device)
        before = counters.read_kernels()
        try:
            with execution.device_context():
                got, got_from = run_forward(op, mirrored)
        except Exception as error:
            if is_raised_by_torch(error) and counters.read_kernels() == before:  # nothing of the fork has run
                return
            raise
        self.elements += count_computed_elements(got, got_from)
        with self.noting(before):
            for i, (mine, theirs) in enumerate(zip(got, want, strict=True)):
                # Upstream has no bounds for varied samples: the CPU's own error sets them where that is larger.
                same = self.same_or_as_near if label else self.same
                same(op, dtype, sample, mine, theirs, label, partial(_compute_output, op, sample, i))
        # A result of another shape, which is noted, has no gradient of the CPU's shape.
        if want and [each.shape for each in got] == [each.shape for each in want]:
            least = reduce(compare.less_precise, (each.dtype for each in want), dtype)
            tolerance = self.choose_tolerance(op, dtype, sample, least)
            given = list(seeds or make_seeds(want))
            plain = [layouts.make_dense(each) for each in given] if seeds else given
            slopes = torch.autograd.grad(want, wanted_from, plain, allow_unused=True)
            with self.noting():
                ours = self.differentiate_on_device(op, got, got_from, samples.mirror(given, device))
                if ours is None:
                    return
                # Upstream has no bounds for varied samples.
                is_long = bool(label) and (_has_many_addends(sample) or transforms.mixes(op, sample))
                near = least in compare.HALVES or is_long
                self.same_slopes(ours, slopes, lambda: _exact_slopes(op, sample, plain), label, near, **tolerance)

    def differentiate_on_device(
        self, op: OpInfo, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], seeds: Any
    ) -> tuple[torch.Tensor | None, ...] | None:
        """Gradients of the inputs. None, and a finding about the fork, where these are none of the operators under test
        and the stand-in for Apple cannot run the fork's code: max_pool2d_backward's graph has other sizes than PyTorch.
        Or where that code feeds a graph what has no elements in the sample either, as linear_backward does: an empty
        tensor between may be the port's.
        """
        before, context = counters.read_kernels(), self.opinfos.context
        try:
            with execution.device_context(), Called() as called:
                return torch.autograd.grad(outputs, inputs, seeds, allow_unused=True)
        except Exception as error:
            is_ported = called.last in context.bases or context.count_ported(counters.read_kernels() - before) > 0
            is_unfed = _FED_NOTHING in str(error) and not all(each.numel() for each in (*outputs, *inputs))
            if is_ported or not (is_unfed or refusal_in(str(error)) is Refusal.NOT_MODELED):
                raise
            what = f"the gradient of {op.name}, which is not under test, does not run: {error}"
            results.get_record(self._testMethodName).fork_findings.append(ForkFinding(what))
            return None

    def choose_tolerance(
        self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, least: torch.dtype
    ) -> dict[str, float | None]:
        """Upstream's tolerance for a type, or the default one for the type of results with the fewest digits."""
        if least == dtype:
            return self.opinfos.tolerances(op, dtype, sample.kwargs)
        rtol, atol = default_tolerances(least)
        return {"rtol": rtol, "atol": atol}

    def reach(self, op: OpInfo, sample: SampleInput, device: str) -> None:
        """Runs a sample forward and backward on the device alone: upstream's own test compares it."""
        with execution.device_context():
            got, got_from = run_forward(op, mirror_sample(sample, device))
            self.elements += count_computed_elements(got, got_from)
            if got:
                torch.autograd.grad(got, got_from, list(map(torch.ones_like, got)), allow_unused=True)

    def same_slopes(
        self, ours: Any, theirs: Any, exact: Callable[[], Any], label: str = "", near: bool = False, **tolerance: Any
    ) -> None:
        """Asserts that gradients match the CPU's, or those in float64; or are about as `near` to these as the CPU's.

        Of labeled samples, which upstream has no bounds for, those of the CPU may be beyond the tolerance themselves:
        there the worst of the device's may be so too, by no more. A remark says so. Of upstream's own samples, what is
        as near for its magnitude raises AsNear, if the same test can be run on the fork before the port.
        """
        try:
            self.assertEqual(ours, theirs, **tolerance, exact_device=False)
        except AssertionError as error:
            found = exact()
            precise = [e if e is None else e.to(t.dtype) for e, t in zip(found, theirs, strict=True)]
            mine = [to_cpu(each) for each in ours]
            if near and label and all(map(_is_as_near, mine, theirs, found)):
                return
            if near and self.opinfos.context.has_before and all(map(_is_as_near_for_size, mine, theirs, found)):
                raise AsNear(str(error)) from None
            if label and all(map(partial(_is_as_exact, **tolerance), mine, theirs, found)):
                results.get_record(self._testMethodName).remarks.append(_OFF_ITSELF)
                return
            self.assertEqual(ours, precise, f"{label}gradients: " if label else None, **tolerance, exact_device=False)


def _has_many_addends(sample: SampleInput) -> bool:
    """Whether a dimension of a tensor is so long that its sums lose digits."""
    return any(size > MANY for tensor in list_operands(sample) for size in tensor.shape)


def _is_as_near(mine: torch.Tensor | None, theirs: torch.Tensor | None, exact: torch.Tensor | None) -> bool:
    """Whether a gradient is at most `TIMES` as far from the exact one as the CPU's, which is near to it itself."""
    if mine is None or theirs is None or exact is None:
        return mine is theirs is None
    largest = exact.abs().max() if exact.numel() else 0.0
    off, bound = (mine.to(exact.dtype) - exact).abs(), (theirs.to(exact.dtype) - exact).abs()
    most = bound.max() if exact.numel() else 0.0
    return bool((off <= TIMES * most).all()) and bool(most <= LARGEST_ERROR * largest)


def _is_as_near_for_size(mine: torch.Tensor | None, theirs: torch.Tensor | None, exact: torch.Tensor | None) -> bool:
    """Whether each element of a gradient is about as near to the exact one as the CPU's of its magnitude."""
    if mine is None or theirs is None or exact is None:
        return mine is theirs is None
    return _is_as_near(mine, theirs, exact) and not bounds.excess(mine, theirs, exact, [])


def _is_as_exact(
    mine: torch.Tensor | None,
    theirs: torch.Tensor | None,
    exact: torch.Tensor | None,
    rtol: float | None = None,
    atol: float | None = None,
) -> bool:
    """Whether a gradient is within the tolerance of the exact one, or no farther beyond it than the CPU's worst is."""
    if mine is None or theirs is None or exact is None:
        return mine is theirs is None
    default = default_tolerances(theirs.dtype)
    rtol, atol = (least if given is None else given for given, least in zip((rtol, atol), default, strict=True))
    allowed = atol + rtol * exact.abs()
    off, bound = ((each.to(exact.dtype) - exact).abs() / allowed for each in (mine, theirs))
    return not exact.numel() or bool(off.max() <= bound.max().clamp(min=1.0))


@on_cpu
def differentiate(op: OpInfo, *args: Any, **kwargs: Any) -> None:
    """Runs a call forward and backward, in a forked process too. Raises what either does."""
    outputs, _ = run_forward(op, SampleInput(args[0], args=args[1:], kwargs=kwargs))
    run_backward(outputs)


def make_seeds(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Random gradients of results: the same ones whenever they are asked for, so that failures have the same words."""
    generator = torch.Generator().manual_seed(0)
    wide = (torch.empty_like(each, dtype=torch.float64) for each in tensors)
    return [each.uniform_(generator=generator).to(result.dtype) for each, result in zip(wide, tensors, strict=True)]


def run_forward(op: OpInfo, sample: SampleInput) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The differentiable outputs of a call, and the inputs to differentiate by."""
    result = compute(op, sample)
    return _differentiable(pytree.tree_leaves(result)), _differentiable(list_operands(sample))


def _compute_output(op: OpInfo, given: SampleInput, at: int, sample: SampleInput) -> torch.Tensor:
    """One of the differentiable outputs of a sample that is differentiated by what the given one is."""
    for one, other in zip(list_operands(given), list_operands(sample), strict=True):
        if one.requires_grad:
            other.requires_grad_()
    outputs, _ = run_forward(op, sample)
    return outputs[at]


def _exact_slopes(op: OpInfo, sample: SampleInput, seeds: list[torch.Tensor]) -> Any:
    """The gradients of a sample's inputs on the CPU in float64 or complex128, which a result's type becomes too."""
    outputs, inputs = run_forward(op, sample.transform(_to_double_leaf))
    return torch.autograd.grad(outputs, inputs, [compare.widen(seed) for seed in seeds], allow_unused=True)


def mirror_sample(sample: SampleInput, device: str) -> SampleInput:
    args, kwargs = samples.mirror(sample.args, device), samples.mirror(sample.kwargs, device)
    return SampleInput(samples.mirror(sample.input, device), args=args, kwargs=kwargs)


def _differentiable(values: list[Any]) -> list[torch.Tensor]:
    return [v for v in values if isinstance(v, torch.Tensor) and v.requires_grad]


def _to_double_leaf(value: Any) -> Any:
    if isinstance(value, torch.dtype) and (value.is_floating_point or value.is_complex):
        return torch.complex128 if value.is_complex else torch.float64
    return compare.widen(value).requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value
