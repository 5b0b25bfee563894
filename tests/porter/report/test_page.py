"""The page of a report: well formed, self-contained, and readable on a phone in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from porter.report.coverage import Coverage, CoverageRow
from porter.report.page import page_html
from porter.report.results import FAIL, NOT_PLANNED, PASS, VERSION, OperatorResult, Provenance, Results
from porter.verdict.result import DTypeVerdict
from tests.porter.report.test_results import MADE_BY, VERDICT

BROWSERS = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "chrome")
PHONE = 400  # pixels
VOID = {"meta", "rect", "br"}
RESULTS = Results(
    VERSION, MADE_BY, "fork <b>", "d", "",
    (
        OperatorResult("erf", "UnaryOps", FAIL, "PTR331", "1 < 2 & more", ("erf.out",), verdict=VERDICT),
        OperatorResult("atan2", "BinaryOps", PASS, rows=("atan2.out",), verdict=VERDICT),
        OperatorResult("where", "TensorCompare", NOT_PLANNED, "PTR018", "types differ"),
        OperatorResult("argmax", "ReduceOps", PASS, verdict=VERDICT),
    ),
    "2026-11-29",
)  # fmt: skip
COVERAGE = Coverage(
    "fork",
    "d",
    MADE_BY,
    (
        CoverageRow("erf.out", "erf", "UnaryOps", FAIL, "PTR331", "a reason " * 60),
        CoverageRow("atan2.out", "atan2", "BinaryOps", PASS, "", ""),
        CoverageRow("where.self", "where", "TensorCompare", NOT_PLANNED, "PTR018", "x" * 300),
        CoverageRow("exp.out", "exp", "UnaryOps", "native", "", ""),
        CoverageRow("asin.out", "asin", "UnaryOps", "no verdict", "PTR330", "no result names it"),
    ),
    (
        CoverageRow("argmax.out", "argmax", "ReduceOps", PASS, "", ""),
        CoverageRow("mm.out", "mm", "Blas", "library call", "", ""),
    ),
)
HTML = page_html(RESULTS, COVERAGE)


class Reader(HTMLParser):
    """Pairs the tags, and collects the text of each."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.places: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.places += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.text += data


def read() -> Reader:
    reader = Reader()
    reader.feed(HTML)
    reader.close()
    return reader


def test_tags_are_paired_and_text_is_escaped() -> None:
    found = read()
    assert found.open == []
    assert "fork <b>" in found.text and "1 < 2 & more" in found.text


def test_what_a_browser_obeys_is_escaped_wherever_it_stands() -> None:
    hostile = "a\x1b[2J\u202eb\u2066"
    verdict = replace(VERDICT, backend=hostile, dtypes=(DTypeVerdict(hostile, max_ulp=1.0),))
    operator = OperatorResult(hostile, hostile, FAIL, hostile, hostile, verdict=verdict)
    row = CoverageRow(hostile, hostile, hostile, hostile, hostile, hostile)
    page = page_html(
        replace(RESULTS, fork=hostile, operators=(operator,)),
        Coverage(hostile, hostile, Provenance(hostile, hostile, hostile), (row,)),
    )
    assert not set(page) & {"\x1b", "\u202e", "\u2066"}
    assert page.count(r"a\x1b[2J\u202eb\u2066") >= 10


def test_nothing_is_fetched() -> None:
    assert read().places == []
    assert not re.search(r"url\(|@import|https?:", HTML)


def test_every_dtype_has_its_counts_paths_and_errors() -> None:
    text = read().text
    for shown in ("float32", "int64", "9/10", "10/10", "1.50 Metal", "0.80 ATen", "1.2", "96 kernel calls"):
        assert shown in text, shown
    assert "float32: values did not match and now do" in text


def test_failures_come_first_and_what_is_left_has_its_reason() -> None:
    assert HTML.index('id="op-erf"') < HTML.index('id="op-atan2"') < HTML.index('id="op-where"')
    left = HTML[HTML.index('id="left"') :]
    assert "where.self" in left and "PTR018" in left and "PTR331" in left and "atan2.out" not in left


def test_only_what_was_run_is_listed_and_ports_from_runs_count() -> None:
    text = read().text
    assert "2 of 4 (50%) rows have a port that passed" in text
    assert "Not run: 1 of the fork's rows that build graphs." in text
    assert "asin" not in text and "ReduceOps" in text


def test_the_page_says_when_where_and_with_what_it_was_made() -> None:
    text = read().text
    assert "Results of 2026-11-29." in text and str(MADE_BY) in text
    assert "hoston Linux, against a stand-in for Metal" in text


def find_browser() -> str | None:
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


@pytest.mark.skipif(find_browser() is None, reason="no browser: install Debian's chromium-headless-shell")
def test_a_browser_shows_all_of_it_within_the_width_of_a_phone(tmp_path: Path) -> None:
    measure = (
        "<script>document.querySelectorAll('details').forEach(each => each.open = true);"
        "document.body.setAttribute('data-width', document.documentElement.scrollWidth + ' of ' + window.innerWidth);"
        "document.body.setAttribute('data-tables', [...document.querySelectorAll('td')]"
        ".filter(each => each.getBoundingClientRect().height > 0).length);"
        "document.body.setAttribute('data-bars', [...document.querySelectorAll('svg.ulp rect')]"
        ".filter(each => each.getBoundingClientRect().width > 0).length);</script></body>"
    )
    page = tmp_path / "page.html"
    page.write_text(HTML.replace("</body>", measure))
    command = [
        str(find_browser()), "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={PHONE},800",
        f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = {name: re.search(rf'data-{name}="([^"]*)"', done.stdout) for name in ("width", "tables", "bars")}
    width, tables, bars = (match[1] if match else done.stderr[-500:] for match in found.values())
    needed, window = map(int, width.split(" of "))
    assert needed <= window <= PHONE + 100, width
    assert int(tables) == HTML.count("<td")
    assert int(bars) == 6, "two of each operator with a verdict"
