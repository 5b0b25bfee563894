"""Runs the tests in this process and returns their outcomes."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import time
import unittest
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from porter.core.progress import Progress, ignore
from porter.verdict.result import Finding, ForkFinding
from porter.verdict.suite import results
from porter.verdict.suite.context import Context, set_context
from porter.verdict.suite.torch_tools import unfused_attention

MODULES = tuple(f"{__package__}.{path.stem}" for path in sorted(Path(__file__).parent.glob("test_*.py")))
LARGE = (f"{__package__}.large",)
_DTYPE = re.compile(r"_(?:mps|cpu)_(?P<dtype>[a-z]+\d*)$")
_WORD = re.compile(r"[^\s()]+")
UPSTREAM = ("test_output_match", "test_output_grad_match", "test_error_inputs")
_OPERATORS = {"and", "or", "not"}


@dataclass(frozen=True)
class Outcome:
    """One test. `status` is passed, failed, skipped, xfailed (as its list says) or xpassed (passes though listed).

    `dtype` is a torch name (`""` for tests without one), `calls` the calls of kernels under test, `max_ulp` and
    `cpu_ulp` the largest errors against float64, where measured, of the kernel and of ATen's CPU kernel. `findings` are
    all that a test found wrong that failed, expected or not; `fork_findings` are faults of what the port does not
    touch; `remarks` hold for a sample each.
    """

    test: str
    dtype: str
    status: str
    reason: str
    calls: int
    seconds: float
    max_ulp: float | None = None
    cpu_ulp: float | None = None
    worst: str = ""
    findings: tuple[Finding, ...] = ()
    fork_findings: tuple[ForkFinding, ...] = ()
    remarks: tuple[str, ...] = ()


def run(
    context: Context,
    expression: str | None = None,
    progress: Progress = ignore,
    first_failure: bool = False,
    names: Sequence[str] = MODULES,
) -> list[Outcome]:
    """Imports the tests of `names` for this context and runs those that `expression` selects, as pytest's -k does.

    Reports the name of every test to `progress` before it starts; ends with the `first_failure` if told.
    """
    tests = find_tests(import_tests(replace(context, expression=expression or ""), names), expression)
    return run_tests(tests, progress, context, first_failure)


def select(context: Context, expression: str | None = None) -> list[str]:
    """The names of the tests for this context that `expression` selects. Raises as `matcher` does."""
    modules = import_tests(replace(context, expression=expression or ""), MODULES)
    return [name_test(test) for test in find_tests(modules, expression)]


def import_tests(context: Context, names: Sequence[str] = MODULES) -> list[ModuleType]:
    """The modules of tests, as they are for a context."""
    set_context(context)
    for name in names:
        sys.modules.pop(name, None)
    return [importlib.import_module(name) for name in names]


def find_tests(modules: Sequence[ModuleType], expression: str | None = None) -> list[unittest.TestCase]:
    """The tests of modules that `expression` selects, in the order in which they run."""
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromModule(module) for module in modules)
    wanted = matcher(expression)
    return [test for test in _flat(suite) if wanted(f"{type(test).__name__}.{_method(test)}")]


def run_tests(
    tests: Sequence[unittest.TestCase],
    progress: Progress = ignore,
    context: Context = Context(),  # noqa: B008 (frozen)
    first_failure: bool = False,
) -> list[Outcome]:
    """Runs tests; calls of kernels are those that the tests record.

    Tests of types that a port has kernels for have to pass, whatever a list expects, unless they are upstream's own.
    """
    results.records.clear()
    found = _Result(progress, context, first_failure)
    with unfused_attention():
        unittest.TestSuite(tests).run(found)
    return found.outcomes


def matcher(expression: str | None) -> Callable[[str], bool]:
    """pytest's -k: substrings joined by and, or, not and brackets. Raises ValueError for anything else."""
    if not expression:
        return lambda name: True
    words: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[0] in _OPERATORS:
            return match[0]
        words.append(match[0].lower())
        return f"w[{len(words) - 1}]"

    try:
        tree = ast.parse(_WORD.sub(number, expression), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"-k {expression!r} is not an expression of names with and, or, not") from error
    code = compile(tree, "-k", "eval")
    return lambda name: bool(eval(code, {"__builtins__": {}}, {"w": [word in name.lower() for word in words]}))


def _flat(suite: unittest.TestSuite) -> list[unittest.TestCase]:
    found: list[unittest.TestCase] = []
    for test in suite:
        found += _flat(test) if isinstance(test, unittest.TestSuite) else [test]
    return found


def name_test(test: unittest.TestCase) -> str:
    """The name of a test in outcomes."""
    return f"{type(test).__name__}.{_method(test)}"


def _method(test: unittest.TestCase) -> str:
    return test.id().rpartition(".")[2]


def _dtype(test: unittest.TestCase) -> str:
    match = _DTYPE.search(_method(test))
    return match["dtype"] if match else ""


class _Result(unittest.TestResult):
    """Collects an Outcome for every test that ends."""

    def __init__(self, progress: Progress, context: Context, first_failure: bool) -> None:
        super().__init__()
        self._first_failure = first_failure
        self._progress = progress
        self._context = context
        self.outcomes: list[Outcome] = []
        self._started = 0.0

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._started = time.perf_counter()
        self._progress(_method(test))

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._add(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: object) -> None:
        self._add(test, "failed", err)

    def addError(self, test: unittest.TestCase, err: object) -> None:
        self._add(test, "failed", err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: object) -> None:
        """A part that fails fails its test, once: unittest calls neither addFailure nor addSuccess then."""
        if err is not None and not any(o.test == name_test(test) and o.status == "failed" for o in self.outcomes):
            self._add(test, "failed", err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._add(test, "skipped", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: object) -> None:
        """A failure that a list expects. It speaks of upstream's tests: elsewhere a port's kernel has to be right.

        Of an OpInfo that calls others beside the operators under test, it speaks of those as well: attention.
        """
        record, context = results.get_record(_method(test)), self._context
        through = (*context.through, *context.through_backward)
        is_composite = any(f"_{name.replace('.', '_')}_mps_" in _method(test) for name in through)
        is_mixed = is_composite and (record.fallbacks or sum(record.kernels.values()) > record.calls)
        if not _method(test).startswith(UPSTREAM) and not is_mixed and context.has_ported(_dtype(test), record.kernels):
            self._add(test, "failed", err)
        else:
            self._add(test, "xfailed", err)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        """A listed test that passes. Lists apply only to upstream's tests, so for others this is a success."""
        if _method(test).startswith(UPSTREAM):
            self._add(test, "xpassed", "passes, though the test lists expect it to fail")
        else:
            self._add(test, "passed")

    def _add(self, test: unittest.TestCase, status: str, why: object = "") -> None:
        """`why` is a reason, or what unittest has of an error."""
        name, reason = _method(test), why if isinstance(why, str) else _reason(why)
        record = results.get_record(name)
        if status == "failed" and self._first_failure:
            self.stop()
        self.outcomes.append(
            Outcome(
                test=name_test(test),
                dtype=_dtype(test),
                status=status,
                reason=reason,
                calls=record.calls,
                seconds=round(time.perf_counter() - self._started, 4),
                max_ulp=record.max_ulp,
                cpu_ulp=record.cpu_ulp,
                worst=record.worst,
                findings=_findings(record, why, reason) if status in ("failed", "xfailed") else (),
                fork_findings=tuple(record.fork_findings),
                remarks=tuple(results.take_remarks(name)),
            )
        )


def _reason(err: object) -> str:
    assert isinstance(err, tuple)
    return results.describe_error(err[1])


def _findings(record: results.Record, why: object, reason: str) -> tuple[Finding, ...]:
    """What a test found in each sample, and why it failed, if that is something else: an error that a sample raised
    ends the test, in the words of one before it or in others, and the samples behind it are not judged.
    """
    if isinstance(why, tuple) and isinstance(why[1], results.Noted):
        return tuple(record.findings)
    return (*record.findings, Finding(reason, record.calls))
