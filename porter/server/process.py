"""A forked process that computes one answer, and the answer for a process that died."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import secrets
import signal
import stat
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

from porter.core.errors import PorterError
from porter.core.progress import Progress, ignore
from porter.verdict.errors import raising_porter_errors
from porter.verdict.messages import Answer, ErrorAnswer, StepStarted, answer_of_error, decode_line, encode_line

Act = Callable[[Progress], Answer]
# Makes the answer from the step it died in, how it ended, and the seconds it ran.
AnswerOfEnd = Callable[[str, str, float], Answer]


class Process:
    """A forked process that computes one answer. If it dies, `answer_of_end` makes the answer."""

    def __init__(self, act: Act, answer_of_end: AnswerOfEnd) -> None:
        self._answer_of_end = answer_of_end
        self._started = time.monotonic()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the result)
        self._mark = secrets.token_hex(16).encode()
        reader, writer = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            os.close(reader)
            _work(act, writer, self._log.fileno(), self._mark)
        os.close(writer)
        self._lines = os.fdopen(reader, "rb")

    def result(self, progress: Progress = ignore) -> Answer:
        """Waits for the answer. If the process died, the last step it started names the failure."""
        step, answer = "worker", None
        with self._lines:
            for line in self._lines:
                if not line.endswith(b"\n"):
                    break  # it died while writing
                _, mark, text = line.rpartition(self._mark)
                if not mark:
                    continue  # host code wrote to a descriptor that is not its own
                message = decode_line(text)
                if isinstance(message, StepStarted):
                    step = message.step
                    progress(step)
                else:
                    answer = message
        _, status = os.waitpid(self._process, 0)
        with self._log:
            self._log.seek(0)
            log = self._log.read().decode(errors="replace")
        if answer is not None:
            return answer
        end = describe_exit(os.waitstatus_to_exitcode(status), log)
        return self._answer_of_end(step, end, time.monotonic() - self._started)


def act_here(act: Act, progress: Progress) -> Answer:
    """Computes the answer in this process; an error is also an answer."""
    try:
        with raising_porter_errors():
            return act(progress)
    except PorterError as error:
        return answer_of_error(error)
    except Exception as error:
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


def _work(act: Act, writer: int, log: int, mark: bytes) -> NoReturn:
    """Runs in the child: sends steps, then the answer, and exits. Each line starts with the mark."""
    os.dup2(log, 1)
    os.dup2(log, 2)
    _disconnect({0, 1, 2, writer, log})
    with contextlib.suppress(BaseException), os.fdopen(writer, "wb") as out:
        faulthandler.enable()

        def send_step(step: str) -> None:
            out.write(mark + encode_line(StepStarted(step)))
            out.flush()

        out.write(mark + encode_line(act_here(act, send_step)))
    os._exit(0)


def _disconnect(keep: set[int]) -> None:
    """Leads every socket and pipe that was inherited nowhere: the client's connection, and those of other workers.

    They stay open as numbers, so that none is taken for a file opened later.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for handle in sorted(int(each.name) for each in os.scandir("/dev/fd")):
        with contextlib.suppress(OSError):  # that of the listing itself is closed already
            mode = os.fstat(handle).st_mode
            if handle not in keep and (stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)):
                os.dup2(nowhere, handle)
    os.close(nowhere)
