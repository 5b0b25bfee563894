"""What comes from a fork cannot steer the terminal."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.text import Text

from porter.cli import main
from porter.cli.output import Output, Settings
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import NATIVE_FUNCTIONS
from porter.report.console import ANY_ENCODING, printable
from porter.report.results import FAIL, OperatorResult, write_json
from porter.workflows.results import no_results

EVIL = "evil \x1b[31m\x07\x9b\u202e"


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
    assert f"checkout: {tmp_path}/fo\\x1b[31mrk (--checkout)" in told.err
    if command == ["status"]:
        assert "evil\\x1b[m" in told.out


@pytest.mark.parametrize("terminal", [False, True])
def test_whatever_is_printed_is_escaped(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    acts: tuple[Callable[[Output], None], ...] = (
        lambda out: out.text(EVIL, lambda: Text(EVIL)),
        lambda out: out.note(EVIL, lambda: Text(EVIL)),
        lambda out: out.note(EVIL),
        lambda out: out.error(PorterError("PTR012", EVIL, Place(EVIL), EVIL), f"porter: {EVIL}"),
    )
    for act in acts:
        stream = Stream(terminal)
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        act(Output(Settings(no_color=True)))
        assert "evil" in stream.getvalue()
        assert not set(stream.getvalue()) & set("\x1b\x07\x9b\u202e")


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_diff_is_exact_for_a_program_and_escaped_on_a_terminal(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    for terminal in (False, True):
        stream = Stream(terminal)
        monkeypatch.setattr(sys, "stdout", stream)
        Output(Settings(no_color=True)).diff(EVIL)
        assert (stream.getvalue() == EVIL) is not terminal
        assert ("\x1b" in stream.getvalue()) is not terminal


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_stream_of_any_encoding_takes_all_text_and_keeps_bytes(encoding: str) -> None:
    data = io.BytesIO()
    with io.TextIOWrapper(data, encoding=encoding, errors=ANY_ENCODING, write_through=True) as stream:
        stream.write("a\u4e2d\ud800\udcff")
        written = data.getvalue()
    shown = "\u4e2d" if encoding == "utf-8" else r"\u4e2d"
    assert written == f"a{shown}\\ud800".encode() + b"\xff"


def test_a_terminal_without_unicode_gets_escapes(tmp_path: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment.pop("PYTHONIOENCODING", None)
    found = no_results(Checkout(EMBEDDED_FORK, "test"))
    left = OperatorResult("\u4e2d", "UnaryOps", FAIL, "PTR331", "\u202e\ud800")
    (tmp_path / "r.json").write_text(write_json(replace(found, operators=(left,))))
    command = [sys.executable, "-P", "-m", "porter", "report", str(tmp_path / "r.json"), "--html", str(tmp_path / "p")]
    done = subprocess.run(
        [*command, "--checkout", str(EMBEDDED_FORK)], env=environment, capture_output=True, check=False
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (1, False)
    assert b"\\u4e2d: FAIL: PTR331 \\u202e\\ud800\n" in done.stdout
    assert "<strong>\u4e2d</strong>" in (tmp_path / "p").read_text()


class Stream(io.StringIO):
    """A stream that is a terminal, or is none."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal
