"""The verdict on a promoted kernel: built with the fork, called on the device, and compared with its reference."""

from __future__ import annotations

import importlib
import math
import re
import time
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.common_utils import TestCase

from porter.core import cache
from porter.core.errors import PorterError
from porter.core.progress import Progress, ignore
from porter.kernels.compare import compare
from porter.kernels.promotion.reading import Subject
from porter.kernels.script import Case, Layout, on_cpu, widened
from porter.plan.promotion import tests
from porter.plan.promotion.planner import PromotionPlan
from porter.plan.promotion.promotion import Promotion
from porter.verdict.backends import host
from porter.verdict.build.new_operator import build_new_operator
from porter.verdict.build.tree import materialise
from porter.verdict.fork_findings import add_findings
from porter.verdict.promoted_calls import list_other_calls
from porter.verdict.result import BUILD, DEFAULT, HOST, DTypeVerdict, Failure, ForkFinding, Verdict

_ERROR = re.compile(r"\w+(?:Error|Exception)\b")
INVOCATIONS = "torch.testing._internal.common_methods_invocations"


@dataclass
class _Count:
    """What ran in one element type so far."""

    passed: int = 0
    failed: int = 0
    calls: int = 0


@dataclass
class _Trial:
    """The tests of an operator: what it should compute, and what came of them."""

    subject: Subject
    plan: PromotionPlan
    counts: dict[str, _Count] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    @property
    def op(self) -> Any:
        return getattr(torch.ops.aten, self.plan.promotion.op)

    def run(self, name: str, dtype: torch.dtype, test: Callable[[], str | None]) -> None:
        """Runs one test, which returns what is wrong."""
        label = str(dtype).removeprefix("torch.")
        count = self.counts.setdefault(label, _Count())
        before = self.kernel_calls()
        try:
            wrong = test()
        except (PorterError, RuntimeError, ValueError, TypeError, IndexError) as error:
            wrong = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
        calls = self.kernel_calls() - before
        count.calls += calls
        count.passed += wrong is None
        count.failed += wrong is not None
        if wrong is not None:
            self.failures.append(Failure(name, wrong, label, kernel_calls=calls))

    def kernel_calls(self) -> int:
        """How often the operator's kernels ran since the start."""
        op = self.plan.promotion.op
        return sum(count for name, count in host.kernel_calls().items() if name == op or name.startswith(f"{op}_"))

    def arguments(self, case: Case) -> list[Any]:
        values = self.subject.inputs(case)
        return [values[name] for name in self.subject.stage.takes]

    def expect(self, arguments: Sequence[Any], wide: bool) -> tuple[Tensor, ...]:
        """What the reference gives on the CPU, from doubles if `wide`."""
        values = {str(at): value for at, value in enumerate(arguments)}
        moved = widened(values) if wide else on_cpu(values)
        return _listed(self.subject.stage.reference(*moved.values()))

    def judge(self, got: Sequence[Tensor], arguments: Sequence[Any]) -> str | None:
        """The first difference of results from the reference's."""
        narrow, precise = self.expect(arguments, False), self.expect(arguments, True)
        for name, ours, theirs, exact in zip(self.subject.stage.gives, got, narrow, precise, strict=True):
            if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
                return f"{name} is {ours.dtype} of shape {tuple(ours.shape)}, not {theirs.dtype} {tuple(theirs.shape)}"
            _, difference = compare(name, ours.cpu(), exact, self.subject.script.tolerance)
            if difference is not None:
                return str(difference)
        return None


def prove_promotion(
    root: Path, subject: Subject, plan: PromotionPlan, progress: Progress = ignore, arithmetic: str = DEFAULT
) -> Verdict:
    """The verdict on a promotion. `host.start` has to have run before torch was imported."""
    start = time.monotonic()
    trial = _Trial(subject, plan)
    progress("building")
    try:
        findings = _load(root, plan, arithmetic)
    except PorterError as error:
        failure = Failure(BUILD, f"{error.code} {error.what}", place=str(error.place or ""))
        return _verdict(trial, [failure], arithmetic, time.monotonic() - start)
    for dtype, name, test in _written_tests(trial):
        trial.run(name, dtype, test)
    for case in subject.script.cases():
        progress(f"testing {case}")
        for name, test in _tests(trial, case):
            trial.run(f"{name}_{case}", case.dtype, test)
    case = _find_small_case(subject)
    progress(f"testing calls unlike {case}")
    names = [each.name for each in plan.promotion.parameters]
    for name, test in list_other_calls(trial, subject.stage, names, trial.arguments(case)):
        trial.run(f"test_other_call[{name}]_{case}", case.dtype, test)
    return add_findings(_verdict(trial, trial.failures, arithmetic, time.monotonic() - start), findings)


def _find_small_case(subject: Subject) -> Case:
    """The smallest case whose sizes are all more than 1, if there is one."""
    script = subject.script
    size = min(script.sizes, key=lambda sizes: (min(sizes, default=0) < 2, math.prod(sizes)))
    return Case(size, script.dtypes[0], script.layouts[0])


def _load(root: Path, plan: PromotionPlan, arithmetic: str) -> tuple[ForkFinding, ...]:
    promotion = plan.promotion
    texts = plan.changes.apply()
    tree = materialise(root.resolve(), texts, cache.root())
    files = [path for path in plan.changes.created if path.endswith((".mm", ".cpp"))]
    built = build_new_operator(tree, promotion.op, files, host.recipe(tree.root), cache.root())
    checks, prefixes = host.find_checks(True), [promotion.op]
    broken = host.load(built.library, tree.root, prefixes, arithmetic, checked=True, sanitize=checks)
    return (*built.findings, *host.find_kernel_faults(tree, broken, prefixes, arithmetic))


def _tests(trial: _Trial, case: Case) -> Iterator[tuple[str, Callable[[], str | None]]]:
    """The tests of one case, by name."""
    yield "test_output_match", lambda: _match(trial, trial.arguments(case))
    yield "test_out", lambda: _match_out(trial, trial.arguments(case))
    yield "test_meta", lambda: _match_meta(trial, trial.arguments(case))
    if case.layout is Layout.DENSE:
        yield "test_storage_offset", lambda: _match_behind(trial, [_behind(each) for each in trial.arguments(case)])
    if trial.plan.promotion.cpu:
        yield "test_cpu", lambda: _match_cpu(trial, trial.arguments(case))


def _written_tests(trial: _Trial) -> Iterator[tuple[torch.dtype, str, Callable[[], str | None]]]:
    """The tests that the plan adds to the fork, as they stand there."""
    promotion = trial.plan.promotion
    setattr(torch, promotion.op, trial.op)
    invocations = importlib.import_module(INVOCATIONS)
    exec(tests.write_functions(promotion), vars(invocations))
    yield trial.subject.script.dtypes[0], "test_mps.py", lambda: _run_test_case(promotion)
    if promotion.has_opinfo:
        (info,) = eval(f"[{tests.write_opinfo(promotion)}]", vars(invocations))
        for dtype in (getattr(torch, name) for name in tests.first_dtypes(promotion)):
            yield dtype, "op_db", lambda dtype=dtype: _match_opinfo(trial, info, dtype)  # type: ignore[misc]


def _run_test_case(promotion: Promotion) -> str | None:
    names: dict[str, Any] = {"torch": torch, "TestCase": TestCase, "__name__": INVOCATIONS}
    exec(tests.write_test(promotion), names)
    case = names[f"Test{promotion.file}"](f"test_{promotion.op}")
    result = unittest.TestResult()
    case.run(result)
    wrong = [*result.errors, *result.failures]
    return _find_message(wrong[0][1]) if wrong else None


def _find_message(trace: str) -> str:
    """The error's own lines of a traceback, without what torch's TestCase tells after them."""
    lines = trace.strip().splitlines()
    first = next((at for at, line in enumerate(lines) if _ERROR.match(line)), len(lines) - 1)
    return " ".join(line.strip() for line in lines[first : first + 5] if line.strip())


def _match_opinfo(trial: _Trial, info: Any, dtype: torch.dtype) -> str | None:
    """The samples of the OpInfo, on MPS and on the CPU."""
    if dtype not in info.dtypes:
        return f"the OpInfo lacks {dtype}"
    for sample in info.sample_inputs("cpu", dtype):
        given = [sample.input, *sample.args]
        found = _listed(info(*(v.to("mps") if isinstance(v, Tensor) else v for v in given)))
        wrong = trial.judge(found, given) or trial.judge(_listed(info(*given)), given)
        if wrong is not None:
            return wrong
    return None


def _match(trial: _Trial, arguments: Sequence[Any]) -> str | None:
    before = trial.kernel_calls()
    results = _listed(trial.op(*arguments))
    reached = trial.kernel_calls() > before
    if not reached and any(each.numel() for each in results):
        return "the operator did not reach its kernel"
    return trial.judge(results, arguments)


def _match_behind(trial: _Trial, arguments: Sequence[Any]) -> str | None:
    """The results for tensors within larger ones; an error, where the script refuses them too."""
    try:
        trial.subject.function(*arguments)
    except (RuntimeError, ValueError, TypeError):
        try:
            trial.op(*arguments)
        except (RuntimeError, ValueError, TypeError):
            return None
        return "the script refuses tensors at this offset, and the operator does not"
    return _match(trial, arguments)


def _match_out(trial: _Trial, arguments: Sequence[Any]) -> str | None:
    """Results in tensors of the right size, dense and strided, and in empty ones, which are resized."""
    expected = trial.expect(arguments, False)
    makers: tuple[Callable[[Tensor], Tensor], ...] = (
        lambda e: torch.full(e.shape, 7, dtype=e.dtype, device="mps"),
        lambda e: torch.full((*e.shape, 2), 7, dtype=e.dtype, device="mps")[..., 0],
        lambda e: torch.empty(0, dtype=e.dtype, device="mps"),
    )
    names = trial.plan.promotion.results
    for make in makers:
        given = [make(each) for each in expected]
        results = _listed(trial.op.out(*arguments, **dict(zip(names, given, strict=True))))
        if any(ours is not theirs for ours, theirs in zip(results, given, strict=True)):
            return "out= is not what is returned"
        wrong = trial.judge(given, arguments)
        if wrong is not None:
            return f"out= of strides {given[0].stride()}: {wrong}"
    return None


def _match_meta(trial: _Trial, arguments: Sequence[Any]) -> str | None:
    results = _listed(trial.op(*(v.to("meta") if isinstance(v, Tensor) else v for v in arguments)))
    for ours, theirs in zip(results, trial.expect(arguments, False), strict=True):
        if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
            return f"the meta function gives {ours.dtype} of shape {tuple(ours.shape)}"
    return None


def _match_cpu(trial: _Trial, arguments: Sequence[Any]) -> str | None:
    given = list(on_cpu({str(at): value for at, value in enumerate(arguments)}).values())
    return trial.judge(_listed(trial.op(*given)), given)


def _behind(value: Any) -> Any:
    """The same tensor, somewhere in a larger one."""
    if not isinstance(value, Tensor) or not value.dim():
        return value
    room = torch.full((value.numel() + 3,), 9, dtype=value.dtype, device=value.device)
    room[3:] = value.reshape(-1)
    return room[3:].view(value.shape)


def _listed(found: Any) -> tuple[Tensor, ...]:
    return (found,) if isinstance(found, Tensor) else tuple(found)


def _verdict(trial: _Trial, failures: Sequence[Failure], arithmetic: str, seconds: float) -> Verdict:
    counts: Mapping[str, _Count] = trial.counts
    built = all(each.test != BUILD for each in failures)
    return Verdict(
        op=trial.plan.promotion.op,
        backend=HOST,
        arithmetic=arithmetic,
        passed=sum(each.passed for each in counts.values()),
        failed=sum(each.failed for each in counts.values()) + (not built),
        skipped=0,
        kernel_calls=sum(each.calls for each in counts.values()),
        max_ulp=None,
        seconds=seconds,
        dtypes=tuple(DTypeVerdict(name, c.passed, c.failed, kernel_calls=c.calls) for name, c in counts.items()),
        failures=tuple(failures),
    )
