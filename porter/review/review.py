"""A review as a value: what is printed at the end, whatever prints it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from porter.review.finding import Finding
from porter.review.operators import TouchedOperator


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
