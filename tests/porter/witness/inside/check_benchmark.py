"""The script that times operators runs to its end on the stand-in, and says that this is no GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from porter.witness import benchmark


def test_each_row_is_timed_or_says_why_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = [{"operator": "exp", "arguments": ["tensor"]}, {"operator": "no_such", "arguments": ["tensor"]}]
    for name, value in (("CALLS", calls), ("DTYPES", ("float32",)), ("SIZE", 8), ("SECONDS", 1e-4)):
        monkeypatch.setattr(benchmark, name, value)
    monkeypatch.chdir(tmp_path)
    assert benchmark.main(["--label", "new"]) == 0
    result = json.loads(Path("bench-new.json").read_text())
    assert "not a GPU" in result["machine"]
    timed = [bool(row["seconds"]) for row in result["rows"]]
    assert timed == [True] * 4 + [False] * 4 and "no_such" in result["rows"][-1]["error"]
