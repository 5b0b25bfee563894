"""A review as a value: what is printed at the end, whatever prints it."""

from __future__ import annotations

from dataclasses import dataclass

from porter.review.finding import Finding
from porter.review.operators import TouchedOperator


@dataclass(frozen=True)
class Review:
    """What a review says: what it compared with, the files that differ, operators and findings.

    `passed` are the operators on which a verdict passed; none where none was asked for.
    """

    origin: str
    files: tuple[str, ...]
    operators: tuple[TouchedOperator, ...]
    findings: tuple[Finding, ...]
    passed: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not any(finding.is_error for finding in self.findings)
