"""Runs a fork's native Metal operators, host code and kernels, over OpInfo tests, and prints what passes.

    python tools/natives.py FORK [OP ...] [-k EXPR] [--tests FILE] [--sanitize CHECKS] [--seconds N] [--save FILE]
        [--unreached] [--earlier FILE]...

One line an operator: tests passed, failed and skipped by the fork's own lists, kernel calls, and the first failure.
Each runs in a process of its own. Without operators: every base name with a row whose host code launches a kernel.
With `--tests` a test file of the fork's own runs instead, as it is: test/test_mps.py, say, for what has no OpInfo.
With `--sanitize`, or $PORTER_SANITIZE, the sanitizer watches every kernel (docs/sanitizer.md); each finding is then
printed after the operators, once: its code, line, kernels, and what was found.
With `--unreached` every kernel follows that no test called, by file; `--earlier` names what other runs saved, whose
kernels count as called.
Operators that such tests need together are one OP, with commas between. Ends with 1 where a test fails, or an operator
has none.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from ctypes import Array, c_char
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import TYPE_CHECKING

import aten_overlay
from aten_overlay.metal.sanitizer.checks import VARIABLE, parse, select
from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import find_served
from porter.core import cache
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import KERNELS
from porter.server import worker
from porter.verdict.backends import host
from porter.verdict.build.libraries import build
from porter.verdict.build.tree import materialise
from porter.verdict.errors import NoKernelNamed, NotNative, raising_porter_errors
from porter.verdict.native import native_target, runs_kernels
from porter.verdict.result import HOST, VerifyTarget
from shared.arguments import fork_parser
from shared.isolation import run_isolated
from shared.test_files import import_tests
from shared.watched import collect

if TYPE_CHECKING:
    from porter.verdict.suite.runner import Outcome

UPSTREAM = "test_output_match or test_output_grad_match"
SECONDS = 300.0
DEATHS = 3


@dataclass(frozen=True)
class Task:
    """An operator, or several with commas between; the tests to run (as pytest's -k); their file, if not porter's."""

    checkout: Checkout
    base: str
    expr: str | None
    file: Path | None


@dataclass(frozen=True)
class Line:
    """What the tests of one operator found: `failures` are names of tests with their reasons, `kernels` what ran.

    `wrong` is all that failing tests say, findings of the sanitizer in it.
    """

    op: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    calls: int = 0
    first: str = ""
    failures: tuple[tuple[str, str], ...] = ()
    kernels: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\t".join(map(str, (self.op, self.passed, self.failed, self.skipped, self.calls, self.first)))


def find_launching_operators(checkout: Checkout) -> tuple[str, ...]:
    """The base names of the operators whose host code launches a Metal kernel, with or without a graph."""
    entries = NativeFunctions.read(checkout).all
    return tuple(dict.fromkeys(entry.base for entry in entries if runs_kernels(checkout, find_served(checkout, entry))))


def main() -> int:
    parser = fork_parser(__doc__)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("-k", dest="expr", help=f"as in pytest; without --tests {UPSTREAM}")
    parser.add_argument("--tests", type=Path, help="a test file, relative to the fork")
    parser.add_argument("--sanitize", metavar="CHECKS", help="names with commas between, all or none")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="the time that one operator may take")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--unreached", action="store_true", help="print the kernels that nothing called")
    parser.add_argument("--earlier", type=Path, action="append", default=[], help="what --save of another run wrote")
    options = parser.parse_intermixed_args()
    if options.sanitize is not None:
        os.environ[VARIABLE] = ",".join(parse(options.sanitize))
    checkout = Checkout(options.fork.resolve(), "named")
    aten_overlay.start_as_mac(checkout.root)
    worker.preload(HOST)
    expr = options.expr or (None if options.tests else UPSTREAM)
    found = []
    for base in options.ops or find_launching_operators(checkout):
        found.append(_line(Task(checkout, base, expr, options.tests), options.seconds))
        print(found[-1], flush=True)
    for finding in collect(each for line in found for each in line.wrong):
        print(finding)
    held = _list_kernels(checkout)
    print(_summary(held, found), file=sys.stderr)
    if options.unreached:
        print(*_list_unreached(held, {k for line in found for k in line.kernels}, options.earlier), sep="\n")
    if options.save:
        options.save.write_text(json.dumps([asdict(line) for line in found], indent=1))
    return int(not found or any(line.failed or not line.passed + line.skipped for line in found))


def _list_kernels(checkout: Checkout) -> dict[str, str]:
    """Every native kernel of the fork, with its file's name."""
    from aten_overlay.metal.build import Options, host_names

    files = [checkout.root / path for path in checkout.list(KERNELS, ".metal")]
    return {name: file.name for file in files for name in host_names(file, Options(include=(checkout.root,)))}


def _list_unreached(held: Mapping[str, str], called: Set[str], earlier: Sequence[Path]) -> Iterator[str]:
    """A line for each file with kernels that nothing called."""
    before = {kernel for path in earlier for line in json.loads(path.read_text()) for kernel in line["kernels"]}
    left: dict[str, list[str]] = {}
    for name, file in held.items():
        if name not in called | before:
            left.setdefault(file, []).append(name)
    for file, names in sorted(left.items()):
        yield f"not called\t{file}\t{len(names)}\t{', '.join(sorted(names))}"


def _summary(held: Mapping[str, str], found: Sequence[Line]) -> str:
    called = held.keys() & {name for line in found for name in line.kernels}
    clean = sum(not line.failed and bool(line.passed) for line in found)
    totals = {name: sum(getattr(line, name) for line in found) for name in ("passed", "failed", "skipped", "calls")}
    text = f"{len(found)} operators, {clean} without a failure: {totals}; {len(called)} of {len(held)} kernels ran"
    if not (checks := select()):
        return text
    faulty = {name for finding in collect(each for line in found for each in line.wrong) for name in finding.kernels}
    return f"{text}, watched for {', '.join(checks)}: findings in {len(faulty)}, none in {len(called - faulty)}"


def _line(task: Task, seconds: float) -> Line:
    """The operator's line. A test that its process dies in, or does not end, fails; the others run again without it."""
    doing = RawArray(c_char, 256)
    deadly: list[str] = []
    while True:
        chosen = " and ".join((*([f"({task.expr})"] if task.expr else []), *(f"not {test}" for test in deadly)))
        [line] = run_isolated(partial(_tested, replace(task, expr=chosen), doing), None, seconds)
        if line or len(deadly) == DEATHS:
            break
        deadly.append(doing.value.decode())
    died = tuple((test, "the process died, or did not end") for test in deadly)
    line = line or Line(task.base)
    failures = (*died, *line.failures)
    return replace(line, failed=line.failed + len(died), first=_first(failures) or line.first, failures=failures)


def _first(failures: Sequence[tuple[str, str]]) -> str:
    return f"{failures[0][0]}: {failures[0][1][:200]}" if failures else ""


def _tested(task: Task, doing: Array[c_char]) -> Iterator[Line]:
    from aten_overlay.device import shader
    from porter.verdict.suite import counters

    try:
        with raising_porter_errors():
            outcomes = _outcomes(task, doing)
    except PorterError as error:
        yield Line(task.base, failed=1, failures=(("build", f"{error.code} {' '.join(error.what.split())[:600]}"),))
        return
    status = Counter(outcome.status for outcome in outcomes)
    kernels = counters.read().kernels + shader.calls  # those that tests launch themselves too
    yield Line(
        task.base,
        passed=status["passed"] + status["xpassed"],
        failed=status["failed"],
        skipped=status["skipped"] + status["xfailed"],
        calls=sum(kernels.values()),
        first="" if outcomes else "no test is selected",
        failures=tuple((o.test, " ".join(o.reason.split())[:600]) for o in outcomes if o.status == "failed"),
        kernels=tuple(sorted(kernels)),
        wrong=tuple(text for o in outcomes for text in (o.reason, *(finding.what for finding in o.findings))),
    )


def _outcomes(task: Task, doing: Array[c_char]) -> list[Outcome]:
    from porter.verdict.suite import runner

    def report_test(test: str) -> None:
        doing.value = test.encode()

    report_test("build")
    targets = [_target(task.checkout, base) for base in task.base.split(",")]
    tree = materialise(task.checkout.root, {}, cache.root())
    context = worker.make_context(tree, targets[0], host.select_opinfos(targets[0].base))
    built = build(tree, targets, host.recipe(tree.root), cache.root())
    prefixes = [f"{kernel}_" for each in targets for kernel in each.kernels]
    host.load(built.library, tree.root, prefixes, "default", False, sanitize=select())
    if task.file:
        return runner.run_tests(
            runner.find_tests([import_tests(task.checkout.root / task.file)], task.expr), report_test
        )
    return runner.run(context, task.expr, report_test)


def _target(checkout: Checkout, base: str) -> VerifyTarget:
    """What is known of an operator; its rows alone, if its host code launches kernels through others'."""
    try:
        return native_target(checkout, base, beside_graphs=True)
    except (NoKernelNamed, NotNative):
        return VerifyTarget(base, as_is=True)


if __name__ == "__main__":
    sys.exit(main())
