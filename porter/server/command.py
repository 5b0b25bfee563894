"""Runs a command in a child of a process that holds torch and the device, as if it ran where it was called.

The child has the caller's files, folder, environment and limits. What only the start of a process settles (variables
that torch and Python read then, namespaces, priority) names the server, so that each such setting has a server of its
own. `$PORTER_NO_SERVER` keeps commands in the process that they are called in.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from porter.core import codec
from porter.core.errors import PorterError
from porter.core.garbage import collecting_seldom
from porter.core.progress import Progress
from porter.server.ending import adopt_orphans, end_tree, end_with_parent, has_exited
from porter.verdict import client
from porter.verdict.errors import raising_porter_errors

PRELOADED = (
    "porter.cli", "porter.kernels.checking", "porter.kernels.export", "porter.kernels.large", "porter.kernels.timing",
    "porter.report.kernel", "porter.workflows.judging", "porter.workflows.kernel",
    "aten_overlay.lint", "aten_overlay.metal.build",
    "torch._dynamo",  # which the first call of a custom operator imports, and that takes longer than all else
)  # fmt: skip
_LIMITS = tuple(sorted(name for name in dir(resource) if name.startswith("RLIMIT_")))
_STARTED = b"."
_GRACE_SECONDS = 2.0
_LOOK_SECONDS = 0.05
_RESTORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_inside = False  # this process runs a command for another
_set_by_imports: dict[str, str] = {}  # variables that torch sets where nobody has


@dataclass(frozen=True)
class CommandRequest:
    """A module whose `main()` is to be run, and what the process that asks has of its own beside its files."""

    module: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    umask: int
    limits: Mapping[str, tuple[int, int]]
    processors: tuple[int, ...]
    encoding: str
    ignored: tuple[int, ...]


def run_elsewhere(module: str, arguments: Sequence[str], progress: Progress) -> int | None:
    """The exit code of a module's `main()` that a child of the server ran; None where it has to run in this process.

    If a signal ended the child, it ends this process too. Raises PTR170 for a child whose end nobody tells.
    """
    if not _can_share(arguments):
        return None
    try:
        link = client.connect(client.COMMANDS, progress)
    except (PorterError, OSError):
        return None  # this process says what is wrong
    with link:
        code = _exchange(link, module, arguments)
    if code is None:
        return None
    if code < 0:
        with suppress(OSError):  # nobody handles SIGKILL
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _can_share(arguments: Sequence[str]) -> bool:
    """Options of Python's, and files that have but a number in this process, stay with the process.

    So does all of a process that has the device already: a server that it started would have its variables, by which a
    child brings the device up when it looks for torch.
    """
    if _inside or not sys.platform.startswith("linux") or os.environ.get(client.NO_SERVER):
        return False
    device = sys.modules.get("aten_overlay.device.load")
    if device is not None and device.started():
        return False
    return not sys.warnoptions and not sys._xoptions and not any("/fd/" in argument for argument in arguments)


def _exchange(link: socket.socket, module: str, arguments: Sequence[str]) -> int | None:
    """The exit code; None where nothing was started."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            socket.send_fds(link, [b"\0"], [0, 1, 2, folder])
        finally:
            os.close(folder)
        link.sendall(codec.encode(_describe_process(module, arguments), CommandRequest).encode() + b"\n")
    except OSError:  # the server has ended, or a stream of this process is closed
        return None
    line = bytearray()
    try:
        _read_line(link, line)
    except KeyboardInterrupt:
        link.shutdown(socket.SHUT_WR)  # the child is interrupted, and ends as it sees fit
        _read_line(link, line)
    if line.endswith(b"\n"):
        return int(line.removeprefix(_STARTED))
    if line:
        raise PorterError("PTR170", "the process that runs the command has ended without an answer")
    return None


def _read_line(link: socket.socket, line: bytearray) -> None:
    """Adds what comes on a link until the end of a line."""
    with suppress(ConnectionError):
        while not line.endswith(b"\n") and (more := link.recv(64)):
            line += more


def _describe_process(module: str, arguments: Sequence[str]) -> CommandRequest:
    umask = os.umask(0o077)
    os.umask(umask)
    return CommandRequest(
        module,
        tuple(arguments),
        dict(os.environ),
        umask,
        {name: resource.getrlimit(getattr(resource, name)) for name in _LIMITS},
        tuple(sorted(os.sched_getaffinity(0))),
        sys.stdout.encoding,
        tuple(number for number in _RESTORED if signal.getsignal(number) is signal.SIG_IGN),
    )


@collecting_seldom()
def preload() -> None:
    """Starts the device, and imports what commands of kernels need."""
    import aten_overlay

    before = dict(os.environ)
    with raising_porter_errors():
        aten_overlay.start()
    for module in PRELOADED:
        import_module(module)
    _set_by_imports.update({name: value for name, value in os.environ.items() if before.get(name) != value})
    for name in _set_by_imports:  # by its variables a server is found
        del os.environ[name]
    os.environ.update(before)
    gc.collect()
    gc.freeze()


def handle(link: socket.socket) -> None:
    """Runs the command that a client asks for in a child of this process, which ends with the client."""
    try:
        _, files, _, _ = socket.recv_fds(link, 1, 4)
        with link.makefile("rb") as lines:
            line = lines.readline()
        if len(files) != 4 or not line:
            return
        request = codec.decode(line, CommandRequest)
        adopt_orphans()
        parent = os.getpid()
        link.sendall(_STARTED)
        child = os.fork()
        if child == 0:
            _run(request, files, link, parent)
        for file in files:
            os.close(file)
        link.sendall(f"{_wait(child, link)}\n".encode())
    except OSError:
        return  # the client has left


def _wait(child: int, link: socket.socket) -> int:
    """The exit code of the child, or less the signal that ended it. Interrupts it where the client has had enough."""
    link.settimeout(_LOOK_SECONDS)
    end = float("inf")
    while not has_exited(child):
        with suppress(TimeoutError):
            if end == float("inf") and not link.recv(1):
                end = time.monotonic() + _GRACE_SECONDS
                os.killpg(child, signal.SIGINT)
        if time.monotonic() > end:
            end_tree(child)
            break
        if end < float("inf"):
            time.sleep(_LOOK_SECONDS)
    link.settimeout(None)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(request: CommandRequest, files: Sequence[int], link: socket.socket, parent: int) -> NoReturn:
    code: Any = 1
    try:
        os.setsid()
        end_with_parent(parent)
        link.close()
        _become(request, files)
        code = _call(request)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(BaseException):
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(BaseException):
                stream.flush()
        os._exit(code & 0xFF if isinstance(code, int) else 1)


def _call(request: CommandRequest) -> Any:
    sys.argv[:] = [request.module, *request.arguments]
    try:
        return import_module(request.module).main() or 0
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1


def _become(request: CommandRequest, files: Sequence[int]) -> None:
    """Makes this process the caller's, as far as a process can."""
    global _inside
    _inside = True
    os.fchdir(files[3])
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    for file in files:
        os.close(file)
    os.environ.clear()
    os.environ.update({**_set_by_imports, **request.environment})
    os.umask(request.umask)
    for name, (soft, hard) in request.limits.items():
        with suppress(ValueError, OSError):  # a server of lower limits keeps them
            resource.setrlimit(getattr(resource, name), (soft, hard))
    with suppress(OSError):
        os.sched_setaffinity(0, request.processors)
    for number in _RESTORED:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in request.ignored else usual)
    # Others than before, which remember whether what they had can be sought in.
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), request.encoding)
    sys.stdout = _make_writer(1, request.encoding, "strict")
    sys.stderr = _make_writer(2, request.encoding, "backslashreplace")


def _make_writer(number: int, encoding: str, errors: str) -> io.TextIOWrapper:
    raw = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
    return io.TextIOWrapper(raw, encoding, errors, line_buffering=number == 2 or os.isatty(number))
