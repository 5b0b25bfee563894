"""A folder that cannot be written to: a coded error, no traceback, nothing changed, and afterwards all works again."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from porter.cli.app import main
from porter.core import cache
from porter.core.checkout import EMBEDDED_FORK
from porter.core.errors import PorterError, coded
from porter.server import server, worker
from porter.verdict.messages import ErrorAnswer, PrepareRequest

Refuse = Callable[..., None]


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EMBEDDED_FORK, tmp_path / "fork"))


@pytest.fixture
def refuse() -> Iterator[Refuse]:
    """The system refuses every write below a folder, also to a superuser, until it is given None."""
    patches = pytest.MonkeyPatch()

    def install(folder: Path | None, number: int = errno.EROFS) -> None:
        patches.undo()
        if folder is None:
            return
        for name in ("open", "mkdir", "rename", "replace", "unlink", "rmdir", "chmod"):
            patches.setattr(os, name, refusing(name, getattr(os, name), folder, number))

    def refusing(name: str, real: Callable[..., Any], folder: Path, number: int) -> Callable[..., Any]:
        def call(path: Any, *rest: Any, dir_fd: int | None = None, **kwargs: Any) -> Any:
            writes = name != "open" or bool(rest and rest[0] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR))
            within = Path(f"/proc/self/fd/{dir_fd}").readlink() / path if dir_fd is not None else Path(path)
            if writes and within.is_relative_to(folder):
                raise OSError(number, os.strerror(number), str(path))
            return real(path, *rest, **(kwargs if dir_fd is None else {**kwargs, "dir_fd": dir_fd}))

        return call

    yield install
    patches.undo()


def run(fork: Path, *command: str) -> int:
    return main([*command, "--checkout", str(fork)])


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
@pytest.mark.parametrize("which", ["fork", "state"])
def test_a_write_is_refused_with_a_code_and_every_command_works_before_and_after(
    which: str, number: int, fork: Path, own_state: Path, refuse: Refuse, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse({"fork": fork, "state": own_state}[which], number)
    assert run(fork, "migrate", "atan2", "--no-verify", "--unverified", "--write") == 2
    told = capsys.readouterr().err
    assert "PTR060" in told or "PTR180" in told
    assert run(fork, "status", "atan2") == 0
    assert run(fork, "migrate", "atan2", "--no-verify") == 0
    assert run(fork, "undo") == 2
    refuse(None)
    assert run(fork, "migrate", "atan2", "--no-verify", "--unverified", "--write") == 0
    assert run(fork, "undo") == 0
    assert "Traceback" not in capsys.readouterr().err


def test_a_read_only_cache_gives_no_verdict_and_says_why(
    fork: Path, tmp_path: Path, refuse: Refuse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    refuse(tmp_path / "cache")
    assert run(fork, "verify", "copysign") == 2
    assert "PTR182 the system refused: Read-only file system" in capsys.readouterr().err
    assert run(fork, "explain", "atan2") == 0


def test_a_disk_that_fills_up_under_a_worker_is_an_error_with_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def filling(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/cache/a.so")

    monkeypatch.setattr(worker, "prepare", filling)
    found = server.answer(PrepareRequest(Path("/"), "host"))
    assert isinstance(found, ErrorAnswer)
    assert (found.code, found.what) == ("PTR182", "the system refused: No space left on device")
    assert found.place is not None and found.place.file == "/cache/a.so"


def test_only_what_a_system_refuses_is_coded() -> None:
    assert coded(FileNotFoundError(errno.ENOENT, "no such file", "a")) is None
    assert isinstance(coded(PermissionError(errno.EACCES, "Permission denied", "a")), PorterError)


def test_a_cache_that_is_writable_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    cache.require_writable()
    assert list((tmp_path / "cache").iterdir()) == []
