"""Findings of a review as text: for people, JSON, lintrunner, GitHub annotations and SARIF."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from porter import __version__
from porter.review.rule import Finding, Severity, apply_fixes, count_severities
from porter.review.rules import RULES

if TYPE_CHECKING:
    from porter.review.rule import Review

LINTER = "PORTER"  # the code of a lintrunner adapter
_PAGE = "docs/review.md"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "notice"}  # GitHub's
_SARIF_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "note"}
_ESCAPED = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_ESCAPED_PROPERTY = {**_ESCAPED, ":": "%3A", ",": "%2C"}


def review_text(review: Review) -> str:
    """The operators and the findings, and at the end how many of each severity there are."""
    return "\n".join(_write_lines(review))


def _write_lines(review: Review) -> Iterator[str]:
    for operator in review.operators:
        how = ", ".join(touch.value for touch in operator.touches)
        passed = "; verdict PASS" if operator.name in review.passed else ""
        yield f"{operator.name}: {how}{'; moved from MPSGraph to Metal' if operator.moved else ''}{passed}"
    if review.operators and review.findings:
        yield ""
    for finding in review.findings:
        yield f"{finding.place}: {finding.severity.value}: {finding.what} [{finding.rule}]"
        if finding.hint:
            yield f"  {finding.hint}"
    if review.findings:
        yield ""
    yield summarize(review)


def summarize(review: Review) -> str:
    """One line: the files, the operators and the findings, against which fork."""
    counts = count_severities(review.findings)
    totals = ", ".join(_count(counts[severity], severity.value) for severity in Severity if counts[severity])
    files = _count(len(review.files), "file")
    operators = f", {_count(len(review.operators), 'operator')}" if review.operators else ""
    return f"{files}{operators} since {review.origin}: {totals or 'no findings'}"


def _count(number: int, word: str) -> str:
    plural = word if number == 1 or word == Severity.ADVICE.value else f"{word}s"
    return f"{number} {plural}"


def review_object(review: Review) -> dict[str, Any]:
    """A review as a JSON object, with the keys of docs/json.md."""
    return {
        "ok": review.ok,
        "since": review.origin,
        "files": list(review.files),
        "operators": [
            {"op": op.name, "touches": [touch.value for touch in op.touches], "moved": op.moved}
            for op in review.operators
        ],
        "passed": list(review.passed),
        "findings": [{**asdict(finding), "severity": finding.severity.value} for finding in review.findings],
    }


def write_lintrunner(review: Review) -> str:
    """A JSON object a line, as lintrunner reads them from an adapter.

    It replaces the whole file by a replacement, and takes one for a file: the first finding has all fixes.
    """
    fixes = {path: fix for path, text in review.texts.items() if (fix := _fix_file(path, text, review))}
    return "\n".join(json.dumps(_write_lint(finding, fixes)) for finding in review.findings)


def _fix_file(path: str, text: str, review: Review) -> tuple[str, str] | None:
    """A file as it is and with its fixes; None if they change nothing, or it is no text that JSON holds."""
    fixed = apply_fixes(text, (finding for finding in review.findings if finding.path == path))
    return (text, fixed) if fixed != text and not any(0xD800 <= ord(letter) < 0xE000 for letter in text) else None


def _write_lint(finding: Finding, fixes: dict[str, tuple[str, str]]) -> Mapping[str, Any]:
    original, replacement = fixes.pop(finding.path, (None, None)) if finding.original else (None, None)
    return {
        "path": finding.path,
        "line": finding.line or None,
        "char": finding.char or None,
        "code": LINTER,
        "severity": finding.severity.value,
        "name": finding.rule,
        "original": original,
        "replacement": replacement,
        "description": f"{finding.what}. {finding.hint}" if finding.hint else finding.what,
    }


def write_github(review: Review) -> str:
    """A workflow command of GitHub Actions a line, which annotates the line of the pull request."""
    return "\n".join(map(_annotate, review.findings))


def _annotate(finding: Finding) -> str:
    properties = {"file": finding.path, "title": f"porter: {finding.rule}"}
    if finding.line:
        properties |= {"line": str(finding.line)}
    if finding.line and finding.char:
        properties |= {"col": str(finding.char)}
    written = ",".join(f"{name}={_escape(value, _ESCAPED_PROPERTY)}" for name, value in properties.items())
    return f"::{_LEVELS[finding.severity]} {written}::{_escape(f'{finding.what}. {finding.hint}'.strip(), _ESCAPED)}"


def _escape(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(letter, letter) for letter in text)


def write_sarif(review: Review) -> str:
    """A log of SARIF 2.1.0, as GitHub's code scanning takes it."""
    rules = [
        {"id": rule.name, "shortDescription": {"text": rule.summary}, "helpUri": f"{_PAGE}#{rule.name}"}
        for rule in RULES
    ]
    run = {"tool": {"driver": {"name": "porter", "version": __version__, "rules": rules}}}
    results = [
        {
            "ruleId": finding.rule,
            "level": _SARIF_LEVELS[finding.severity],
            "message": {"text": f"{finding.what}. {finding.hint}".strip()},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": finding.path},
                        "region": {"startLine": max(finding.line, 1), "startColumn": max(finding.char, 1)},
                    }
                }
            ],
        }
        for finding in review.findings
    ]
    return json.dumps({"version": "2.1.0", "runs": [{**run, "results": results}]}, indent=1)


MARK = "<!-- porter review -->"  # by which a comment is found again
_MOST_SHOWN = 200  # findings: a comment of GitHub has at most 65,536 characters


def write_markdown(review: Review) -> str:
    """A comment of a pull request: operators and findings as tables, and where the verdicts come from."""
    return "\n".join(_write_comment(review))


def _write_comment(review: Review) -> Iterator[str]:
    yield from (MARK, "### porter review", "", f"{summarize(review)}.", "")
    if review.operators:
        yield from ("| operator | touched by | moved to Metal | verdict |", "| --- | --- | --- | --- |")
    for operator in review.operators:
        how = ", ".join(touch.value for touch in operator.touches)
        verdict = "PASS" if operator.name in review.passed else ""
        yield f"| {operator.name} | {how} | {'yes' if operator.moved else ''} | {verdict} |"
    if review.findings:
        yield from ("", "| place | severity | finding | rule |", "| --- | --- | --- | --- |")
    for finding in review.findings[:_MOST_SHOWN]:
        what = f"{finding.what}. {finding.hint}".strip().translate(_IN_CELL)
        yield f"| `{finding.place}` | {finding.severity.value} | {what} | {finding.rule} |"
    if len(review.findings) > _MOST_SHOWN:
        yield from ("", f"{len(review.findings) - _MOST_SHOWN} more are in the log.")
    if review.passed:
        yield from ("", "Verdicts ran on Linux, against a stand-in for Metal: not yet run on Apple hardware.")


_IN_CELL = str.maketrans({"|": "\\|", "\n": " ", "<": "&lt;"})

FORMATS: Mapping[str, Callable[[Review], str]] = {
    "text": review_text, "github": write_github, "lintrunner": write_lintrunner, "markdown": write_markdown,
    "sarif": write_sarif,
}  # fmt: skip
