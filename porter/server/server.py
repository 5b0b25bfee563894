"""The verdict server: `python -m porter.server.server SOCKET FINGERPRINT`, or `--once` for one request on stdin.

It imports torch, the OpInfos and the device, then forks a worker for every request, so that nothing a request loads
outlives it. It leaves after ten idle minutes, and when torch or porter's own files are no longer those it imported.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress, ignore
from porter.mpsgraph.storing import to_object
from porter.verdict import cache as kept
from porter.verdict import client as server
from porter.verdict.behavior import compared, from_json, to_json
from porter.verdict.errors import raising_porter_errors
from porter.verdict.judge import bounded, joined, not_run
from porter.verdict.result import ALL, ARITHMETICS, HOST, MPS, Failure, Verdict, VerifyTarget

IDLE_SECONDS = 600.0
LOOK_SECONDS = 15.0

Answer = dict[str, Any]


def main(arguments: list[str]) -> int:
    from porter.server import worker as work

    if arguments == ["--once"]:
        asked = json.loads(sys.stdin.readline())
        work.preload(asked["backend"])
        print(json.dumps(answer(asked)), flush=True)
        return 0
    path, fingerprint, backend = arguments
    work.preload(backend)
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


def answer(asked: Answer, progress: Progress = ignore) -> Answer:
    """The answer to one request: what was asked for, or why there is none. `progress` hears what is done meanwhile."""
    if asked["what"] == server.RECORDINGS:
        return _Worker(asked, _recordings, _ended).result(progress)
    if asked["what"] == server.PREPARATION:
        return _Worker(asked, _preparation, _broken).result(progress)
    return _judged(asked, progress)


def _judged(asked: Answer, progress: Progress) -> Answer:
    """A verdict.

    Every arithmetic has a worker of its own, and so has a short run with bounds checked; they run side by side. On
    Apple's GPU there is one run, in this process: Metal does not survive a fork.
    """
    if asked["backend"] == MPS:
        alone = _told(_verdict, {**asked, "checked": False}, lambda step: None)
        return dict(alone.get("verdict", alone))
    arithmetics = ARITHMETICS if asked["arithmetic"] == ALL else (asked["arithmetic"],)
    runs = [{**asked, "arithmetic": arithmetic, "checked": False} for arithmetic in arithmetics]
    runs.append({**asked, "arithmetic": arithmetics[0], "checked": True})
    old = _OldPath(asked)
    answers = [worker.result(progress) for worker in [_Worker(run, _verdict, _not_judged) for run in runs]]
    broken = next((found for found in answers if "error" in found), None)
    if broken:
        return broken
    verdicts = [Verdict.from_json(found["verdict"]) for found in answers]
    plain = joined(verdicts[: len(arithmetics)])
    return old.beside(bounded(plain, verdicts[len(arithmetics) :]), answers[0]["samples"], progress).to_json()


Tell = Callable[[str], None]


class _Worker:
    """A forked process that makes one answer; `dead` makes that of one that dies, from its last words."""

    def __init__(self, asked: Answer, act: Callable[[Answer, Tell], Answer], dead: Callable[..., Answer]) -> None:
        self._asked, self._dead = asked, dead
        self._started = time.monotonic()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the result)
        reader, writer = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            os.close(reader)
            _work(asked, act, writer, self._log.fileno())
        os.close(writer)
        self._lines = os.fdopen(reader)

    def result(self, progress: Progress = ignore) -> Answer:
        """Waits for it. What it said last it was doing names the failure of one that died."""
        doing, result = "worker", None
        with self._lines:
            for line in self._lines:
                kind, _, rest = line.partition(" ")
                if kind == "doing":
                    doing = rest.strip()
                    progress(doing)
                else:
                    result = json.loads(rest)
        _, status = os.waitpid(self._process, 0)
        with self._log:
            self._log.seek(0)
            told = self._log.read().decode(errors="replace")
        if result is not None:
            return dict(result)
        end = _death(os.waitstatus_to_exitcode(status), told)
        return self._dead(self._asked, doing, end, time.monotonic() - self._started)


def _not_judged(asked: Answer, doing: str, end: str, seconds: float) -> Answer:
    """A death is a failed verdict."""
    base = asked["target"]["base"]
    found = not_run(base, [Failure(doing, end)], seconds, asked["backend"], asked["arithmetic"])
    return {"verdict": found.to_json(), "samples": []}


def _ended(_asked: Answer, doing: str, end: str, _seconds: float) -> Answer:
    return {"error": f"the old implementation crashed during {doing}: {end}", "code": "PTR137"}


def _broken(_asked: Answer, doing: str, end: str, _seconds: float) -> Answer:
    return {"error": f"the {doing} ended: {end}", "code": "PTR170"}


class _OldPath:
    """What the implementation that a port takes out does with the samples: found again, or run beside the verdict."""

    def __init__(self, asked: Answer) -> None:
        self._found: list[dict[str, Any]] | None = None
        self._worker: _Worker | None = None
        if not asked["texts"] or asked["backend"] != HOST:
            return
        base, stubs = asked["target"]["base"], asked["target"]["stubs"]
        self._place = kept.place(kept.evidence(Checkout(Path(asked["root"]), "named")), "old_path", base, *stubs)
        self._found = kept.find(self._place)
        if self._found is None:
            self._worker = _Worker(asked, _old_behaviour, _ended)

    def beside(self, verdict: Verdict, samples: list[dict[str, Any]], progress: Progress) -> Verdict:
        """The verdict with what the old path did, or a note of why that is not known."""
        if self._worker:
            answer = self._worker.result(progress)
            if "error" in answer:
                told = f"the old path was not run: {answer.get('code', '')} {answer['error'].splitlines()[0]}"
                return replace(verdict, notes=(*verdict.notes, told))
            self._found = answer["samples"]
            kept.keep(self._place, self._found)
        if self._found is None or not samples:
            return verdict
        return replace(verdict, old_path=compared(from_json(self._found), from_json(samples)))


def target_from(values: dict[str, Any]) -> VerifyTarget:
    """A target from its JSON."""
    from porter.verdict.result import ListEntry

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
        as_is=values["as_is"],
    )


def _work(asked: Answer, act: Callable[[Answer, Tell], Answer], writer: int, log: int) -> NoReturn:
    """The worker's whole life."""
    os.dup2(log, 1)
    os.dup2(log, 2)
    with contextlib.suppress(BaseException), os.fdopen(writer, "w") as out:
        faulthandler.enable()

        def tell(step: str) -> None:
            out.write(f"doing {step}\n")
            out.flush()

        out.write(f"result {json.dumps(_told(act, asked, tell))}\n")
    os._exit(0)


def _told(act: Callable[[Answer, Tell], Answer], asked: Answer, tell: Tell) -> Answer:
    try:
        with raising_porter_errors():
            return act(asked, tell)
    except PorterError as error:
        return {"error": error.what, "code": error.code, "hint": error.hint}
    except Exception as error:
        return {"error": f"the answer itself failed: {type(error).__name__}: {error}\n{traceback.format_exc()}"}


def _verdict(asked: Answer, tell: Tell) -> Answer:
    from porter.server import worker as work

    target = target_from(asked["target"])
    run = work.Run(asked["expr"], asked["backend"], asked["arithmetic"], asked["checked"])
    found = work.verdict(Path(asked["root"]), asked["texts"], target, run, tell)
    return {"verdict": found.verdict.to_json(), "samples": to_json(found.samples)}


def _old_behaviour(asked: Answer, tell: Tell) -> Answer:
    from porter.server import worker as work

    return {"samples": to_json(work.old_behaviour(Path(asked["root"]), target_from(asked["target"]), tell))}


def _recordings(asked: Answer, tell: Tell) -> Answer:
    from porter.server import worker as work

    made = work.recordings(Path(asked["root"]), target_from(asked["target"]), asked["macos"], tell)
    return {"recordings": to_object(made)}


def _preparation(asked: Answer, tell: Tell) -> Answer:
    from porter.server import worker as work

    tell("preparation")
    work.prepare(Path(asked["root"]))
    return {}


def _death(code: int, log: str) -> str:
    if code >= 0:
        return f"the process ended with exit code {code}\n{log[-1500:]}"
    name = signal.Signals(-code).name
    hint = (
        " (a device pointer was used on the host, or a kernel wrote out of bounds)" if code == -signal.SIGSEGV else ""
    )
    return f"the process died of {name}{hint}\n{log[:1500]}"


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
            _send(link, answer(json.loads(line), lambda step: _send(link, {server.PROGRESS: step})))
    os._exit(0)


def _send(link: socket.socket, told: Answer) -> None:
    link.sendall(json.dumps(told).encode() + b"\n")


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
