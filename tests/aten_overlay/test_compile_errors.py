"""What is told of a failed compilation."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aten_overlay.compile_errors import SHOWN, describe_errors


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path_factory.getbasetemp() / "logs"))


def test_one_error_is_its_text() -> None:
    assert describe_errors([("a.mm:1", "no member"), ("a.mm:1", "no member")], "log") == "no member"


@given(st.lists(st.integers(0, 9), min_size=2, unique=True), st.text())
def test_errors_are_counted_and_the_log_is_kept(lines: list[int], log: str) -> None:
    first, *told, kept = describe_errors([(f"a.mm:{n}", f"wrong {n}") for n in lines], log).split("\n")
    plural = "s" if len(lines) > 2 else ""
    assert first == f"wrong {lines[0]} (and {len(lines) - 1} more error{plural})"
    assert told == [f"a.mm:{n}: wrong {n}" for n in lines[1:SHOWN]]
    assert Path(kept.removeprefix("the whole log: ")).read_bytes().decode() == log
