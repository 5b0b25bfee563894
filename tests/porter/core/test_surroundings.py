"""Surroundings that no command can work in are coded errors: no home, no cache folder, long names, a full disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from aten_overlay import cache as overlay_cache
from aten_overlay.errors import OverlayError, refuse_full_disk
from porter.cli import main
from porter.core import cache
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.journal import home_of, locked
from porter.core.private import find_home, state_root

FORK = ("--checkout", str(EMBEDDED_FORK))


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whom the system does not know."""
    for name in ("HOME", "PORTER_CACHE", "PORTER_STATE", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)


@pytest.mark.usefixtures("homeless")
def test_without_a_home_folder_commands_say_what_to_set(capsys: pytest.CaptureFixture[str]) -> None:
    for use in (find_home, cache.root, state_root):
        with pytest.raises(PorterError) as caught:
            use()
        assert caught.value.code == "PTR183"
    with pytest.raises(OverlayError, match="no home folder"):
        overlay_cache.root()
    assert main(["status", *FORK]) == 2
    assert "PTR183 this user has no home folder" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["/proc/nothing", "/dev/null", "/dev/null/below", "FILE", "LONG"])
def test_a_cache_that_is_no_folder_is_refused_before_a_verdict(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    named = {"FILE": str(tmp_path / "file"), "LONG": str(tmp_path / ("n" * 300))}.get(folder, folder)
    monkeypatch.setenv("PORTER_CACHE", named)
    with pytest.raises(PorterError) as caught:
        cache.require_writable()
    assert caught.value.code == "PTR182"
    assert main(["verify", "atan2", *FORK]) == 2
    assert "PTR182" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["n" * 250, "\u00e4" * 127, "n" * 60])
def test_a_checkout_of_any_name_has_a_journal_of_its_own(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORTER_STATE", str(tmp_path / "state"))
    root = tmp_path / name
    root.mkdir()
    with locked(Checkout(root, "a test")):
        assert (home_of(root) / "lock").is_file()
    assert home_of(root) != home_of(tmp_path / f"{name[:-1]}x")
    assert home_of(root).name.startswith(name[:60])


def test_a_checkout_of_a_long_name_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(EMBEDDED_FORK, tmp_path / ("n" * 255))
    assert main(["status", "atan2", "--checkout", str(tmp_path / ("n" * 255))]) == 0
    assert "atan2" in capsys.readouterr().out


@pytest.mark.parametrize(
    "said",
    [
        "LLVM ERROR: IO failure on output stream: No space left on device\nPLEASE submit a bug report\nStack dump:",
        "fatal error: error in backend: IO failure on output stream: No space left on device",
        "error: unable to open output file 'a.o': 'No space left on device'\n1 error generated.",
        "/usr/bin/ld: final link failed: No space left on device",
        "error: unable to open output file 'a.o': 'Disk quota exceeded'",
    ],
)
def test_a_compiler_on_a_full_disk_is_no_failure_of_its_source(said: str) -> None:
    with pytest.raises(OverlayError) as caught:
        refuse_full_disk(said)
    assert caught.value.code == "PTR182" and "while a compiler wrote" in caught.value.what


def test_a_source_that_speaks_of_a_full_disk_is_a_source() -> None:
    refuse_full_disk('a.mm:1:2: error: "No space left on device"\n#error "No space"\n1 error generated.')
