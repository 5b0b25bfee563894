"""The short form of the kill harness, and that it finds what it looks for."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

import kill_writes
from tests.conftest import ROOT, Run
from tests.tools.broken_writes import BROKEN


@pytest.fixture
def run_harness(python: Run, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the harness with a writer of that name, and returns what it tells."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(Path(ROOT, "tools")))))

    def run(name: str, kills: int, seed: int) -> Any:
        done = python("-m", "tests.tools.broken_writes", name, str(kills), str(seed))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_a_write_that_is_ended_or_fails_anywhere_leaves_all_or_nothing(run_harness: Any) -> None:
    result = run_harness("as it should be", 250, 0)
    assert result["wrong"] == []
    assert result["kills"] == 250 and result["failures"] > 50
    outcomes = {"nothing to do", "finished", "rolled back", "edited: nothing to do", "edited: PTR059"}
    assert set(result["outcomes"]) == outcomes


def test_no_change_leaves_a_file_empty() -> None:
    """A change set deletes such a file: the tree after it is another."""
    subjects = [kill_writes.make_subject(random.Random(seed)) for seed in range(300)]
    assert all(data or data == each.before.get(name) for each in subjects for name, data in each.after.items())


@pytest.mark.parametrize("name", BROKEN)
def test_the_harness_finds_a_journal_that_is_broken(run_harness: Any, name: str) -> None:
    assert run_harness(name, 400, 10)["wrong"]
