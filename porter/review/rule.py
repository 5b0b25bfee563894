"""A rule of a review, and its cases: changes of the embedded fork that it reports, and changes that it accepts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.review.change import Change, Remark
from porter.review.finding import Finding, Severity

RULE_SECONDS = 30.0  # of the processor, for all files of a change


@dataclass(frozen=True)
class Case:
    """A change of a fork: new texts of files, and parts of files that are replaced (path, old text, new text).

    `before` has files that the fork has in addition before the change. An empty new text removes a file.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    edits: tuple[tuple[str, str, str], ...] = ()
    before: Mapping[str, str] = field(default_factory=dict)

    def make_change(self, fork: Checkout | None = None) -> Change:
        """The change, in memory. Raises ValueError for a part that the file does not have exactly once."""
        earlier = (fork or Checkout(EMBEDDED_FORK, "a case")).layer(self.before)
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
    for remark in rule.check(change):
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
