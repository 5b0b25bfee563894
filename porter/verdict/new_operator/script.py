"""The verdict on a promoted kernel: the cases of its script against its reference, and calls that no case makes.

The other calls have other sizes, ranks, types, devices and layouts. What the reference refuses, the operator has to
refuse in its meta function, before a kernel reads past the end of a tensor. What the reference takes, by broadcasting
too, the operator computes right or refuses in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from porter.core.errors import PorterError, code_in
from porter.core.progress import Progress, ignore
from porter.kernels.compare import compare
from porter.kernels.promotion.size_rules import OtherCall, settle, vary_alone, vary_together, with_argument
from porter.kernels.promotion.subject import Subject
from porter.kernels.script import Case, Layout, on_cpu, widened
from porter.plan.promotion.planner import PromotionPlan, sample_dtypes
from porter.verdict.new_operator.trial import Test, Trial, make_outs
from porter.verdict.result import DEFAULT, Verdict

_TYPES = (torch.float32, torch.float16, torch.int32, torch.int64)
_REFUSALS = (PorterError, RuntimeError, ValueError, TypeError, IndexError)


def prove_promotion(
    root: Path, subject: Subject, plan: PromotionPlan, progress: Progress = ignore, arithmetic: str = DEFAULT
) -> Verdict:
    """The verdict on a promotion. `host.start` has to have run before torch was imported."""
    trial = Trial(plan.operator, plan.changes, arithmetic)
    return trial.prove(root, _Tests(trial, subject, plan).list(progress), progress)


@dataclass(frozen=True)
class _Tests:
    """What is compared for one call. Each test returns what is wrong."""

    trial: Trial
    subject: Subject
    plan: PromotionPlan

    def list(self, progress: Progress) -> Iterator[tuple[str, torch.dtype, Test]]:
        yield from self._list_written()
        for case in self.subject.script.cases():
            progress(f"testing {case}")
            for name, test in self._list_of_case(case):
                yield f"{name}_{case}", case.dtype, test
        case = self.subject.case(self.subject.smallest, device="mps")
        progress(f"testing calls unlike {case}")
        for call, is_judged_by_sizes in self._list_other_calls(self.subject.arguments(case)):
            judge = self.judge_sizes if is_judged_by_sizes else self.judge_others
            yield f"test_other_call[{call.what}]_{case}", case.dtype, partial(judge, call)

    def _list_written(self) -> Iterator[tuple[str, torch.dtype, Test]]:
        """The tests that the plan adds to the fork, as they stand there."""
        info = self.trial.define_tests()["info"]
        yield "test_mps.py", self.subject.script.dtypes[0], self.trial.run_case
        for name in sample_dtypes(self.plan.promotion) if info else ():
            yield "op_db", getattr(torch, name), partial(self.match_opinfo, info, getattr(torch, name))

    def _list_of_case(self, case: Case) -> Iterator[tuple[str, Test]]:
        yield "test_output_match", lambda: self.match(self.subject.arguments(case))
        yield "test_out", lambda: self.match_out(self.subject.arguments(case))
        yield "test_meta", lambda: self.match_meta(self.subject.arguments(case))
        if case.layout is Layout.DENSE:
            yield "test_storage_offset", lambda: self.match_behind(list(map(_behind, self.subject.arguments(case))))
        if self.plan.promotion.cpu:
            yield "test_cpu", lambda: self.match_cpu(self.subject.arguments(case))

    def _list_other_calls(self, arguments: Sequence[Any]) -> Iterator[tuple[OtherCall, bool]]:
        """Calls like one, and whether it is their sizes that are unlike."""
        names = [argument.name for argument in self.trial.operator.schema.arguments]
        yield from ((call, True) for call in (*vary_alone(names, arguments), *vary_together(names, arguments)))
        for vary in (_vary_types, _vary_devices, _vary_layouts):
            yield from ((call, False) for call in vary(names, arguments))

    def call(self, arguments: Sequence[Any]) -> tuple[Tensor, ...]:
        return _listed(self.trial.op(*arguments))

    def expect(self, arguments: Sequence[Any], wide: bool) -> tuple[Tensor, ...]:
        """What the reference gives on the CPU, from doubles if `wide`."""
        values = {str(at): value for at, value in enumerate(arguments)}
        moved = widened(values) if wide else on_cpu(values)
        return _listed(self.subject.stage.reference(*moved.values()))

    def judge(self, results: Sequence[Tensor], arguments: Sequence[Any]) -> str | None:
        """The first difference of results from the reference's."""
        narrow, precise = self.expect(arguments, False), self.expect(arguments, True)
        for name, ours, theirs, exact in zip(self.subject.stage.gives, results, narrow, precise, strict=True):
            if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
                return f"{name} is {ours.dtype} of shape {tuple(ours.shape)}, not {theirs.dtype} {tuple(theirs.shape)}"
            _, difference = compare(name, ours.cpu(), exact, self.subject.script.tolerance)
            if difference is not None:
                return str(difference)
        return None

    def match_opinfo(self, info: Any, dtype: torch.dtype) -> str | None:
        """The samples of the OpInfo, on MPS and on the CPU."""
        if dtype not in info.dtypes:
            return f"the OpInfo lacks {dtype}"
        for sample in info.sample_inputs("cpu", dtype):
            arguments = [sample.input, *sample.args]
            for device in ("mps", "cpu"):
                results = info(*(v.to(device) if isinstance(v, Tensor) else v for v in arguments))
                if wrong := self.judge(_listed(results), arguments):
                    return wrong
        return None

    def match(self, arguments: Sequence[Any]) -> str | None:
        before = self.trial.kernel_calls()
        results = self.call(arguments)
        if self.trial.kernel_calls() == before and any(result.numel() for result in results):
            return "the operator did not reach its kernel"
        return self.judge(results, arguments)

    def match_behind(self, arguments: Sequence[Any]) -> str | None:
        """The results for tensors within larger ones; an error, where the script refuses them too."""
        try:
            self.subject.function(*arguments)
        except (RuntimeError, ValueError, TypeError):
            try:
                self.call(arguments)
            except (RuntimeError, ValueError, TypeError):
                return None
            return "the script refuses tensors at this offset, and the operator does not"
        return self.match(arguments)

    def match_out(self, arguments: Sequence[Any]) -> str | None:
        """Results in tensors of the right size, dense and strided, and in empty ones, which are resized."""
        names = self.trial.operator.schema.results
        for outs in zip(*map(make_outs, self.expect(arguments, False)), strict=True):
            results = _listed(self.trial.op.out(*arguments, **dict(zip(names, outs, strict=True))))
            if any(ours is not theirs for ours, theirs in zip(results, outs, strict=True)):
                return "out= is not what is returned"
            wrong = self.judge(outs, arguments)
            if wrong is not None:
                return f"out= of strides {outs[0].stride()}: {wrong}"
        return None

    def match_meta(self, arguments: Sequence[Any]) -> str | None:
        for ours, theirs in zip(self.call(_to_meta(arguments)), self.expect(arguments, False), strict=True):
            if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
                return f"the meta function gives {ours.dtype} of shape {tuple(ours.shape)}"
        return None

    def match_cpu(self, arguments: Sequence[Any]) -> str | None:
        moved = list(on_cpu({str(at): value for at, value in enumerate(arguments)}).values())
        return self.judge(self.call(moved), moved)

    def judge_sizes(self, call: OtherCall) -> str | None:
        settled, expected = settle(self.subject.stage, call)
        try:
            self.call(_to_meta(settled.arguments))
        except _REFUSALS:
            return self.judge_refusal(settled)
        if expected is None:
            return f"the reference refuses {call.what}, and the operator does not"
        try:
            return self.judge(self.call(settled.arguments), settled.arguments)
        except _REFUSALS as error:
            return f"the meta function takes {call.what}, and the operator fails: {_first_line(error)}"

    def judge_refusal(self, call: OtherCall) -> str | None:
        """What is wrong with the refusal of a call on the device."""
        before = self.trial.kernel_calls()
        try:
            self.call(call.arguments)
        except _REFUSALS as error:
            if self.trial.kernel_calls() > before or code_in(str(error)):
                return f"the kernel runs with {call.what}: {_first_line(error)}"
            return None if str(error).strip() else f"{call.what} is refused without a word"
        return f"the meta function refuses {call.what}, and the operator does not"

    def judge_others(self, call: OtherCall) -> str | None:
        """What is wrong with a call that may be refused, or computed as the reference does."""
        _, expected = settle(self.subject.stage, call)
        before = self.trial.kernel_calls()
        try:
            results = self.call(call.arguments)
            if expected is None:
                return f"the reference refuses {call.what}, and the operator does not"
            return self.judge(results, call.arguments)
        except _REFUSALS as error:
            ran = self.trial.kernel_calls() > before or code_in(str(error))
            return f"the kernel runs with {call.what}: {_first_line(error)}" if ran else None


def _vary_types(names: Sequence[str], arguments: Sequence[Any]) -> Iterator[OtherCall]:
    for at, tensor in _list_tensors(arguments):
        for dtype in (dtype for dtype in _TYPES if dtype != tensor.dtype):
            yield OtherCall(f"{names[at]} of {dtype}", with_argument(arguments, at, tensor.to(dtype)))


def _vary_devices(names: Sequence[str], arguments: Sequence[Any]) -> Iterator[OtherCall]:
    """Each tensor on the CPU, if others are on the device."""
    tensors = list(_list_tensors(arguments))
    for at, tensor in tensors if len(tensors) > 1 else ():
        yield OtherCall(f"{names[at]} on the CPU", with_argument(arguments, at, tensor.cpu()))


def _vary_layouts(names: Sequence[str], arguments: Sequence[Any]) -> Iterator[OtherCall]:
    """Each tensor alone with gaps between its elements, and with its last two dimensions turned in memory."""
    for at, tensor in _list_tensors(arguments):
        apart = torch.stack((tensor, torch.zeros_like(tensor)), -1)[..., 0]
        yield OtherCall(f"{names[at]} with gaps", with_argument(arguments, at, apart))
        if tensor.dim() > 1:
            turned = tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
            yield OtherCall(f"{names[at]} turned in memory", with_argument(arguments, at, turned))


def _list_tensors(arguments: Sequence[Any]) -> Iterator[tuple[int, Tensor]]:
    yield from ((at, value) for at, value in enumerate(arguments) if isinstance(value, Tensor))


def _to_meta(arguments: Sequence[Any]) -> list[Any]:
    return [value.to("meta") if isinstance(value, Tensor) else value for value in arguments]


def _behind(value: Any) -> Any:
    """The same tensor, somewhere in a larger one."""
    if not isinstance(value, Tensor) or not value.dim():
        return value
    room = torch.full((value.numel() + 3,), 9, dtype=value.dtype, device=value.device)
    room[3:] = value.reshape(-1)
    return room[3:].view(value.shape)


def _listed(results: Any) -> tuple[Tensor, ...]:
    return (results,) if isinstance(results, Tensor) else tuple(results)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
