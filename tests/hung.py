"""Ends tests that hang, prints their stacks at the end of the run, and runs them once more in another process.

A run of hours that somebody ends says nothing of the test that did not. Here a worker of pytest-xdist that is in one
test for too long writes where its threads stand, and ends. The test fails if that happens again, and so does every test
whose worker ends in another way.
"""

from __future__ import annotations

import faulthandler
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_FOLDER, _SECONDS = "PORTER_HUNG", "PORTER_HUNG_SECONDS"
_OUTCOME = "rerun"
# The longest test takes two minutes where its processors are shared; a run has 90.
_LIMIT = 900.0


class Watch:
    """In a worker: ends it where a test hangs."""

    def __init__(self, folder: Path) -> None:
        self._place = (folder / str(os.getpid())).open("w")

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._place.seek(0)
        self._place.truncate()
        self._place.write(f"{item.nodeid}\n")
        self._place.flush()
        seconds = float(os.environ.get(_SECONDS, _LIMIT))
        faulthandler.dump_traceback_later(seconds, file=self._place, exit=True)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()


class Report:
    """In the process that starts workers: runs a test that hung once more, and tells where it stood."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hung: dict[str, str] = {}  # by test

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any, sched: Any) -> None:
        for path in self._folder.iterdir():
            test, _, place = path.read_text(errors="replace").partition("\n")
            if test == crashitem and place and test not in self._hung:
                self._hung[test] = place
                report.outcome = _OUTCOME
                sched.mark_test_pending(crashitem)

    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        return (_OUTCOME, "R", "HUNG") if report.outcome == _OUTCOME else None

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for test, place in self._hung.items():
            terminalreporter.section(f"{test} hung, and was run once more")
            terminalreporter.write(place)


def watch(config: pytest.Config) -> None:
    """Watches the tests of a run that has workers."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Watch(Path(os.environ[_FOLDER])))
    elif getattr(config.option, "numprocesses", None):
        os.environ[_FOLDER] = tempfile.mkdtemp(prefix="porter-hung-")
        config.pluginmanager.register(Report(Path(os.environ[_FOLDER])))
