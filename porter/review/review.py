"""A review as a value: what is printed at the end, whatever prints it."""

from __future__ import annotations

from dataclasses import dataclass

from porter.review.finding import Finding
from porter.review.operators import TouchedOperator


@dataclass(frozen=True)
class Review:
    """What a review says: what it compared with, the files that differ, operators, findings, and what stayed unread."""

    origin: str
    files: tuple[str, ...]
    operators: tuple[TouchedOperator, ...]
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not any(finding.is_error for finding in self.findings)
