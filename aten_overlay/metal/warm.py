"""Compilers that are loaded already: a process of clang's forks for each command (see warm.cpp).

To load LLVM takes 20 ms, four times for each kernel. Where a compiler cannot be kept (it is a static program, or the
system lacks what this takes), commands run as they do anywhere.
"""

from __future__ import annotations

import atexit
import io
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_SOCKET, _PRELOADED = "PM_WARM_SOCKET", "LD_PRELOAD"
# What changes often, and no compiler reads.
_IGNORED = ("PORTER_", "PYTEST_", "PYTHON")
_LIMITS = tuple(sorted(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")))
_MOST_BYTES = 1 << 17  # as in warm.cpp
_STARTING = 20.0  # seconds


@dataclass
class WarmCompiler:
    """Runs commands of one compiler in forks of a process that has loaded it.

    `library` is what warm.cpp compiles to, if it does. The process takes environment, limits and process group from who
    starts it: in others, another one is started. It ends when nobody is left that could ask it.
    """

    library: Callable[[], Path | None]
    _commands: int = 0
    _state: object = None
    _socket: socket.socket | None = field(default=None, repr=False)

    def run(self, command: Sequence[str], text: str | None) -> subprocess.CompletedProcess[str] | None:
        """What `subprocess.run` returns of a command, with `text` as its input; None if it has to run elsewhere."""
        self._commands += 1
        is_alone = self._commands == 1  # which is not worth a process
        if is_alone or sys.platform != "linux" or _PRELOADED in os.environ:
            return None
        state = _read_state(command[0])
        if self._state != state:
            self._state, self._socket = state, self._start(command[0])
        if self._socket is None:
            return None
        try:
            return _ask(self._socket, command, text)
        except OSError:
            self._state = None  # it has ended: the next command starts another one
            return None

    def _start(self, compiler: str) -> socket.socket | None:
        library = self.library()
        if library is None:
            return None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            more = {_PRELOADED: str(library), "LD_BIND_NOW": "1", _SOCKET: str(number)}
            subprocess.run(
                [compiler, "--version"], env={**os.environ, **more}, pass_fds=[number], check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        ours.settimeout(_STARTING)
        try:
            is_ready = len(ours.recv(1)) == 1
        except OSError:
            is_ready = False
        ours.settimeout(None)
        atexit.register(ours.close)
        return ours if is_ready else None


def _read_state(compiler: str) -> object:
    """All that a process takes from who starts it, and that commands depend on."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_IGNORED)}
    return compiler, environment, [resource.getrlimit(limit) for limit in _LIMITS], os.getpgrp()


def _ask(asked: socket.socket, command: Sequence[str], text: str | None) -> subprocess.CompletedProcess[str] | None:
    message = b"".join(os.fsencode(word) + b"\0" for word in command)
    if len(message) > _MOST_BYTES:
        return None
    status_end, answer_end = os.pipe()
    opened = [os.memfd_create(name) for name in ("input", "output", "errors")]
    try:
        source, output, errors = opened
        if text is not None:
            with open(source, "w", errors="surrogateescape", closefd=False) as file:
                file.write(text)
            os.lseek(source, 0, os.SEEK_SET)
        opened.append(os.open(".", os.O_PATH))
        try:
            socket.send_fds(asked, [message], [*opened, answer_end])
        finally:
            os.close(answer_end)
        status = os.read(status_end, 4)  # when this ends early, the command is killed
        if len(status) != 4:
            return None
        code = os.waitstatus_to_exitcode(int.from_bytes(status, "little"))
        return subprocess.CompletedProcess(list(command), code, _read(output), _read(errors))
    finally:
        for descriptor in (status_end, *opened):
            os.close(descriptor)


def _read(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, "rb", closefd=False) as file:
        return io.TextIOWrapper(io.BytesIO(file.read()), errors="surrogateescape").read()
