"""Runs upstream's test template of Inductor on the device: `CommonTemplate` of test/inductor/test_torchinductor.py.

    python tools/inductor_template.py TREE [--every N] [-k NAME] [--seconds N] [--json FILE]

TREE is a PyTorch checkout of any release. Names that its tests import and the installed torch no longer has are
replaced by stand-ins; a test that uses one fails. Prints a table of counts, and each failure with its last line. A test
for a type that MPS lacks does not apply. Exit code 1 if a test failed.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import unittest
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Timer
from unittest import mock

import aten_overlay
from shared.arguments import parser

PASSED, FAILED, SKIPPED, NOT_MPS = "passed", "failed", "skipped", "does not apply"
MODULE, TEMPLATE = "test_torchinductor", "CommonTemplate"
_GONE = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
# What the device says of types that MPS has not.
_LACKING = re.compile(
    r"doesn't support float64|does not have support for that dtype|MPS framework doesn't support|"
    r"Float8|float8|quantized|not supported on MPS|data type is not supported"
)
_SHOWN = 110  # characters of a reason


@dataclass(frozen=True)
class Outcome:
    """What became of a test: one of the four, and why, in a line."""

    test: str
    status: str
    reason: str = ""


def main() -> int:
    options = parser(__doc__)
    options.add_argument("tree", type=Path, metavar="TREE")
    options.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th test")
    options.add_argument("-k", dest="name", default="", help="a regular expression that is found in a test's name")
    options.add_argument("--seconds", type=int, default=300, help="a test that prints nothing for so long has failed")
    options.add_argument("--json", type=Path, metavar="FILE", help="write an object for each test, a line each")
    options.add_argument("--worker", nargs="*", help="run these tests, or list all: for this tool itself")
    arguments = options.parse_args()
    if arguments.worker is not None:
        return _work(arguments.tree, arguments.worker)
    names = [name for name in _list_tests(arguments.tree) if re.search(arguments.name, name)][:: arguments.every]
    outcomes = _run_all(arguments.tree, names, arguments.seconds)
    if arguments.json:
        arguments.json.write_text("".join(json.dumps(asdict(outcome)) + "\n" for outcome in outcomes))
    print("\n".join(describe(outcomes)))
    return int(any(outcome.status == FAILED for outcome in outcomes))


def describe(outcomes: Sequence[Outcome]) -> list[str]:
    """A table of counts, then why tests failed."""
    counts = Counter(outcome.status for outcome in outcomes)
    lines = ["| passed | failed | does not apply | skipped |", "| --- | --- | --- | --- |"]
    lines.append(f"| {' | '.join(str(counts[status]) for status in (PASSED, FAILED, NOT_MPS, SKIPPED))} |")
    failed = [outcome for outcome in outcomes if outcome.status == FAILED]
    if failed:
        lines += ["", "| test | what it says |", "| --- | --- |"]
        lines += [f"| `{outcome.test}` | {outcome.reason.replace('|', '/')} |" for outcome in failed]
    return lines


def judge(test: str, error: str) -> Outcome:
    """The outcome of a test that raised: its last line that says something, or that MPS lacks the type."""
    said = [line.strip() for line in error.splitlines() if line.strip()]
    reason = next((line for line in reversed(said) if re.match(r"[\w.]*(Error|Exception|Unsupported)\b", line)), "")
    status = NOT_MPS if _LACKING.search(reason) else FAILED
    return Outcome(test, status, (reason or said[-1])[:_SHOWN])


def _run_all(tree: Path, names: Sequence[str], seconds: int) -> list[Outcome]:
    """Runs the tests in a process, and in another one from the test on that ended it."""
    outcomes: list[Outcome] = []
    while len(outcomes) < len(names):
        rest = names[len(outcomes) :]
        command = [sys.executable, __file__, str(tree), "--worker", *rest]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        watch = _Watch(process, seconds)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                outcomes.append(Outcome(**json.loads(line)))
                print(f"{len(outcomes)}/{len(names)} {line.strip()}", file=sys.stderr, flush=True)
                watch.restart()
        watch.stop()
        if process.wait() and len(outcomes) < len(names):
            reason = f"took more than {seconds} s" if watch.ended else f"its process ended with {process.returncode}"
            outcomes.append(Outcome(names[len(outcomes)], FAILED, reason))
    return outcomes


class _Watch:
    """Ends a process that says nothing for too long."""

    def __init__(self, process: subprocess.Popen[str], seconds: int) -> None:
        self._process, self._seconds, self.ended = process, seconds, False
        self._timer = Timer(seconds, self._end)
        self._timer.start()

    def restart(self) -> None:
        self._timer.cancel()
        self._timer = Timer(self._seconds, self._end)
        self._timer.start()

    def stop(self) -> None:
        self._timer.cancel()

    def _end(self) -> None:
        self.ended = True
        self._process.kill()


def _list_tests(tree: Path) -> list[str]:
    done = subprocess.run([sys.executable, __file__, str(tree), "--worker"], capture_output=True, text=True, check=True)
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return names


def _work(tree: Path, names: Sequence[str]) -> int:
    aten_overlay.start_as_mac()
    module = _import_tests(tree)
    template = getattr(module, TEMPLATE)
    if not names:
        print(json.dumps(sorted(name for name in dir(template) if name.startswith("test_"))))
        return 0
    members = {name: member for name, member in vars(template).items() if not name.startswith("__")}
    members |= {"common": module.check_model_gpu, "device": "mps", "__module__": __name__}
    case = type("MPSTests", (module.TestCase,), members)
    for name in names:
        outcome = _run_one(case(name), name)
        print(json.dumps(asdict(outcome)), flush=True)
    return 0


def _run_one(case: unittest.TestCase, name: str) -> Outcome:
    result = unittest.TestResult()
    unittest.TestSuite([case]).run(result)
    if result.skipped:
        return Outcome(name, SKIPPED, str(result.skipped[0][1])[:_SHOWN])
    raised = [*result.errors, *result.failures]
    return judge(name, raised[0][1]) if raised else Outcome(name, PASSED)


def _import_tests(tree: Path) -> mock.MagicMock:
    """The module of tests; what it imports and torch no longer has is a stand-in."""
    sys.path[:0] = [str(tree / "test" / "inductor"), str(tree / "test")]
    sys.argv[1:] = []  # the tests' own command line is read when they are imported
    while True:
        try:
            return importlib.import_module(MODULE)  # type: ignore[return-value]
        except ImportError as error:
            gone = _GONE.match(str(error))
            if gone is None:
                raise
            setattr(sys.modules[gone[2]], gone[1], mock.MagicMock(name=gone[1]))


if __name__ == "__main__":
    sys.exit(main())
