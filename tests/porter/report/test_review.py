"""What prints a review: people's text, lintrunner's JSON lines, GitHub's annotations, SARIF."""

from __future__ import annotations

import json
from dataclasses import replace

import expecttest

from porter.report.review import review_object, review_text, write_github, write_lintrunner, write_markdown, write_sarif
from porter.review.operators import Touch, TouchedOperator
from porter.review.rule import Finding, Review, Severity

FINDINGS = (
    Finding("k.metal", 3, 14, "double-literal", Severity.WARNING, "`0.5` is double", "Write `0.5f`.", "0.5", "0.5f"),
    Finding("o,1.mm", 0, 0, "size", Severity.ADVICE, "100%\nlarge"),
    Finding("o.mm", 7, 1, "unknown-kernel", Severity.ERROR, "no kernel is named so", "Register it."),
)
REVIEW = Review(
    "commit 1234", ("k.metal", "o.mm"), (TouchedOperator("exp", (Touch.HOST, Touch.KERNEL), moved=True),), FINDINGS
)


class TestFormats(expecttest.TestCase):
    def test_people_read_operators_findings_and_counts(self) -> None:
        self.assertExpectedInline(
            review_text(REVIEW),
            """\
exp: host code, kernel; moved from MPSGraph to Metal

k.metal:3: warning: `0.5` is double [double-literal]
  Write `0.5f`.
o,1.mm: advice: 100%
large [size]
o.mm:7: error: no kernel is named so [unknown-kernel]
  Register it.

2 files, 1 operator since commit 1234: 1 error, 1 warning, 1 advice""",
        )

    def test_github_shows_findings_at_their_lines(self) -> None:
        self.assertExpectedInline(
            write_github(REVIEW),
            """\
::warning file=k.metal,title=porter%3A double-literal,line=3,col=14::`0.5` is double. Write `0.5f`.
::notice file=o%2C1.mm,title=porter%3A size::100%25%0Alarge.
::error file=o.mm,title=porter%3A unknown-kernel,line=7,col=1::no kernel is named so. Register it.""",
        )

    def test_lintrunner_reads_a_finding_a_line(self) -> None:
        self.assertExpectedInline(
            write_lintrunner(REVIEW),
            """\
{"path": "k.metal", "line": 3, "char": 14, "code": "PORTER", "severity": "warning", "name": "double-literal", "original": null, "replacement": null, "description": "`0.5` is double. Write `0.5f`."}
{"path": "o,1.mm", "line": null, "char": null, "code": "PORTER", "severity": "advice", "name": "size", "original": null, "replacement": null, "description": "100%\\nlarge"}
{"path": "o.mm", "line": 7, "char": 1, "code": "PORTER", "severity": "error", "name": "unknown-kernel", "original": null, "replacement": null, "description": "no kernel is named so. Register it."}""",
        )

    def test_a_pull_request_gets_one_comment(self) -> None:
        self.assertExpectedInline(
            write_markdown(REVIEW),
            """\
<!-- porter review -->
### porter review

2 files, 1 operator since commit 1234: 1 error, 1 warning, 1 advice.

| operator | touched by | moved to Metal | verdict |
| --- | --- | --- | --- |
| exp | host code, kernel | yes |  |

| place | severity | finding | rule |
| --- | --- | --- | --- |
| `k.metal:3` | warning | `0.5` is double. Write `0.5f`. | double-literal |
| `o,1.mm` | advice | 100% large. | size |
| `o.mm:7` | error | no kernel is named so. Register it. | unknown-kernel |""",
        )


def test_lintrunner_gets_whole_files_with_all_fixes() -> None:
    """It overwrites a file with a replacement, and takes the first for a file: `lintrunner -a` left `0.5f` alone."""
    text = "a\nb = 1.5; // \u00e9\n  float x = y * 0.5;\n"
    other = Finding("k.metal", 2, 5, "double-literal", Severity.WARNING, "`1.5` is double", "", "1.5", "1.5f")
    review = replace(REVIEW, findings=(*FINDINGS, other), texts={"k.metal": text.replace("y *", "yy*")})
    first, *others = map(json.loads, write_lintrunner(review).splitlines())
    assert first["original"] == review.texts["k.metal"]
    assert first["replacement"] == "a\nb = 1.5f; // \u00e9\n  float x = yy* 0.5;\n"
    assert not any(line["original"] or line["replacement"] for line in others)
    exact = replace(review, texts={"k.metal": "\n\n" + " " * 13 + "0.5;\n"})
    assert json.loads(write_lintrunner(exact).splitlines()[0])["replacement"] == "\n\n" + " " * 13 + "0.5f;\n"


def test_lintrunner_gets_what_its_protocol_has() -> None:
    fields = {"path", "line", "char", "code", "severity", "name", "original", "replacement", "description"}
    assert {frozenset(json.loads(line)) for line in write_lintrunner(REVIEW).splitlines()} == {frozenset(fields)}


def test_a_review_without_findings_prints_no_line_for_programs() -> None:
    nothing = Review("commit 1234", (), (), ())
    assert nothing.ok and not REVIEW.ok
    assert write_lintrunner(nothing) == write_github(nothing) == ""
    assert review_text(nothing) == "0 files since commit 1234: no findings"


def test_sarif_names_every_rule_and_places_each_finding() -> None:
    (run,) = json.loads(write_sarif(REVIEW))["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in run["results"]} <= rules
    assert [r["locations"][0]["physicalLocation"]["region"]["startLine"] for r in run["results"]] == [3, 1, 7]


def test_json_has_the_finding_s_own_names() -> None:
    (first, *_) = review_object(REVIEW)["findings"]
    assert first["severity"] == "warning" and first["rule"] == "double-literal" and first["line"] == 3
