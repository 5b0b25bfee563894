"""Runs a fork's own test file with every MPS operator of the fork, and prints what fails.

    python tools/whole_tests.py FORK [-k EXPR] [--tests FILE] [--shard I/N] [--seconds N] [--save FILE]
        [--before FILE]...

The whole fork is built, which takes minutes the first time: its native operators launch their kernels, and what the
others send to MPSGraph is evaluated node by node. One line a test that fails; then the counts. A test that its process
dies in, or that takes more than N seconds, fails.
`--save` writes each result as it comes, one JSON object a line. With `--before`, what it wrote for the fork as it was,
prints the tests that passed then and do not now, and ends with 1 if there are any. One that passed though the file
expects it to fail, and fails now, is as the file has it: these are printed, and are no reason for 1.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import aten_overlay
from porter.core.checkout import Checkout
from porter.core.layout import TEST_MPS
from porter.report.results import parse_shard
from porter.verdict.backends import host
from shared.arguments import fork_parser
from shared.isolation import run_isolated
from shared.test_files import import_tests
from shared.whole_fork import build_whole, load_whole

if TYPE_CHECKING:
    from unittest import TestCase

PASSED = ("passed", "xpassed")
_AS_EXPECTED = ("xpassed", "xfailed")


@dataclass(frozen=True)
class Result:
    """A test with its class, its status as an Outcome's, and the reason for it."""

    test: str
    status: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.test}: {self.status}: {self.reason}"


def main() -> int:
    parser = fork_parser(__doc__)
    parser.add_argument("-k", dest="expr", help="as in pytest")
    parser.add_argument("--tests", type=Path, default=Path(TEST_MPS), help="a test file, relative to the fork")
    parser.add_argument("--shard", type=parse_shard, help="every N-th test, from the I-th")
    parser.add_argument("--seconds", type=float, default=60.0, help="the time that one test may take")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--before", type=Path, action="append", default=[])
    options = parser.parse_args()
    found = []
    with options.save.open("w") if options.save else nullcontext() as saved:
        for each in _run(options):
            found.append(each)
            if each.status == "failed":
                print(each, flush=True)
            if saved:
                print(json.dumps(asdict(each)), file=saved, flush=True)
    counts = Counter(each.status for each in found)
    print(", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "no test is selected")
    before = [Result(**json.loads(line)) for file in options.before for line in file.read_text().splitlines()]
    lost = list_lost(before, found)
    for each in lost:
        print(f"passed before: {each.test}")
    for each in list_as_expected(before, found):
        print(f"fails now, as the file expects: {each.test}")
    return int(bool(lost) or not found)


def list_lost(before: Iterable[Result], after: Iterable[Result]) -> list[Result]:
    """The tests that passed before and do not now. Tests that ran only once are no part of it."""
    held = {each.test: each.status for each in before if each.status in PASSED}
    gone = [each for each in after if each.status not in PASSED and each.test in held]
    return [each for each in gone if (held[each.test], each.status) != _AS_EXPECTED]


def list_as_expected(before: Iterable[Result], after: Iterable[Result]) -> list[Result]:
    """The tests that the file expects to fail, which passed before and fail now."""
    held = {each.test: each.status for each in before}
    return [each for each in after if (held.get(each.test), each.status) == _AS_EXPECTED]


def _run(options: Namespace) -> Iterator[Result]:
    """The results as they come, in the order of the tests."""
    os.environ.setdefault("MTL_DEBUG_LAYER", "0")
    checkout = Checkout(options.fork.resolve(), "named")
    aten_overlay.start_as_mac(checkout.root)
    host.start()
    import torch

    from porter.verdict.suite.runner import find_tests

    torch.set_num_threads(1)  # a pool of threads does not live on in a forked process
    load_whole(build_whole(checkout))
    tests = find_tests([import_tests(checkout.root / options.tests)], options.expr)
    left = list(options.shard.select(tests)) if options.shard else tests
    while left:
        for found in run_isolated(partial(_run_tests, left), None, options.seconds):
            yield found or Result(_name(left[0]), "failed", f"its process died, or took over {options.seconds:g} s")
            left = left[1:]


def _run_tests(tests: Sequence[TestCase]) -> Iterator[Result]:
    from porter.verdict.suite.runner import run_tests

    for test in tests:
        last = run_tests([test])[-1]
        yield Result(_name(test), last.status, " ".join(last.reason.split())[:600])


def _name(test: TestCase) -> str:
    return f"{type(test).__name__}.{test.id().rpartition('.')[2]}"


if __name__ == "__main__":
    sys.exit(main())
