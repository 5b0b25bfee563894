"""Runs a fork's native Metal operators, host code and kernels, over OpInfo tests, and prints what passes.

    python benchmarks/natives.py FORK [OP ...] [-k EXPR] [--seconds N] [--save FILE]

One line an operator: tests passed, failed and skipped by the fork's own lists, kernel calls, and the first failure.
Each runs in a process of its own. Without operators: every base name with a row whose host code launches a kernel.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from ctypes import Array, c_char
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing.sharedctypes import RawArray
from pathlib import Path

from apart import apart

from porter.checkout import Checkout
from porter.errors import PorterError
from porter.native import launching, native_target
from porter.overlay import rooms, work
from porter.overlay.tree import cache, materialise
from porter.overlay.verdict import HOST

UPSTREAM = "test_output_match or test_output_grad_match"
SECONDS = 300.0
DEATHS = 3


@dataclass(frozen=True)
class Line:
    """What the tests of one operator found: `failures` are names of tests with their reasons, `kernels` what ran."""

    op: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    calls: int = 0
    first: str = ""
    failures: tuple[tuple[str, str], ...] = ()
    kernels: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\t".join(map(str, (self.op, self.passed, self.failed, self.skipped, self.calls, self.first)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fork", type=Path)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("-k", dest="expr", default=UPSTREAM)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    checkout = Checkout(options.fork.resolve(), "named")
    work.warm(HOST)
    found = []
    for base in options.ops or launching(checkout):
        found.append(_line(checkout, base, options.expr, options.seconds))
        print(found[-1], flush=True)
    totals = {name: sum(getattr(line, name) for line in found) for name in ("passed", "failed", "skipped", "calls")}
    clean = sum(not line.failed and bool(line.passed) for line in found)
    print(f"{len(found)} operators, {clean} without a failure: {totals}", file=sys.stderr)
    if options.save:
        options.save.write_text(json.dumps([asdict(line) for line in found], indent=1))
    return 0


def _line(checkout: Checkout, base: str, expr: str, seconds: float) -> Line:
    """The operator's line. A test that its process dies in, or does not end, fails; the others run again without it."""
    doing = RawArray(c_char, 256)
    deadly: list[str] = []
    while True:
        chosen = " and ".join((f"({expr})", *(f"not {test}" for test in deadly)))
        [found] = apart(partial(_tested, checkout, base, chosen, doing), None, seconds)
        if found or len(deadly) == DEATHS:
            break
        deadly.append(doing.value.decode())
    line = found or Line(base, first="no end of it")
    if not deadly:
        return line
    died = tuple((test, "the process died, or did not end") for test in deadly)
    first = f"{deadly[0]}: {died[0][1]}"
    return replace(line, failed=line.failed + len(deadly), first=first, failures=(*died, *line.failures))


def _tested(checkout: Checkout, base: str, expr: str, doing: Array[c_char]) -> Iterator[Line]:
    from aten_overlay.test import results, runner

    def tell(test: str) -> None:
        doing.value = test.encode()

    tell("build")
    try:
        target = native_target(checkout, base, beside_graphs=True)
        tree = materialise(checkout.root, {}, cache())
        subject = work.context(tree, target, rooms.selected(HOST, base))
        rooms.take(HOST, tree, target, "default", False)
        outcomes = runner.run(subject, expr, tell)
    except PorterError as error:
        yield Line(base, failed=1, first=f"{error.code} {' '.join(error.what.split())[:300]}")
        return
    status = Counter(outcome.status for outcome in outcomes)
    failures = tuple((o.test, " ".join(o.reason.split())[:600]) for o in outcomes if o.status == "failed")
    kernels = Counter[str]()
    for record in results.records.values():
        kernels.update(record.kernels)
    yield Line(
        base,
        passed=status["passed"] + status["xpassed"],
        failed=status["failed"],
        skipped=status["skipped"] + status["xfailed"],
        calls=sum(kernels.values()),
        first=f"{failures[0][0]}: {failures[0][1][:200]}" if failures else "" if outcomes else "no test is selected",
        failures=failures,
        kernels=tuple(sorted(kernels)),
    )


if __name__ == "__main__":
    sys.exit(main())
