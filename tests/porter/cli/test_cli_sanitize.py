"""`--sanitize`, which commands that run kernels share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aten_overlay import LARGE
from aten_overlay.metal.sanitizer.checks import VARIABLE
from porter.cli import main


@pytest.mark.parametrize("words", [("kernel", "check", "no.py"), ("kernel", "trace", "no.py"), ("verify", "atan2")])
def test_an_unknown_check_is_refused_before_anything_runs(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "none")
    assert main([*words, "--sanitize", "speed"]) != 0
    assert "PTR260 the sanitizer has no check named `speed`" in capsys.readouterr().err
    assert os.environ[VARIABLE] == "none"


def test_the_option_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "races")
    main(["kernel", "check", str(tmp_path / "no.py"), "--sanitize", "bounds"])
    assert os.environ[VARIABLE] == "bounds"


@pytest.mark.parametrize(
    ("words", "checks"),
    [((), "bounds,overflow"), (("--sanitize", "races"), "races"), (("--sanitize", "none"), "none")],
)
def test_large_tensors_are_watched_unless_a_choice_is_made(
    words: tuple[str, ...], checks: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in (LARGE, VARIABLE):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for options in (("--large", *words), (*words, "--large")):
        assert main(["run", *options, str(tmp_path / "no.py")]) != 0
        assert (os.environ[LARGE], os.environ[VARIABLE]) == ("1", checks)
        monkeypatch.delenv(VARIABLE)
