"""`--shuffle`, the seed of the orders in which a GPU runs threadgroups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aten_overlay.cuda.seed import VARIABLE
from porter.cli import main
from porter.verdict.limits import SENT, select


@pytest.mark.parametrize("words", [("kernel", "check", "no.py"), ("verify", "atan2")])
def test_a_seed_is_a_whole_number(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "3")
    for seed in ("often", "-1"):
        assert main([*words, "--shuffle", seed]) != 0
        assert "--shuffle" in capsys.readouterr().err
    assert os.environ[VARIABLE] == "3"


def test_the_option_wins_over_the_variable_and_goes_to_the_verdicts_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, "3")
    main(["kernel", "check", str(tmp_path / "no.py"), "--shuffle", "12"])
    assert select(SENT)[VARIABLE] == "12"
