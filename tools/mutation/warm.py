"""A subject made ready once: mutants are forks of the process that has its host code built and its tests imported.

A mutant meets what its verdict, as `migrate --write` asks for it, consists of, in another order: first the tests that
caught others, of those that end soon and launch kernels of one type alone, then all the rest.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import TestCase
from unittest.mock import patch

from mutation.subjects import Subject
from porter.core import cache as stored
from porter.core.dtypes import BY_TORCH
from porter.core.progress import Progress, ignore
from porter.server import worker
from porter.server.process import End, Process, wait
from porter.server.worker import RunOptions
from porter.verdict import judge
from porter.verdict.backends import host
from porter.verdict.build.tree import Tree, materialise
from porter.verdict.errors import porter_error
from porter.verdict.limits import Limits
from porter.verdict.messages import Answer, ErrorAnswer, VerdictAnswer
from porter.verdict.result import DEFAULT, HOST

if TYPE_CHECKING:
    from porter.verdict.suite.context import Context
    from porter.verdict.suite.runner import Outcome

METHOD = re.compile(r"\w+\.\w+")
SOON = 1.5  # seconds of a test
# Of a test of the first part that takes no longer than SOON; others have a verdict's.
_SECONDS = 15.0
_RARE_TYPE = re.compile(r"_(?:half|bfloat|short|u?char|(?:float|half)2)(?=_|$)")
_WHOLE = RunOptions(None, HOST, DEFAULT, first_failure=True, thorough=True)


@dataclass(frozen=True)
class TimedTest:
    """A test that does not fail without a mutant, how long it takes, and which kernels of the subject it launches."""

    name: str
    seconds: float
    kernels: tuple[str, ...]

    @property
    def method(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def is_of_rare_type(self) -> bool:
        """Whether it is the test of a type whose kernels are instances of what those of float32 test as well."""
        dtype = self.name.rpartition("_mps_")[2]
        return dtype in BY_TORCH and dtype != "float32"


@dataclass(frozen=True)
class Part:
    """Tests in the order in which they run, and the kernels that are compiled ahead of them."""

    tests: tuple[str, ...]
    compiles: Callable[[str], bool]


def is_quick(name: str) -> bool:
    """Whether a kernel, by its name, is of those that most tests of float32 launch."""
    return "_float" in name and not _RARE_TYPE.search(name)


def find_first(tests: Iterable[TimedTest], compiles: Callable[[str], bool], endings: tuple[str, ...] = ("",)) -> Part:
    """The tests that end soon, have one of these endings, and launch no other kernels than those compiled."""
    chosen = (test for test in tests if test.seconds < SOON and test.kernels and test.name.endswith(endings))
    return Part(tuple(test.name for test in chosen if all(map(compiles, test.kernels))), compiles)


def compile_all(_name: str) -> bool:
    return True


class WarmSubject:
    """A subject in a process that loads no host code itself. Raises what its verdict raises."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._tree = self._materialise(subject.texts)
        self._selection = host.select_opinfos(subject.target.base)
        self._context = self._make_context(self._tree)
        self._library = host.build_operator(self._tree, subject.target).library
        with without_engine():
            self._tests = _import(self._context)
        self.tests, self.failing = self._time()

    def ask(self, texts: Mapping[str, str], first: Part, kills: Mapping[str, int]) -> VerdictAnswer | ErrorAnswer:
        """The verdict on other texts of the subject, up to its first failure."""
        rank = {test.name: (-kills.get(test.method, 0), test.is_of_rare_type, test.seconds) for test in self.tests}
        order = sorted(rank, key=lambda name: rank[name])
        chosen = set(first.tests)
        first = replace(first, tests=tuple(name for name in order if name in chosen))
        rest = Part(tuple(name for name in order if name not in chosen), compile_all)
        longest = max((test.seconds for test in self.tests), default=0.0)
        limits = Limits(min(Limits().test, max(_SECONDS, 2 * longest)))
        (answer,) = wait([Process(partial(self._judge, texts, first, rest), died, limits)])
        assert isinstance(answer, (VerdictAnswer, ErrorAnswer))
        return answer

    def _materialise(self, texts: Mapping[str, str]) -> Tree:
        return materialise(self.subject.root, texts, stored.root())

    def _make_context(self, tree: Tree) -> Context:
        target = self.subject.target
        return worker.complete_context(worker.make_context(tree, target, self._selection), tree, target, _WHOLE)

    def _judge(self, texts: Mapping[str, str], first: Part, rest: Part, progress: Progress) -> Answer:
        target, started = self.subject.target, time.monotonic()
        tree = self._materialise(texts)
        progress("lint")
        if faults := worker.find_lint(tree) or worker.find_unregistered(tree, target):
            return VerdictAnswer(judge.verdict_without_tests(target.base, faults, 0.0))
        progress("build")
        self._load(tree, first.compiles if first.tests else rest.compiles)
        outcomes = self._run(self._context, self._tests, first, progress)
        if not _fails(outcomes):
            progress("build of all kernels")
            self._compile_rest(rest)
            context = self._make_context(tree)
            tests = self._tests if context == self._context else _import(context)
            outcomes += self._run(context, tests, rest, progress)
            if not _fails(outcomes):
                without = [f"not {test}" for test in self.failing if METHOD.fullmatch(test)]
                options = replace(_WHOLE, expr=" and ".join(without) or None)
                return worker.conclude(tree, context, target, options, outcomes, progress, started)
        return VerdictAnswer(judge.judge(target.base, outcomes, 0.0))

    def _load(self, tree: Tree, compiles: Callable[[str], bool]) -> None:
        """Loads the host code of a tree, with those kernels compiled ahead."""
        target, compiler = self.subject.target, host.compiler()
        same_host = all(
            text == self.subject.text(file) for file, text in tree.texts.items() if not file.endswith(".metal")
        )
        library = self._library if same_host else host.build_operator(tree, target).library
        compile_ahead = compiler.compile_ahead
        compiler.compile_ahead = lambda wanted: compile_ahead(  # type: ignore[method-assign]
            lambda name: wanted(name) and compiles(name)
        )
        host.load_tested(library, tree.root, tree, target, DEFAULT, checked=False)
        compiler.compile_ahead = compile_ahead  # type: ignore[method-assign]

    def _compile_rest(self, rest: Part) -> None:
        prefixes = tuple(f"{kernel}_" for kernel in self.subject.target.kernels)
        for error in (
            host.compiler().compile_ahead(lambda name: name.startswith(prefixes) and rest.compiles(name)).values()
        ):
            raise porter_error(error)

    def _run(self, context: Context, tests: Mapping[str, TestCase], part: Part, progress: Progress) -> list[Outcome]:
        from porter.verdict.suite import runner

        chosen = [tests[name] for name in part.tests if name in tests]
        return runner.run_tests(chosen, progress, context, first_failure=True)

    def _time(self) -> tuple[tuple[TimedTest, ...], tuple[str, ...]]:
        """The tests that do not fail without a mutant, and the names of what fails. Raises RuntimeError."""
        from porter.verdict.suite.children import run_forked

        answer, ended = run_forked(self._tell_times)
        if not ended or not answer:
            raise RuntimeError(f"{self.subject.op} has no verdict: its tests end the process that runs them")
        timed, failing = json.loads(answer)
        tests = (TimedTest(name, seconds, tuple(kernels)) for name, seconds, kernels in timed)
        return tuple(test for test in tests if test.name not in failing), tuple(failing)

    def _tell_times(self, writing: int) -> None:
        from porter.verdict.suite import runner

        target, started = self.subject.target, time.monotonic()
        self._load(self._tree, compile_all)
        outcomes = runner.run_tests(list(self._tests.values()), context=self._context)
        timed = [(outcome.test, outcome.seconds, self._list_launched(outcome)) for outcome in outcomes]
        options = replace(_WHOLE, first_failure=False)
        answer = worker.conclude(self._tree, self._context, target, options, outcomes, ignore, started)
        failing = list(dict.fromkeys(failure.test for failure in answer.verdict.failures))
        with os.fdopen(writing, "w") as answer_pipe:
            answer_pipe.write(json.dumps((timed, failing)))

    def _list_launched(self, outcome: Outcome) -> list[str]:
        from porter.verdict.suite import results

        launched = results.get_record(outcome.test.rpartition(".")[2]).kernels
        return [name for name in launched if self._context.owner(name) in self._context.kernels]


def _import(context: Context) -> dict[str, TestCase]:
    from porter.verdict.suite import runner

    return {runner.name_test(test): test for test in runner.find_tests(runner.import_tests(context))}


class NoEngineError(Exception):
    """No gradient is computed where tests are imported. It is none of the errors by which the CPU refuses a call."""


@contextmanager
def without_engine() -> Iterator[None]:
    """Autograd's engine, once it has run, refuses to run in forks: what asks for it here is made where it is tested.

    What a child process asks for is computed there.
    """
    import torch

    process, differentiate = os.getpid(), torch.autograd.grad

    def refuse(*args: Any, **more: Any) -> Any:
        if os.getpid() == process:
            raise NoEngineError
        return differentiate(*args, **more)

    with patch.object(torch.autograd, "grad", refuse):
        yield


def _fails(outcomes: Iterable[Outcome]) -> bool:
    return any(outcome.status == "failed" for outcome in outcomes)


def died(end: End) -> Answer:
    return ErrorAnswer("ended", f"{end.step}: {end.how}")
