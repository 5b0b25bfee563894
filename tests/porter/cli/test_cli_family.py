"""`--family`, `--metal` and `--macos`, which commands that compile kernels share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aten_overlay.metal.family import VARIABLE
from aten_overlay.metal.language import VARIABLE as LANGUAGE
from porter.cli import main
from porter.verdict.limits import SENT, select


@pytest.mark.parametrize("words", [("kernel", "check", "no.py"), ("verify", "atan2")])
def test_an_unknown_family_is_refused_before_anything_runs(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "apple7")
    assert main([*words, "--family", "apple6"]) != 0
    assert "PTR277 there is no GPU family named `apple6`" in capsys.readouterr().err
    assert os.environ[VARIABLE] == "apple7"


def test_the_option_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "apple7")
    main(["kernel", "check", str(tmp_path / "no.py"), "--family", "apple9"])
    assert os.environ[VARIABLE] == "apple9"


def test_a_verdict_is_asked_for_with_its_family() -> None:
    assert select(SENT, {VARIABLE: "apple8"}) == {VARIABLE: "apple8"}


@pytest.mark.parametrize("words", [("--metal", "3.1", "--macos", "26"), ("--macos", "26", "--metal", "3.1")])
def test_a_release_and_a_version_are_taken_together(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(LANGUAGE, "3.2")
    main(["kernel", "check", str(tmp_path / "no.py"), *words])
    assert os.environ[LANGUAGE] == "3.1"
