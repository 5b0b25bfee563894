"""The verdict on a new operator: built with the fork from its plan, and compared with its reference."""

from __future__ import annotations

import importlib
import time
import unittest
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor
from torch.testing import assert_close
from torch.testing._internal.common_utils import TestCase

from porter.core import cache
from porter.core.errors import PorterError
from porter.core.layout import CPU_KERNELS, DERIVATIVES
from porter.core.progress import Progress, ignore
from porter.plan.new_operator import tests
from porter.plan.new_operator.planner import NewOperatorPlan
from porter.plan.new_operator.schema import Schema
from porter.verdict.backends import host
from porter.verdict.build.autograd import Parameter, write_autograd, write_cpu_dispatch
from porter.verdict.build.new_operator import build_new_operator
from porter.verdict.build.tree import materialise
from porter.verdict.errors import raising_porter_errors
from porter.verdict.fork_findings import add_findings
from porter.verdict.result import BUILD, DEFAULT, HOST, DTypeVerdict, Failure, ForkFinding, Verdict

INVOCATIONS = "torch.testing._internal.common_methods_invocations"
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_TYPES = (*_FLOATS, torch.int64, torch.int32, torch.uint8, torch.bool)
_Test = Callable[[], None]


@dataclass
class _Count:
    """What ran in one element type so far."""

    passed: int = 0
    failed: int = 0
    calls: int = 0


@dataclass
class _Trial:
    """The tests of an operator, and what came of them."""

    plan: NewOperatorPlan
    info: Any = None
    reference: Callable[..., Tensor] | None = None
    counts: dict[str, _Count] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    @property
    def schema(self) -> Schema:
        return self.plan.operator.schema

    @property
    def op(self) -> Any:
        return getattr(torch.ops.aten, self.schema.name)

    def run(self, name: str, dtype: torch.dtype, test: _Test) -> None:
        """Runs one test, which raises what is wrong."""
        label = str(dtype).removeprefix("torch.")
        count, before = self.counts.setdefault(label, _Count()), self.kernel_calls()
        wrong = ""
        try:
            test()
        except (AssertionError, PorterError, RuntimeError, ValueError, TypeError, IndexError) as error:
            wrong = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        count.calls += self.kernel_calls() - before
        count.passed += not wrong
        count.failed += bool(wrong)
        if wrong:
            self.failures.append(Failure(name, wrong, label, kernel_calls=count.calls))

    def kernel_calls(self) -> int:
        """How often the operator's kernels ran since the start."""
        return sum(count for name, count in host.kernel_calls().items() if name.startswith(f"{self.schema.name}_"))


def prove_new_operator(root: Path, plan: NewOperatorPlan, progress: Progress = ignore) -> Verdict:
    """The verdict on a new operator. `host.start` has to have run before torch was imported."""
    start, trial = time.monotonic(), _Trial(plan)
    progress("building")
    try:
        findings = _load(root, plan)
    except PorterError as error:
        failure = Failure(BUILD, f"{error.code} {error.what}", place=str(error.place or ""))
        return _verdict(trial, [failure], time.monotonic() - start)
    _define_tests(trial)
    for dtype, name, test in _list_tests(trial):
        progress(f"testing {name}")
        trial.run(name, dtype, test)
    return add_findings(_verdict(trial, trial.failures, time.monotonic() - start), findings)


def _load(root: Path, plan: NewOperatorPlan) -> tuple[ForkFinding, ...]:
    schema = plan.operator.schema
    op, texts = schema.name, plan.plan.changes.apply()
    tree = materialise(root.resolve(), texts, cache.root())
    kernel = next(path for path in plan.plan.changes.created if path.startswith(f"{CPU_KERNELS}/"))
    created = [path for path in plan.plan.changes.created if path.endswith(".cpp") and path != kernel]
    more = {f"{op}_cpu.cpp": write_cpu_dispatch(f"{op}_stub", f"{op}_kernel", kernel)}
    formulas = _read_formulas(texts.get(DERIVATIVES, ""), op)
    if formulas:
        more[f"{op}_autograd.cpp"] = write_autograd(op, [Parameter(a.cpp, a.name) for a in schema.arguments], formulas)
    files = [*created, *(stub.file for stub in plan.plan.stubs)]
    built = build_new_operator(tree, op, files, host.recipe(tree.root), cache.root(), more)
    with raising_porter_errors():
        broken = host.load(built.library, tree.root, [f"{op}_"], DEFAULT, checked=True)
    return (*built.findings, *host.find_kernel_faults(tree, broken, [f"{op}_"], DEFAULT))


def _read_formulas(text: str, op: str) -> dict[str, str]:
    """The formulas of an operator, as derivatives.yaml has them."""
    rows: list[dict[str, str]] = yaml.safe_load(text) or []
    found = next((row for row in rows if row["name"].startswith(f"{op}(")), {})
    return {name: formula for name, formula in found.items() if name not in ("name", "result")}


def _define_tests(trial: _Trial) -> None:
    """Runs what the plan adds to the test files, as it stands there."""
    operator, op = trial.plan.operator, trial.schema.name
    setattr(torch, op, trial.op)
    invocations = importlib.import_module(INVOCATIONS)
    exec(tests.write_functions(operator), vars(invocations))
    (trial.info,) = eval(f"[{tests.write_opinfo(operator)}]", vars(invocations))
    trial.reference = getattr(invocations, f"reference_{op}")


def _list_tests(trial: _Trial) -> Iterator[tuple[torch.dtype, str, _Test]]:
    yield torch.float32, "test_mps.py", partial(_run_written_test, trial)
    for dtype in _TYPES:
        for at, sample in enumerate(trial.info.sample_inputs("cpu", dtype)):
            for test in (_match, _match_cpu, _match_out, _match_meta, _match_layouts, _match_inplace):
                yield dtype, f"test{test.__name__}_{at}", partial(test, trial, sample)
    if _read_formulas(trial.plan.plan.changes.apply().get(DERIVATIVES, ""), trial.schema.name):
        samples = list(trial.info.sample_inputs("cpu", torch.double, requires_grad=True))
        for at, sample in enumerate(samples):
            yield torch.float32, f"test_gradcheck_{at}", partial(_check_gradient, trial, sample)
            yield torch.float32, f"test_grad_match_{at}", partial(_match_gradient, trial, sample)


def _run_written_test(trial: _Trial) -> None:
    names: dict[str, Any] = {"torch": torch, "TestCase": TestCase, "__name__": INVOCATIONS}
    exec(tests.write_test(trial.plan.operator), names)
    result = unittest.TestResult()
    names[f"Test{trial.schema.file}"](f"test_{trial.schema.name}").run(result)
    wrong = [*result.errors, *result.failures]
    if wrong:
        raise AssertionError(wrong[0][1].strip().splitlines()[-1])


def _arguments(sample: Any) -> list[Any]:
    return [sample.input, *sample.args]


def _moved(values: Sequence[Any], **to: Any) -> list[Any]:
    return [value.to(**to) if isinstance(value, Tensor) else value for value in values]


def _expect(trial: _Trial, sample: Any) -> Tensor:
    """What the reference gives in double precision, in the type that the operator has to give."""
    given = _arguments(sample)
    assert trial.reference is not None
    wide = trial.reference(*_moved(given, dtype=torch.double), **sample.kwargs)
    return wide.to(given[0].dtype if given[0].is_floating_point() else torch.float32)


def _match(trial: _Trial, sample: Any) -> None:
    before, expected = trial.kernel_calls(), _expect(trial, sample)
    got = trial.op(*_moved(_arguments(sample), device="mps"), **sample.kwargs)
    if expected.numel() and trial.kernel_calls() == before:
        raise AssertionError("the operator did not reach its kernel")
    assert_close(got.cpu(), expected, equal_nan=True)


def _match_cpu(trial: _Trial, sample: Any) -> None:
    assert_close(trial.op(*_arguments(sample), **sample.kwargs), _expect(trial, sample), equal_nan=True)


def _match_out(trial: _Trial, sample: Any) -> None:
    """Results in a tensor of the right size, dense and strided, and in an empty one, which is resized."""
    expected, given = _expect(trial, sample), _moved(_arguments(sample), device="mps")
    dense = torch.full(expected.shape, 7, dtype=expected.dtype, device="mps")
    strided = torch.full((*expected.shape, 2), 7, dtype=expected.dtype, device="mps")[..., 0]
    for out in (dense, strided, torch.empty(0, dtype=expected.dtype, device="mps")):
        got = trial.op.out(*given, **sample.kwargs, out=out)
        assert got is out, "out= is not what is returned"
        assert_close(out.cpu(), expected, equal_nan=True)


def _match_meta(trial: _Trial, sample: Any) -> None:
    got, expected = trial.op(*_moved(_arguments(sample), device="meta"), **sample.kwargs), _expect(trial, sample)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype), f"meta gives {got.dtype} of {tuple(got.shape)}"


def _match_layouts(trial: _Trial, sample: Any) -> None:
    """Strided inputs, at an offset into a larger tensor."""

    def spread(value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.dim():
            return value
        room = torch.zeros((*value.shape[:-1], value.shape[-1] * 2 + 1), dtype=value.dtype, device="mps")
        room[..., 1::2] = value.to("mps")
        return room[..., 1::2]

    given = [spread(value) for value in _moved(_arguments(sample), device="mps")]
    assert_close(trial.op(*given, **sample.kwargs).cpu(), _expect(trial, sample), equal_nan=True)


def _match_inplace(trial: _Trial, sample: Any) -> None:
    """The form in place; integers cannot hold the result, and have to be refused."""
    given = _moved(_arguments(sample), device="mps")
    given[0] = given[0].clone()
    inplace = getattr(torch.ops.aten, f"{trial.schema.name}_")
    if given[0].is_floating_point():
        assert_close(inplace(*given, **sample.kwargs).cpu(), _expect(trial, sample), equal_nan=True)
        return
    try:
        inplace(*given, **sample.kwargs)
    except RuntimeError:
        return
    raise AssertionError("integers are computed in place, which loses their fractions")


def _check_gradient(trial: _Trial, sample: Any) -> None:
    tensors = [value for value in _arguments(sample) if isinstance(value, Tensor)]
    if all(each.numel() for each in tensors):
        torch.autograd.gradcheck(lambda *given: _call(trial.op, sample, given), tensors)


def _match_gradient(trial: _Trial, sample: Any) -> None:
    """The gradients on the device against those in double precision on the CPU."""
    wide = [value.detach().requires_grad_() for value in _arguments(sample) if isinstance(value, Tensor)]
    narrow = [each.detach().float().to("mps").requires_grad_() for each in wide]
    expected = torch.autograd.grad(_call(trial.op, sample, wide).sum(), wide)
    got = torch.autograd.grad(_call(trial.op, sample, narrow).sum(), narrow)
    for ours, theirs in zip(got, expected, strict=True):
        assert_close(ours.cpu(), theirs.float(), equal_nan=True, atol=1e-4, rtol=1e-4)


def _call(op: Any, sample: Any, tensors: Sequence[Tensor]) -> Tensor:
    """Calls the operator with other tensors in place of the sample's."""
    left = iter(tensors)
    given = [next(left) if isinstance(value, Tensor) else value for value in _arguments(sample)]
    result: Tensor = op(*given, **sample.kwargs)
    return result


def _verdict(trial: _Trial, failures: Sequence[Failure], seconds: float) -> Verdict:
    counts = trial.counts
    built = all(each.test != BUILD for each in failures)
    return Verdict(
        op=trial.schema.name,
        backend=HOST,
        arithmetic=DEFAULT,
        passed=sum(each.passed for each in counts.values()),
        failed=sum(each.failed for each in counts.values()) + (not built),
        skipped=0,
        kernel_calls=sum(each.calls for each in counts.values()),
        max_ulp=None,
        seconds=seconds,
        dtypes=tuple(DTypeVerdict(name, c.passed, c.failed, kernel_calls=c.calls) for name, c in counts.items()),
        failures=tuple(failures),
    )
