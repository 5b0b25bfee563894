"""The verdict server: `python -m porter.overlay.serve SOCKET FINGERPRINT`, or `--once` for one request on stdin.

It imports torch, the OpInfos and the device, then forks a worker for every request, so that nothing a request loads
outlives it. It leaves after ten idle minutes, and when torch or porter's own files are no longer those it imported.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from porter.errors import PorterError
from porter.overlay import server
from porter.overlay.verdict import ALL, ARITHMETICS, Failure, Verdict, VerifyTarget, joined, not_run

IDLE_SECONDS = 600.0
LOOK_SECONDS = 15.0

Answer = dict[str, Any]


def main(arguments: list[str]) -> int:
    from porter.overlay import work

    if arguments == ["--once"]:
        asked = json.loads(sys.stdin.readline())
        work.warm(asked["backend"])
        print(json.dumps(answer(asked)), flush=True)
        return 0
    path, fingerprint, backend = arguments
    work.warm(backend)
    serve(Path(path), fingerprint)
    return 0


def serve(path: Path, fingerprint: str) -> None:
    """Answers on the socket until idle or outdated."""
    listener = _listen(path)
    if listener is None:
        return
    last = time.monotonic()
    try:
        while time.monotonic() - last < IDLE_SECONDS:
            ready, _, _ = select.select([listener], [], [], LOOK_SECONDS)
            _reap()
            if ready:
                link, _ = listener.accept()
                _handle(link, listener)
                last = time.monotonic()
            elif server.fingerprint(fingerprint.partition("-")[0]) != fingerprint:
                return
    finally:
        path.unlink(missing_ok=True)


def answer(asked: Answer) -> Answer:
    """The answer to one request: a verdict, or why there is none. Every arithmetic has a worker of its own."""
    if asked["arithmetic"] != ALL:
        return _one(asked)
    answers = [_one({**asked, "arithmetic": arithmetic}) for arithmetic in ARITHMETICS]
    broken = next((found for found in answers if "error" in found), None)
    return broken or joined([Verdict.from_json(found) for found in answers]).to_json()


def _one(asked: Answer) -> Answer:
    """The answer under one arithmetic. A worker that dies is a failed verdict."""
    started = time.monotonic()
    target = target_from(asked["target"])
    with tempfile.TemporaryFile() as log:
        result, code, doing = _in_worker(lambda tell: _verdict(asked, target, tell), log.fileno())
        if result is not None:
            return result
        log.seek(0)
        told = log.read().decode(errors="replace")
    failure = Failure(doing or "worker", _death(code, told))
    return not_run(target.base, [failure], time.monotonic() - started, asked["backend"], asked["arithmetic"]).to_json()


def target_from(values: dict[str, Any]) -> VerifyTarget:
    """A target from its JSON."""
    from porter.overlay.verdict import ListEntry

    def entries(name: str) -> tuple[ListEntry, ...]:
        return tuple(
            ListEntry(**{**e, "dtypes": None if e["dtypes"] is None else tuple(e["dtypes"])}) for e in values[name]
        )

    return VerifyTarget(
        base=values["base"],
        rows=tuple(values["rows"]),
        kernels=tuple(values["kernels"]),
        stubs=tuple(values["stubs"]),
        pairs=tuple((a, b) for a, b in values["pairs"]),
        removed=entries("removed"),
        kept=entries("kept"),
    )


def _verdict(asked: Answer, target: VerifyTarget, tell: Callable[[str], None]) -> Answer:
    from porter.overlay import work

    try:
        found = work.one(
            Path(asked["root"]), asked["texts"], target, asked["expr"], asked["backend"], asked["arithmetic"], tell
        )
    except PorterError as error:
        return {"error": str(error), "hint": error.hint}
    return found.to_json()


def _in_worker(run: Callable[[Callable[[str], None]], Answer], log: int) -> tuple[Answer | None, int, str]:
    """Runs in a forked process: its answer, or None with its exit code (negative: the signal) and what it was doing."""
    reader, writer = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.close(reader)
        os.dup2(log, 1)
        os.dup2(log, 2)
        with contextlib.suppress(BaseException), os.fdopen(writer, "w") as out:
            _work(run, out)
        os._exit(0)
    os.close(writer)
    doing, result = "", None
    with os.fdopen(reader) as lines:
        for line in lines:
            kind, _, rest = line.partition(" ")
            doing, result = (rest.strip(), result) if kind == "doing" else (doing, json.loads(rest))
    _, status = os.waitpid(worker, 0)
    return result, os.waitstatus_to_exitcode(status), doing


def _work(run: Callable[[Callable[[str], None]], Answer], out: Any) -> None:
    import faulthandler

    faulthandler.enable()

    def tell(step: str) -> None:
        out.write(f"doing {step}\n")
        out.flush()

    try:
        result = run(tell)
    except Exception as error:
        import traceback

        traceback.print_exc()
        result = {"error": f"the verdict itself failed: {type(error).__name__}: {error}\n{traceback.format_exc()}"}
    out.write(f"result {json.dumps(result)}\n")


def _death(code: int, log: str) -> str:
    if code >= 0:
        return f"the process ended with exit code {code}\n{log[-1500:]}"
    name = signal.Signals(-code).name
    hint = (
        " (a device pointer was used on the host, or a kernel wrote out of bounds)" if code == -signal.SIGSEGV else ""
    )
    return f"the process died of {name}{hint}\n{log[-1500:]}"


def _handle(link: socket.socket, listener: socket.socket) -> None:
    """Answers one connection in a child, so that a request can neither harm nor delay the next."""
    child = os.fork()
    if child:
        link.close()
        return
    listener.close()
    with contextlib.suppress(OSError), link, link.makefile("rb") as lines:
        line = lines.readline()
        if line:
            link.sendall(json.dumps(answer(json.loads(line))).encode() + b"\n")
    os._exit(0)


def _listen(path: Path) -> socket.socket | None:
    """The socket, or None if another server came first."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    own = path.with_name(f"{path.name}.{os.getpid()}")
    listener.bind(str(own))
    listener.listen(16)
    try:
        os.link(own, path)
    except FileExistsError:
        if _answers(path):
            return None
        own.replace(path)
    own.unlink(missing_ok=True)
    return listener


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(str(path)) == 0


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
