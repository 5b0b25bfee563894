"""Proves a plan in a process of its own: what it calls may crash, and one fork is all that it loads."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from porter.core.codec import decode, encode
from porter.core.progress import Progress
from porter.core.python import own_module
from porter.verdict.errors import NoVerdict
from porter.verdict.limits import out_of_time, read_limits
from porter.verdict.result import DEFAULT, HOST, Failure, Verdict

_ANSWER = "answer.json"
_LOG = 1500  # characters of what a process that broke has said last


def run_proof(module: str, request: str, op: str, progress: Progress, arithmetic: str = DEFAULT) -> Verdict:
    """The verdict that the `main` of a module leaves: its arguments are a folder for the answer, and a request.

    Raises PTR170 if the process breaks, and PTR176 for a limit that is none.
    """
    limits = read_limits(os.environ)
    start = time.monotonic()
    step = "starting"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        program = own_module(module, folder, request)
        process = subprocess.Popen(
            program.command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True,
            cwd=program.folder, env=program.environment,
        )  # fmt: skip
        timer = threading.Timer(limits.verdict, process.kill)
        timer.start()
        assert process.stdout is not None
        try:
            for line in process.stdout:
                step = line.strip()
                progress(step)
            code = process.wait()
        finally:
            timer.cancel()
            process.kill()
            process.wait()
        answer = Path(folder) / _ANSWER
        if answer.is_file():
            found: Verdict = decode(answer.read_bytes(), Verdict)
            return found
        log.seek(0)
        said = log.read().decode(errors="replace").strip()[-_LOG:]
    seconds = time.monotonic() - start
    if seconds >= limits.verdict:
        return _failed(op, arithmetic, out_of_time(step, limits, seconds), seconds)
    if code >= 0:
        raise NoVerdict("PTR170", f"the process that verifies exited with code {code}\n{said}")
    what = (
        f"the process was killed by {signal.Signals(-code).name}: host code or a kernel used memory that is not its own"
    )
    return _failed(op, arithmetic, Failure(step, what), seconds)


def _failed(op: str, arithmetic: str, failure: Failure, seconds: float) -> Verdict:
    return Verdict(op, HOST, arithmetic, 0, 1, 0, 0, None, seconds, failures=(failure,))


def answer(folder: Path, verdict: Verdict) -> None:
    """Leaves the verdict for the process that asks for it."""
    part = folder / "part"
    part.write_text(encode(verdict, Verdict))
    part.rename(folder / _ANSWER)
