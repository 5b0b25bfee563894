"""A new operator on trial: built with the fork from its plan, tested one call after another, and judged."""

from __future__ import annotations

import importlib
import re
import time
import unittest
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.common_utils import TestCase

from porter.core import cache
from porter.core.change_set import ChangeSet
from porter.core.dtypes import name_torch
from porter.core.errors import PorterError
from porter.core.layout import CPU_KERNELS, DERIVATIVES
from porter.core.progress import Progress
from porter.plan.new_operator.operator import NewOperator
from porter.verdict.backends import host
from porter.verdict.build.new_operator import build_new_operator, write_autograd, write_cpu_dispatch
from porter.verdict.build.tree import materialise
from porter.verdict.errors import raising_porter_errors
from porter.verdict.fork_findings import add_findings
from porter.verdict.result import BUILD, DEFAULT, HOST, DTypeVerdict, Failure, ForkFinding, Verdict

ERRORS = (AssertionError, PorterError, RuntimeError, ValueError, TypeError, IndexError)
_INVOCATIONS = "torch.testing._internal.common_methods_invocations"
_ERROR = re.compile(r"\w+(?:Error|Exception)\b")
_LONGEST = 300  # characters of what is wrong
Test = Callable[[], "str | None"]  # returns what is wrong, or raises it


@dataclass
class _Count:
    """What ran in one element type so far."""

    passed: int = 0
    failed: int = 0
    calls: int = 0


@dataclass
class Trial:
    """The tests of an operator that `changes` add to a fork, and what came of them."""

    operator: NewOperator
    changes: ChangeSet
    arithmetic: str = DEFAULT
    counts: dict[str, _Count] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.operator.schema.name

    @property
    def op(self) -> Any:
        return getattr(torch.ops.aten, self.name)

    def kernel_calls(self) -> int:
        """How often the operator's kernels ran since the start."""
        calls = host.kernel_calls().items()
        return sum(count for kernel, count in calls if kernel == self.name or kernel.startswith(f"{self.name}_"))

    def prove(self, root: Path, tests: Iterable[tuple[str, torch.dtype, Test]], progress: Progress) -> Verdict:
        """The verdict of tests, each with its name and element type, which are listed when the operator is loaded.

        `host.start` has to have run before torch was imported.
        """
        start = time.monotonic()
        findings: tuple[ForkFinding, ...] = ()
        progress("building")
        try:
            findings = self._load(root)
        except PorterError as error:
            self.failures.append(Failure(BUILD, f"{error.code} {error.what}", place=str(error.place or "")))
        else:
            for name, dtype, test in tests:
                self._run(name, name_torch(dtype), test)
        counts = self.counts.values()
        verdict = Verdict(
            op=self.name,
            backend=HOST,
            arithmetic=self.arithmetic,
            passed=sum(count.passed for count in counts),
            failed=sum(count.failed for count in counts) + any(failure.test == BUILD for failure in self.failures),
            skipped=0,
            kernel_calls=sum(count.calls for count in counts),
            max_ulp=None,
            seconds=time.monotonic() - start,
            dtypes=tuple(DTypeVerdict(d, c.passed, c.failed, kernel_calls=c.calls) for d, c in self.counts.items()),
            failures=tuple(self.failures),
        )
        return add_findings(verdict, findings)

    def _load(self, root: Path) -> tuple[ForkFinding, ...]:
        """Builds and loads the operator. Raises what is wrong with its code."""
        op, schema, changes = self.name, self.operator.schema, self.changes
        tree = materialise(root.resolve(), changes.apply(), cache.root())
        files = [path for path in (*changes.created, *changes.files) if path.endswith((".mm", ".cpp"))]
        more = {}
        for kernel in [path for path in files if path.startswith(f"{CPU_KERNELS}/")]:
            more[f"{op}_cpu.cpp"] = write_cpu_dispatch(f"{op}_stub", f"{op}_kernel", kernel)
            files.remove(kernel)
        if self.operator.derivatives and DERIVATIVES in changes.files:
            more[f"{op}_autograd.cpp"] = write_autograd(op, schema.arguments, self.operator.derivatives)
        built = build_new_operator(tree, op, list(dict.fromkeys(files)), host.recipe(tree.root), cache.root(), more)
        # A functor's kernels are named OP_TYPES; a script's kernel without template parameters is OP.
        prefixes, checks = [f"{op}_" if self.operator.is_pointwise else op], host.find_checks(True)
        with raising_porter_errors():
            broken = host.load(built.library, tree.root, prefixes, self.arithmetic, checked=True, sanitize=checks)
        return (*built.findings, *host.find_kernel_faults(tree, broken, prefixes, self.arithmetic))

    def _run(self, name: str, dtype: str, test: Test) -> None:
        count, before = self.counts.setdefault(dtype, _Count()), self.kernel_calls()
        try:
            wrong = test()
        except ERRORS as error:
            wrong = f"{type(error).__name__}: {' '.join(str(error).split())[:_LONGEST]}"
        calls = self.kernel_calls() - before
        count.calls += calls
        count.passed += wrong is None
        count.failed += wrong is not None
        if wrong is not None:
            self.failures.append(Failure(name, wrong, dtype, kernel_calls=calls))

    def define_tests(self) -> dict[str, Any]:
        """What the plan adds to the list of OpInfos, as it stands there: all names of that module.

        The OpInfo itself is `info` there, None if the operator has none.
        """
        setattr(torch, self.name, self.op)
        names = vars(importlib.import_module(_INVOCATIONS))
        exec(self.operator.tests.functions, names)
        opinfo = self.operator.tests.opinfo
        return {**names, "info": eval(f"[{opinfo}]", names)[0] if opinfo else None}

    def run_case(self) -> str | None:
        """Runs the test that the plan adds to test_mps.py, and returns the error's own lines of its traceback."""
        names: dict[str, Any] = {"torch": torch, "TestCase": TestCase, "__name__": _INVOCATIONS}
        exec(self.operator.tests.case, names)
        result = unittest.TestResult()
        names[f"Test{self.operator.schema.file}"](f"test_{self.name}").run(result)
        wrong = [*result.errors, *result.failures]
        if not wrong:
            return None
        lines = wrong[0][1].strip().splitlines()
        first = next((at for at, line in enumerate(lines) if _ERROR.match(line)), len(lines) - 1)
        return " ".join(line.strip() for line in lines[first : first + 5] if line.strip())


def make_outs(expected: Tensor) -> tuple[Tensor, ...]:
    """Tensors for `out=`: of the right size, dense and with gaps, and an empty one."""
    dense = torch.full(expected.shape, 7, dtype=expected.dtype, device="mps")
    strided = torch.full((*expected.shape, 2), 7, dtype=expected.dtype, device="mps")[..., 0]
    return dense, strided, torch.empty(0, dtype=expected.dtype, device="mps")
