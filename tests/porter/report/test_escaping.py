"""What comes from a fork cannot steer the terminal."""

from __future__ import annotations

import shutil
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from porter.cli import main
from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import NATIVE_FUNCTIONS
from porter.report.escaping import printable


@given(st.text())
@example("\x1b[31m\x9b\u202e\udcff")
def test_no_control_character_is_left(text: str) -> None:
    assert not {unicodedata.category(c) for c in printable(text)} & {"Cc", "Cf", "Cs"}


@given(st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs"))))
def test_text_without_control_characters_stays(text: str) -> None:
    assert printable(text) == text


@given(st.text(st.sampled_from("a\n\t\x1b")))
def test_what_is_kept_stays(text: str) -> None:
    assert printable(text, keep="\n\t") == text.replace("\x1b", "\\x1b")


@pytest.mark.parametrize("command", [["status"], ["explain", "--no-record", "evil\x1b[31m"], ["migrate", "\x1b[2J"]])
def test_names_of_a_fork_are_escaped(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fork = tmp_path / "fo\x1b[31mrk"
    shutil.copytree(EMBEDDED_FORK, fork)
    with (fork / NATIVE_FUNCTIONS).open("a") as yaml:
        yaml.write(
            '\n- func: "evil.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"\n  dispatch:\n    MPS: "evil\\e[m"\n'
        )
    main(["--checkout", str(fork), *command])
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
    assert "checkout: fo\\x1b[31mrk (--checkout)" in told.err
    if command == ["status"]:
        assert "evil\\x1b[m" in told.out
