"""What a review finds: one type for static rules, compiled code and verdicts, whatever prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from porter.review.operators import TouchedOperator


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
