"""The live line: there while something runs, gone before anything else is printed, never in a file."""

from __future__ import annotations

import io
import re

import pytest
from expecttest import assert_expected_inline
from rich.console import Console

from porter.core.progress import Step
from porter.report.console import LiveLine, count


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "70")


def test_a_step_is_shown_with_its_count_and_then_erased() -> None:
    terminal = Terminal()
    line = LiveLine(terminal, no_color=True)
    line.show(Step("erf: build", 3, 40))
    line.hide()
    written = terminal.getvalue()
    assert "erf: build " in written
    assert re.search(r"\d:\d\d:\d\d 3 of 40", written)
    assert written.endswith("\x1b[1A\x1b[2K")


def test_a_line_comes_back_with_the_next_step() -> None:
    terminal = Terminal()
    line = LiveLine(terminal, no_color=True)
    line.show(Step("erf: build", 0, 2))
    line.hide()
    before = len(terminal.getvalue())
    line.show(Step("log1p: build", 1, 2))
    line.hide()
    assert "log1p: build" in terminal.getvalue()[before:]


def test_a_step_that_is_longer_than_the_line_is_cut() -> None:
    terminal = Terminal()
    line = LiveLine(terminal, no_color=True)
    line.show(Step("test_" * 30 + "\x1b[31m"))
    line.hide()
    shown = terminal.getvalue()
    assert "test_test_" in shown and "…" in shown
    assert "test_" * 14 not in shown


def test_a_file_gets_nothing() -> None:
    file = io.StringIO()
    line = LiveLine(file, no_color=True)
    line.show(Step("erf: build", 3, 40))
    line.hide()
    assert file.getvalue() == ""


def test_time_left_is_told_where_it_is_known() -> None:
    told = (count(0, 40, None), count(3, 40, 125.4), count(3, 40, 3725), count(0, None, None))
    assert_expected_inline(
        "\n".join(told),
        """\
0 of 40
3 of 40, 2:05 left
3 of 40, 62:05 left
""",
    )


def test_the_console_is_as_wide_as_the_terminal() -> None:
    from porter.report.console import console

    assert isinstance(console(Terminal(), True), Console)
    assert console(Terminal(), True).width == 70


def test_the_time_is_shown_whole_beside_a_long_step() -> None:
    terminal = Terminal()
    line = LiveLine(terminal, no_color=True)
    line.show(Step("hypot: " + "building " * 12, 3, 40))
    line.hide()
    assert re.search(r"hypot: building .*… +\d:\d\d:\d\d 3 of 40", terminal.getvalue())
