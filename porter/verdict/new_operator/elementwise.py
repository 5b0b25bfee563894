"""The verdict on a new elementwise operator: its samples against its reference in double precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.testing import assert_close

from porter.core.layout import DERIVATIVES
from porter.core.progress import Progress, ignore
from porter.plan.new_operator.planner import NewOperatorPlan
from porter.verdict.new_operator.trial import Test, Trial, make_outs
from porter.verdict.result import Verdict

_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_TYPES = (*_FLOATS, torch.int64, torch.int32, torch.uint8, torch.bool)


def prove_new_operator(root: Path, plan: NewOperatorPlan, progress: Progress = ignore) -> Verdict:
    """The verdict on a new operator. `host.start` has to have run before torch was imported."""
    trial = Trial(plan.operator, plan.plan.changes)
    return trial.prove(root, _list_tests(trial, progress), progress)


def _list_tests(trial: Trial, progress: Progress) -> Iterator[tuple[str, torch.dtype, Test]]:
    names = trial.define_tests()
    info, tests = names["info"], _Tests(trial, names[f"reference_{trial.name}"])
    yield "test_mps.py", torch.float32, trial.run_case
    compared = (tests.match, tests.match_cpu, tests.match_out, tests.match_meta, tests.match_layouts,
                tests.match_inplace)  # fmt: skip
    for dtype in _TYPES:
        for at, sample in enumerate(info.sample_inputs("cpu", dtype)):
            for test in compared:
                progress(f"testing test_{test.__name__}_{at}")
                yield f"test_{test.__name__}_{at}", dtype, partial(test, sample)
    if trial.operator.derivatives and DERIVATIVES in trial.changes.files:
        for at, sample in enumerate(info.sample_inputs("cpu", torch.double, requires_grad=True)):
            for name, test in (("gradcheck", tests.check_gradient), ("grad_match", tests.match_gradient)):
                progress(f"testing test_{name}_{at}")
                yield f"test_{name}_{at}", torch.float32, partial(test, sample)


@dataclass(frozen=True)
class _Tests:
    """What is compared for one sample. Each test raises what is wrong."""

    trial: Trial
    reference: Callable[..., Tensor]

    def expect(self, sample: Any) -> Tensor:
        """What the reference gives in double precision, in the type that the operator has to give."""
        arguments = _arguments(sample)
        wide = self.reference(*_moved(arguments, dtype=torch.double), **sample.kwargs)
        return wide.to(arguments[0].dtype if arguments[0].is_floating_point() else torch.float32)

    def call(self, sample: Any, tensors: Sequence[Tensor]) -> Tensor:
        """Calls the operator with other tensors in place of the sample's."""
        others = iter(tensors)
        arguments = [next(others) if isinstance(value, Tensor) else value for value in _arguments(sample)]
        result: Tensor = self.trial.op(*arguments, **sample.kwargs)
        return result

    def compare(self, result: Tensor, sample: Any) -> None:
        assert_close(result.cpu(), self.expect(sample), equal_nan=True)

    def match(self, sample: Any) -> None:
        before, expected = self.trial.kernel_calls(), self.expect(sample)
        result = self.trial.op(*_moved(_arguments(sample), device="mps"), **sample.kwargs)
        if expected.numel() and self.trial.kernel_calls() == before:
            raise AssertionError("the operator did not reach its kernel")
        assert_close(result.cpu(), expected, equal_nan=True)

    def match_cpu(self, sample: Any) -> None:
        self.compare(self.trial.op(*_arguments(sample), **sample.kwargs), sample)

    def match_out(self, sample: Any) -> None:
        """Results in a tensor of the right size, dense and strided, and in an empty one, which is resized."""
        arguments = _moved(_arguments(sample), device="mps")
        for out in make_outs(self.expect(sample)):
            result = self.trial.op.out(*arguments, **sample.kwargs, out=out)
            assert result is out, "out= is not what is returned"
            self.compare(out, sample)

    def match_meta(self, sample: Any) -> None:
        result = self.trial.op(*_moved(_arguments(sample), device="meta"), **sample.kwargs)
        expected, what = self.expect(sample), f"meta gives {result.dtype} of {tuple(result.shape)}"
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype), what

    def match_layouts(self, sample: Any) -> None:
        """Strided inputs, at an offset into a larger tensor."""

        def spread(value: Any) -> Any:
            if not isinstance(value, Tensor) or not value.dim():
                return value
            room = torch.zeros((*value.shape[:-1], value.shape[-1] * 2 + 1), dtype=value.dtype, device="mps")
            room[..., 1::2] = value.to("mps")
            return room[..., 1::2]

        arguments = [spread(value) for value in _moved(_arguments(sample), device="mps")]
        self.compare(self.trial.op(*arguments, **sample.kwargs), sample)

    def match_inplace(self, sample: Any) -> None:
        """The form in place; integers cannot hold the result, and have to be refused."""
        arguments = _moved(_arguments(sample), device="mps")
        arguments[0] = arguments[0].clone()
        inplace = getattr(torch.ops.aten, f"{self.trial.name}_")
        if arguments[0].is_floating_point():
            self.compare(inplace(*arguments, **sample.kwargs), sample)
            return
        try:
            inplace(*arguments, **sample.kwargs)
        except RuntimeError:
            return
        raise AssertionError("integers are computed in place, which loses their fractions")

    def check_gradient(self, sample: Any) -> None:
        tensors = [value for value in _arguments(sample) if isinstance(value, Tensor)]
        if all(tensor.numel() for tensor in tensors):
            torch.autograd.gradcheck(lambda *others: self.call(sample, others), tensors)

    def match_gradient(self, sample: Any) -> None:
        """The gradients on the device against those in double precision on the CPU."""
        wide = [value.detach().requires_grad_() for value in _arguments(sample) if isinstance(value, Tensor)]
        narrow = [tensor.detach().float().to("mps").requires_grad_() for tensor in wide]
        expected = torch.autograd.grad(self.call(sample, wide).sum(), wide)
        gradients = torch.autograd.grad(self.call(sample, narrow).sum(), narrow)
        for ours, theirs in zip(gradients, expected, strict=True):
            assert_close(ours.cpu(), theirs.float(), equal_nan=True, atol=1e-4, rtol=1e-4)


def _arguments(sample: Any) -> list[Any]:
    return [sample.input, *sample.args]


def _moved(values: Sequence[Any], **to: Any) -> list[Any]:
    return [value.to(**to) if isinstance(value, Tensor) else value for value in values]
