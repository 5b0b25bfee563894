"""Faults of a fork that a port does not touch: a verdict says them, and fails for none of them unless it is strict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from porter.core.errors import PorterError
from porter.verdict.result import Failure, ForkFinding, Verdict

STEP = "fork"


def finding_of_error(error: PorterError) -> ForkFinding:
    """The finding that an error of the fork's own code is."""
    return ForkFinding(f"{error.code} {error.what}", str(error.place or ""))


def add_findings(verdict: Verdict, findings: Iterable[ForkFinding]) -> Verdict:
    """The verdict with more findings about the fork, each once."""
    return replace(verdict, fork_findings=tuple(dict.fromkeys((*verdict.fork_findings, *findings))))


def place_findings(verdict: Verdict, place: str) -> Verdict:
    """The verdict whose findings that name no place are at this one."""
    findings = (replace(finding, place=finding.place or place) for finding in verdict.fork_findings)
    return replace(verdict, fork_findings=tuple(dict.fromkeys(findings)))


def fail_for_findings(verdict: Verdict) -> Verdict:
    """A strict verdict: each fault of the fork that it found is a failure."""
    return add_failures(verdict, [Failure(STEP, each.what, place=each.place) for each in verdict.fork_findings])


def add_failures(verdict: Verdict, failures: Sequence[Failure]) -> Verdict:
    """The verdict with more tests that failed."""
    return replace(verdict, failed=verdict.failed + len(failures), failures=(*verdict.failures, *failures))
