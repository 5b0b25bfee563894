"""A forked process that computes one answer, and the answer for one that died or took too long."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import secrets
import selectors
import signal
import socket
import stat
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from porter.core.errors import PorterError, coded
from porter.core.progress import Progress, ignore
from porter.server.ending import catches, end_tree, end_with_parent, has_exited
from porter.verdict.errors import raising_porter_errors
from porter.verdict.limits import PRINT_KERNEL, Limits, out_of_time
from porter.verdict.messages import Answer, ErrorAnswer, StepStarted, answer_of_error, decode_line, encode_line

_PROC = Path("/proc")
# Fields of `stat` behind the name; the last two are of children that have ended.
_STATE, _USER, _SYSTEM, _ENDED_USER, _ENDED_SYSTEM = 0, 11, 12, 13, 14
# So many times its limit has passed on the clock when a process is ended that has had less of a processor.
PATIENCE = 4.0


@dataclass(frozen=True)
class Turn:
    """A step of a process, from its start on."""

    process: int
    started: float = field(default_factory=time.monotonic)
    had: float = 0.0  # seconds of a processor, before

    @classmethod
    def begin(cls, process: int) -> Turn:
        """The step that a process begins now."""
        return cls(process, had=_read_seconds(process))

    def seconds_left(self, limit: float) -> float:
        """The seconds of a limit that are left: of the clock, and of a processor for one that computes and waits."""
        passed = time.monotonic() - self.started
        if passed < limit or passed >= PATIENCE * limit or not _is_running(self.process):
            return limit - passed
        return limit - (_read_seconds(self.process) - self.had)


def _read_seconds(process: int) -> float:
    """The seconds of a processor that a process has had, in all of its threads, with its children that have ended and
    with those that have not: a compiler works for the test that waits for it.
    """
    ticks = 0
    for member in _list_family(process):
        fields = _read_stat(_PROC / str(member) / "stat")
        ticks += sum(int(fields[at]) for at in (_USER, _SYSTEM, _ENDED_USER, _ENDED_SYSTEM)) if fields else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def _is_running(process: int) -> bool:
    """Whether a thread of a process, or of a child of it, has a processor, or waits for one alone."""
    threads = (path for member in _list_family(process) for path in (_PROC / str(member) / "task").glob("*/stat"))
    return any(fields and fields[_STATE] == "R" for fields in map(_read_stat, threads))


def _list_family(process: int) -> list[int]:
    """A process and its children, their children, and so on; the process alone where the system does not tell."""
    family = [process]
    for member in family:
        for path in (_PROC / str(member) / "task").glob("*/children"):
            with suppress(OSError):  # the thread has ended
                family += map(int, path.read_text().split())
    return family


def _read_stat(path: Path) -> list[str]:
    """The fields behind the name; none of what has ended."""
    try:
        return path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


# How often a process is looked at whose end no closed pipe tells, since a child of its own holds the pipe open.
LOOK_SECONDS = 0.25
# How long a process has to do what takes no time: to exit once it has closed its pipe, to print its kernel.
_GRACE_SECONDS = 2.0


@dataclass(frozen=True)
class End:
    """How a process ended without an answer: in which step, how, after how many seconds, and whether it had no more."""

    step: str
    how: str
    seconds: float
    out_of_time: bool = False


Act = Callable[[Progress], Answer]
AnswerOfEnd = Callable[[End], Answer]


class Process:
    """A forked process that computes one answer. If it dies or takes too long, `answer_of_end` makes the answer.

    It leads its own session, so that everything it started can be ended with it.
    """

    def __init__(self, act: Act, answer_of_end: AnswerOfEnd, limits: Limits | None = None) -> None:
        self.answer: Answer | None = None
        self._answer_of_end = answer_of_end
        self._limits = limits or Limits()
        self._step = "worker"
        self._started = time.monotonic()
        self._rest = b""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self._mark = secrets.token_hex(16).encode()
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        parent = os.getpid()
        self._code: int | None = None
        self._process = os.fork()
        if self._process == 0:
            os.close(self._reader)
            _work(act, writer, self._log.fileno(), self._mark, parent)
        self._turn = Turn.begin(self._process)
        os.close(writer)

    def fileno(self) -> int:
        """The pipe that it writes to."""
        return self._reader

    def read(self, progress: Progress) -> None:
        """Takes in what it wrote. The step that it started last names the failure of one that ends unanswered."""
        try:
            while self.answer is None and (data := os.read(self._reader, 1 << 16)):
                *lines, self._rest = (self._rest + data).split(b"\n")
                for line in lines:
                    self._hear(line, progress)
        except BlockingIOError:
            return
        if self.answer is None:
            # Of a process that closed its pipe, which one does that ends.
            end = time.monotonic() + _GRACE_SECONDS
            while self._poll() is None and time.monotonic() < end:
                time.sleep(0.002)
            self._answer_for(self._reap())

    def look(self, progress: Progress) -> None:
        """Notices that it has ended, or its time."""
        if self.answer is None and self.seconds_left() <= 0:
            seconds = time.monotonic() - self._started
            failure = out_of_time(self._step, self._limits, seconds, self._running_kernel())
            self.answer = self._answer_of_end(End(self._step, failure.reason, seconds, out_of_time=True))
        if self.answer is None and (code := self._poll()) is not None:
            self.read(progress)  # what it wrote last
            self._answer_for(code)

    def seconds_left(self) -> float:
        """How long it may go on with its step."""
        of_step = self._turn.seconds_left(self._limits.of_step(self._step))
        return min(of_step, self._started + self._limits.verdict - time.monotonic())

    def close(self) -> None:
        """Ends it, with all that it started."""
        self._reap()
        if not self._log.closed:
            os.close(self._reader)
            self._log.close()

    def _hear(self, line: bytes, progress: Progress) -> None:
        _, mark, text = line.rpartition(self._mark)
        if not mark:
            return  # host code wrote to a descriptor that is not its own
        message = decode_line(text)
        if isinstance(message, StepStarted):
            self._step, self._turn = message.step, Turn.begin(self._process)
            progress(message.step)
        else:
            self.answer = message

    def _answer_for(self, code: int) -> None:
        if self.answer is None:
            seconds = time.monotonic() - self._started
            self.answer = self._answer_of_end(End(self._step, describe_exit(code, self._read_log()), seconds))

    def _running_kernel(self) -> str:
        if not catches(self._process, PRINT_KERNEL):
            return ""
        before = len(self._read_log())
        os.kill(self._process, PRINT_KERNEL)
        end = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < end and self._poll() is None:
            said = self._read_log()[before:]
            if said.endswith("running\n"):
                return said.splitlines()[-1]
            time.sleep(0.02)
        return ""

    def _poll(self) -> int | None:
        """How it exited, if it has."""
        return self._reap() if self._code is not None or has_exited(self._process) else None

    def _reap(self) -> int:
        """Ends it with all that it started, once: from then on its number may be another process's."""
        if self._code is None:
            end_tree(self._process)
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        return self._code

    def _read_log(self) -> str:
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace")


def wait(processes: Sequence[Process], progress: Progress = ignore, link: socket.socket | None = None) -> list[Answer]:
    """Waits for the answers and returns them in order. Reports all steps to `progress`. Ends every process.

    Raises ConnectionAbortedError when the client at the other end of `link` leaves.
    """
    try:
        with selectors.DefaultSelector() as selector:
            for process in processes:
                selector.register(process, selectors.EVENT_READ)
            if link is not None:
                selector.register(link, selectors.EVENT_READ)
            while left := [process for process in processes if process.answer is None]:
                _step(selector, left, progress)
                for process in left:
                    if process.answer is not None:
                        selector.unregister(process)
        return [process.answer for process in processes if process.answer is not None]
    finally:
        for process in processes:
            process.close()


def _step(selector: selectors.BaseSelector, left: Sequence[Process], progress: Progress) -> None:
    soonest = min(process.seconds_left() for process in left)
    for key, _ in selector.select(max(0.0, min(LOOK_SECONDS, soonest))):
        if isinstance(key.fileobj, socket.socket):
            if not key.fileobj.recv(1 << 12):
                raise ConnectionAbortedError("the client left")
        elif isinstance(key.fileobj, Process):
            key.fileobj.read(progress)
    for process in left:
        process.look(progress)


def act_here(act: Act, progress: Progress) -> Answer:
    """Computes the answer in this process; an error is also an answer."""
    try:
        with raising_porter_errors():
            return act(progress)
    except PorterError as error:
        return answer_of_error(error)
    except Exception as error:
        if isinstance(error, OSError) and (refused := coded(error)) is not None:
            return answer_of_error(refused)
        what = f"internal error: {type(error).__name__}: {error}\n{traceback.format_exc()}"
        return ErrorAnswer("PTR170", what)


def describe_exit(code: int, log: str) -> str:
    """How a process ended, with the end of its log, or the start if a signal killed it."""
    if code >= 0:
        return f"the process exited with code {code}\n{log[-1500:]}"
    name = signal.Signals(-code).name
    hint = (
        " (a device pointer was used on the host, or a kernel wrote out of bounds)" if code == -signal.SIGSEGV else ""
    )
    return f"the process was killed by {name}{hint}\n{log[:1500]}"


def _work(act: Act, writer: int, log: int, mark: bytes, parent: int) -> NoReturn:
    """Runs in the child: sends steps, then the answer, and exits. Each line starts with the mark."""
    os.setsid()
    end_with_parent(parent)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # Redirects inherited sockets and pipes to /dev/null: the client's connection, and those of other workers. They
    # stay open as numbers, so that none is taken for a file opened later.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for handle in sorted(int(each.name) for each in os.scandir("/dev/fd")):
        with contextlib.suppress(OSError):  # that of the listing itself is closed already
            mode = os.fstat(handle).st_mode
            if handle not in {0, 1, 2, writer, log} and (stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)):
                os.dup2(nowhere, handle)
    os.close(nowhere)
    with contextlib.suppress(BaseException), os.fdopen(writer, "wb") as out:
        faulthandler.enable()

        def send_step(step: str) -> None:
            out.write(mark + encode_line(StepStarted(step)))
            out.flush()

        out.write(mark + encode_line(act_here(act, send_step)))
    os._exit(0)
