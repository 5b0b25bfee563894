"""A rule of a review, and its cases: changes of the embedded fork that it reports, and changes that it accepts."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from types import FrameType

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.review.change import Change, Remark
from porter.review.operators import TouchedOperator

RULE_SECONDS = 30.0  # of the processor, for all files of a change


@dataclass(frozen=True)
class Case:
    """A change of a fork: new texts of files, and parts of files that are replaced (path, old text, new text).

    `before` has files that the fork has in addition before the change. An empty new text removes a file.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    edits: tuple[tuple[str, str, str], ...] = ()
    before: Mapping[str, str] = field(default_factory=dict)

    def make_change(self) -> Change:
        """The change, in memory. Raises ValueError for a part that the file does not have exactly once."""
        earlier = Checkout(EMBEDDED_FORK, "a case").layer(self.before)
        texts = dict(self.files)
        for path, old, new in self.edits:
            text = texts.get(path) or earlier.read(path)
            if text.count(old) != 1:
                raise ValueError(f"{path} has {old!r} {text.count(old)} times")
            texts[path] = text.replace(old, new)
        return Change.between(earlier, earlier.layer(texts), texts)


@dataclass(frozen=True)
class Rule:
    """A check of a change. `name` is stable; `summary` says in one sentence what is reported, for lists of rules.

    `bad` are changes that it reports, `good` those that it accepts.
    """

    name: str
    severity: Severity
    summary: str
    check: Callable[[Change], Iterator[Remark]]
    bad: tuple[Case, ...] = ()
    good: tuple[Case, ...] = ()


def rule(
    severity: Severity, summary: str, bad: tuple[Case, ...], good: tuple[Case, ...]
) -> Callable[[Callable[[Change], Iterator[Remark]]], Rule]:
    """Makes a rule of a check, named as the function is: `fast_math` is the rule `fast-math`."""
    return lambda check: Rule(check.__name__.replace("_", "-"), severity, summary, check, bad, good)


def run_rules(rules: Iterable[Rule], change: Change, seconds: float = RULE_SECONDS) -> tuple[Finding, ...]:
    """What rules find in a change, by place, each once. Raises what reading the change raises, and PTR177 for a change
    that a rule has no end on: it takes longer, or is nested deeper than Python goes.
    """
    findings: set[Finding] = set()
    for rule in rules:
        hint = "Look for lines of many thousand characters, or for brackets and operators nested as deep."
        slow = PorterError("PTR177", f"the rule {rule.name} takes longer than {seconds:g} s on this change", hint=hint)
        try:
            with within(seconds, slow):
                findings |= set(_run_rule(rule, change))
        except (RecursionError, MemoryError) as error:
            what = f"the rule {rule.name} meets code in this change that is nested too deeply"
            raise PorterError("PTR177", what, hint=hint) from error
    return tuple(sorted(findings, key=lambda finding: (finding.path, finding.line, finding.char, finding.rule)))


def _run_rule(rule: Rule, change: Change) -> Iterator[Finding]:
    """What a rule finds. On a line that the change leaves as it is, what it found before the change is none."""
    added = {file.path: file.added for file in change.files}
    remarks = list(rule.check(change))
    old = {r for r in remarks if r.line and r.path in added and r.line not in added[r.path]}
    earlier = {(r.path, r.what) for r in rule.check(change.start_over())} if old else set()
    for remark in remarks:
        if remark in old and (remark.path, remark.what) in earlier:
            continue
        yield Finding(
            remark.path, remark.line, remark.char, rule.name, rule.severity,
            remark.what, remark.hint, remark.original, remark.replacement,
        )  # fmt: skip


def edit_case(*edits: tuple[str, str, str]) -> Case:
    """A change that replaces parts of files: path, old text, new text."""
    return Case(edits=edits)


def metal_case(text: str, name: str = "Planted") -> Case:
    """A change that adds a kernel file with this text."""
    return Case({f"aten/src/ATen/native/mps/kernels/{name}.metal": _METAL_HEAD + text})


def host_case(text: str, kernels: str = "") -> Case:
    """A change that adds a host file of operators, with a file of kernels, if any."""
    metal = {"aten/src/ATen/native/mps/kernels/Planted.metal": _METAL_HEAD + kernels} if kernels else {}
    return Case({"aten/src/ATen/native/mps/operations/Planted.mm": text, **metal})


_METAL_HEAD = """#include <c10/metal/indexing.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>
using namespace metal;
"""


@contextmanager
def within(seconds: float, error: PorterError) -> Iterator[None]:
    """Raises an error once the block has taken so long; a regular expression that goes back and forth stops for it too.

    A machine that is busy with other work counts for nothing. In a thread of a server there is no bound: signals are
    the main thread's.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise error

    before = signal.signal(signal.SIGPROF, stop)
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class Severity(Enum):
    """How grave a finding is, in the words of lintrunner. Only an error fails a review."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


@dataclass(frozen=True)
class Finding:
    """What `rule` says of `path`, at `line` and column `char` (both count from 1; 0: the whole file or line).

    `what` is wrong, `hint` says what to do. Where there is a fix, `replacement` stands for `original`, the text from
    `char` on; both are empty otherwise.
    """

    path: str
    line: int
    char: int
    rule: str
    severity: Severity
    what: str
    hint: str = ""
    original: str = ""
    replacement: str = ""

    @property
    def place(self) -> str:
        """`path:line`, or the path alone."""
        return f"{self.path}:{self.line}" if self.line else self.path

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR


def apply_fixes(text: str, findings: Iterable[Finding]) -> str:
    """The text of a file with the fix of each of its findings that has one."""
    lines = text.splitlines(keepends=True)
    fixes = {(finding.line, finding.char): finding for finding in findings if finding.original}
    for (number, column), finding in sorted(fixes.items(), reverse=True):
        line = lines[number - 1]
        before, after = line[: column - 1], line[column - 1 :]
        if after.startswith(finding.original):
            lines[number - 1] = f"{before}{finding.replacement}{after.removeprefix(finding.original)}"
    return "".join(lines)


def count_severities(findings: Iterable[Finding]) -> dict[Severity, int]:
    """The number of findings of each severity, the gravest first; zeros too."""
    counts = Counter(finding.severity for finding in findings)
    return {severity: counts[severity] for severity in Severity}


# A review as a value: what is printed at the end, whatever prints it.


@dataclass(frozen=True)
class Review:
    """What a review says: what it compared with, the files that differ, operators and findings.

    `passed` are the operators on which a verdict passed; none where none was asked for. `texts` are the files with
    findings, as they are.
    """

    origin: str
    files: tuple[str, ...]
    operators: tuple[TouchedOperator, ...]
    findings: tuple[Finding, ...]
    passed: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not any(finding.is_error for finding in self.findings)
