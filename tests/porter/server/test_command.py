"""A command that runs in a child of another process has everything as in its own."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from porter.core.errors import PorterError
from porter.core.progress import ignore
from porter.server import command
from porter.verdict import client
from tests.conftest import ROOT, Run
from tests.hostile import fill_with_traps, list_sprung
from tests.porter.server import told_command

SERVER = """
import sys
from pathlib import Path
from porter.server import command, server
server.serve(Path(sys.argv[1]), "none-0", handle=command.handle)
"""
CLIENT = """
import signal, socket, sys
from porter.core.progress import ignore
from porter.server import command
from porter.verdict import client
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has its programs ignore it
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
client.connect = lambda *_: link
sys.exit(command.run_elsewhere("tests.porter.server.told_command", sys.argv[2:], ignore))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a server that holds nothing."""
    path = tmp_path_factory.mktemp("server") / "socket"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", SERVER, str(path)], cwd=ROOT, env=environment) as process:
        while not path.exists():
            assert process.poll() is None
            time.sleep(0.01)
        yield path
        process.kill()


def run(
    server: Path, *arguments: str, folder: Path = ROOT, stdin: int = subprocess.DEVNULL, **environment: str
) -> subprocess.Popen[str]:
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", CLIENT, str(server), *arguments],
        cwd=folder, env=variables, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_command_has_what_its_caller_has(server: Path, tmp_path: Path) -> None:
    """Words, folder, environment, mask, limits, and files; and no module of the folder is imported."""
    fill_with_traps(tmp_path)
    before = os.umask(0o027), resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1][1]))
    try:
        with run(server, "returns", "\udcff", folder=tmp_path, stdin=subprocess.PIPE, TOLD="as it is") as process:
            out, error = process.communicate("on stdin")
    finally:
        os.umask(before[0])
        resource.setrlimit(resource.RLIMIT_CORE, before[1])
    assert process.returncode == 3, error
    arguments, folder, environment, umask, limit, stdin, path = json.loads(out)
    assert (arguments, folder, umask, limit, stdin) == (["returns", "\udcff"], str(tmp_path), 0o027, 0, "on stdin")
    assert environment["TOLD"] == "as it is"
    assert str(tmp_path) not in path and list_sprung(tmp_path) == []


@pytest.mark.parametrize(("ending", "code"), [("exits", 0), ("raises", 1), ("dies", -signal.SIGKILL)])
def test_a_command_ends_as_in_its_own_process(server: Path, ending: str, code: int) -> None:
    with run(server, ending) as process:
        _, error = process.communicate()
    assert process.returncode == code, error
    assert ("ValueError: raises" in error) is (ending == "raises")


def test_an_interrupted_command_ends_as_it_sees_fit(server: Path) -> None:
    with run(server, "waits") as process:
        assert process.stdout and process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, error = process.communicate()
    assert process.returncode == 130, (out, error)


@pytest.mark.parametrize("why", ["no server", "a file of this process alone", "it answers nothing"])
def test_what_cannot_run_elsewhere_runs_here(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(client, "connect", lambda *_: ours)
    monkeypatch.setattr(sys, "warnoptions", [])
    monkeypatch.setattr(sys, "_xoptions", {})
    monkeypatch.delenv(client.NO_SERVER, raising=False)
    if why == "no server":
        monkeypatch.setenv(client.NO_SERVER, "1")
    theirs.close()
    with ours:
        words = ("/dev/fd/63",) if "file" in why else ("x",)
        assert command.run_elsewhere(told_command.__name__, words, ignore) is None
        assert (ours.fileno() >= 0) is (why != "it answers nothing")


def test_a_process_that_has_the_device_starts_no_server(on_device: Run) -> None:
    code = """
from porter.core.progress import ignore
from porter.server import command
from porter.verdict import client
client.connect = None
assert command.run_elsewhere("porter.__main__", ["kernel", "list"], ignore) is None
"""
    done = on_device(code)
    assert done.returncode == 0, done.stderr


def test_a_command_that_was_started_is_not_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(b".")
        theirs.shutdown(socket.SHUT_WR)
        with ours, pytest.raises(PorterError, match="PTR170 the process that runs the command has ended"):
            command._exchange(ours, told_command.__name__, ())


def test_what_a_start_settles_has_a_server_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def names() -> tuple[Any, ...]:
        return client.fingerprint(client.COMMANDS), client.fingerprint("host")

    commands, host = names()
    monkeypatch.setenv("COLUMNS", "17")
    assert names() == (commands, host)
    monkeypatch.setenv("PYTHONHASHSEED", "17")
    assert names()[0] != commands and names()[1] == host
