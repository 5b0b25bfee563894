"""The verdict server: `python -m porter.server.server SOCKET FINGERPRINT BACKEND`, or `--once` for a request on stdin.

It imports torch, the OpInfos and the device, then forks a worker for every request, so that nothing a request loads
outlives it. It exits after ten idle minutes, or when torch or porter's own files have changed since it imported them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from porter.core import cache, cache_size, codec
from porter.core.checkout import Checkout
from porter.core.progress import Progress, ignore
from porter.server import worker
from porter.server.process import Process, act_here
from porter.server.worker import RunOptions
from porter.verdict import client
from porter.verdict.backends.choice import BACKENDS
from porter.verdict.behavior import SampleResult, compare_paths, find_lost
from porter.verdict.evidence import digest_old_code, key
from porter.verdict.judge import merge_arithmetics, merge_bounds_check, require_samples, verdict_without_tests
from porter.verdict.messages import (
    Answer,
    ErrorAnswer,
    PrepareAnswer,
    PrepareRequest,
    RecordAnswer,
    RecordRequest,
    Request,
    SamplesAnswer,
    StepStarted,
    VerdictAnswer,
    VerifyRequest,
    decode_request,
    encode_line,
)
from porter.verdict.result import ALL, ARITHMETICS, Failure, Verdict

IDLE_SECONDS = 600.0
LOOK_SECONDS = 15.0
PRUNE_SECONDS = 600.0
LEFT_SECONDS = 24 * 3600.0

_Samples = tuple[SampleResult, ...]


def main(arguments: list[str]) -> int:
    os.umask(0o077)  # what is cached is this user's alone
    if arguments == ["--once"]:
        _answer_once()
        return 0
    path, fingerprint, backend = arguments
    serve(Path(path), fingerprint, partial(worker.preload, backend))
    return 0


def _answer_once() -> None:
    """Answers the request on stdin. Only the answer goes to stdout, whatever the code that runs prints."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        request = decode_request(sys.stdin.readline())
        worker.preload(request.backend)
        out.write(encode_line(act_here(partial(answer, request), ignore)))


def serve(path: Path, fingerprint: str, preload: Callable[[], None] = lambda: None) -> None:
    """Answers on the socket until idle or outdated; at once done where another server has it."""
    claim = _claim(path)
    if claim is None:
        return
    try:
        _sweep(path)
        preload()
        listener = _listen(path)
        try:
            _answer_all(listener, claim, fingerprint)
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(claim)


def _answer_all(listener: socket.socket, claim: int, fingerprint: str) -> None:
    last, pruned = time.monotonic(), -PRUNE_SECONDS
    while time.monotonic() - last < IDLE_SECONDS:
        ready, _, _ = select.select([listener], [], [], LOOK_SECONDS)
        _reap()
        if ready:
            link, _ = listener.accept()
            _handle(link, listener, claim)
            last = time.monotonic()
        elif client.fingerprint(fingerprint.partition("-")[0]) != fingerprint:
            return
        elif time.monotonic() - pruned > PRUNE_SECONDS:
            cache_size.prune(cache_size.bound())
            pruned = time.monotonic()


def answer(request: Request, progress: Progress = ignore) -> Answer:
    """Answers one request. Reports steps to `progress`."""
    if isinstance(request, VerifyRequest):
        return _verify(request, progress)
    if isinstance(request, RecordRequest):
        return Process(partial(_record, request), _old_code_ended).result(progress)
    return Process(partial(_prepare, request), _preparation_ended).result(progress)


def _verify(request: VerifyRequest, progress: Progress) -> Answer:
    """Computes a verdict.

    Each arithmetic runs in its own worker, and so does a short run with bounds checks, all in parallel. On hardware
    there is one run, in this process, because Metal does not survive a fork.
    """
    if BACKENDS[request.backend].ON_HARDWARE:
        alone = act_here(partial(_run, request, _options(request, request.arithmetic)), ignore)
        return replace(alone, samples=()) if isinstance(alone, VerdictAnswer) else alone
    arithmetics = ARITHMETICS if request.arithmetic == ALL else (request.arithmetic,)
    runs = [_options(request, arithmetic) for arithmetic in arithmetics]
    runs.append(_options(request, arithmetics[0], checked=True))
    old = _OldPath(request)
    started = [Process(partial(_run, request, options), partial(_fail, request, options)) for options in runs]
    answers = [process.result(progress) for process in started]
    found = [each for each in answers if isinstance(each, VerdictAnswer)]
    if len(found) < len(answers):
        return next(each for each in answers if not isinstance(each, VerdictAnswer))
    plain = merge_arithmetics([each.verdict for each in found[:-1]])
    merged = merge_bounds_check(plain, [found[-1].verdict])
    return VerdictAnswer(old.compare(merged, found[0].samples, progress))


def _options(request: VerifyRequest, arithmetic: str, checked: bool = False) -> RunOptions:
    return RunOptions(request.expr, request.backend, arithmetic, checked)


class _OldPath:
    """The sample results of the implementation that a port removes: cached, or run in parallel with the verdict."""

    def __init__(self, request: VerifyRequest) -> None:
        self._found: _Samples | None = None
        self._process: Process | None = None
        if not request.texts or not BACKENDS[request.backend].RUNS_HOST_CODE:
            return
        evidence = digest_old_code(Checkout(request.root, "named"))
        self._key = key(evidence, "old_path", request.target.base, *request.target.stubs)
        text = cache.get(self._key)
        if text is not None:
            self._found = codec.decode(text, _Samples)
            return
        self._process = Process(partial(_run_old_path, request), _old_code_ended)

    def compare(self, verdict: Verdict, samples: _Samples, progress: Progress) -> Verdict:
        """Adds a comparison with the old path to a verdict, or a note if the old path was not run."""
        if self._process:
            found = self._process.result(progress)
            if isinstance(found, ErrorAnswer):
                note = f"the old path was not run: {found.code} {found.what.splitlines()[0]}"
                return replace(verdict, notes=(*verdict.notes, note))
            assert isinstance(found, SamplesAnswer)
            self._found = found.samples
            cache.put(self._key, codec.encode(self._found, _Samples))
        if self._found is None or not samples:
            return verdict
        whole = require_samples(verdict, find_lost(self._found, samples))
        return replace(whole, old_path=compare_paths(self._found, samples))


def _run(request: VerifyRequest, options: RunOptions, progress: Progress) -> Answer:
    return worker.verify(request.root, request.texts, request.target, options, progress)


def _run_old_path(request: VerifyRequest, progress: Progress) -> Answer:
    return SamplesAnswer(tuple(worker.run_old_path(request.root, request.target, progress)))


def _record(request: RecordRequest, progress: Progress) -> Answer:
    return RecordAnswer(worker.record(request.root, request.target, request.macos, progress))


def _prepare(request: PrepareRequest, progress: Progress) -> Answer:
    progress("preparation")
    worker.prepare(request.root, request.backend)
    return PrepareAnswer()


def _fail(request: VerifyRequest, options: RunOptions, step: str, end: str, seconds: float) -> Answer:
    """A run that dies is a failed verdict."""
    failures = [Failure(step, end)]
    base = request.target.base
    return VerdictAnswer(verdict_without_tests(base, failures, seconds, options.backend, options.arithmetic))


def _old_code_ended(step: str, end: str, _seconds: float) -> Answer:
    return ErrorAnswer("PTR137", f"the old implementation crashed during {step}: {end}")


def _preparation_ended(step: str, end: str, _seconds: float) -> Answer:
    return ErrorAnswer("PTR170", f"the {step} failed: {end}")


def _handle(link: socket.socket, listener: socket.socket, claim: int) -> None:
    """Answers one connection in a child process, so that requests are isolated and run in parallel."""
    child = os.fork()
    if child:
        link.close()
        return
    listener.close()
    os.close(claim)
    try:
        with contextlib.suppress(OSError), link, link.makefile("rb") as lines:
            line = lines.readline()
            if line:
                link.sendall(encode_line(_answer_line(line, link)))
    finally:
        os._exit(0)


def _answer_line(line: bytes, link: socket.socket) -> Answer:
    def send_step(step: str) -> None:
        link.sendall(encode_line(StepStarted(step)))

    return act_here(lambda progress: answer(decode_request(line), progress), send_step)


def _claim(path: Path) -> int | None:
    """Takes the lock that the only server of a socket holds while it lives; None if another server holds it."""
    handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    os.utime(handle)
    return handle


def _sweep(path: Path) -> None:
    """Removes what servers left that have ended, a day after their start."""
    for lock in path.parent.glob("*.lock"):
        if time.time() - lock.stat().st_mtime < LEFT_SECONDS:
            continue
        name = lock.with_suffix("")
        claim = _claim(name)
        if claim is not None:
            for left in (name, name.with_name(f"{name.name}.new"), name.with_name(f"{name.name}.log"), lock):
                left.unlink(missing_ok=True)
            os.close(claim)


def _listen(path: Path) -> socket.socket:
    """The socket, which a client finds only when it is answered; what an earlier server left is replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    own = path.with_name(f"{path.name}.new")
    own.unlink(missing_ok=True)
    listener.bind(str(own))
    own.chmod(0o600)
    listener.listen(16)
    own.replace(path)
    return listener


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
