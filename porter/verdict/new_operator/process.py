"""Proves a new operator in a process of its own: what it calls may crash, and one fork is all that it loads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.codec import decode, encode
from porter.core.progress import Progress
from porter.core.python import own_module
from porter.plan.new_operator.elementwise import ExpressionWish
from porter.plan.promotion.promotion import ScriptWish
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


@dataclass(frozen=True)
class ProofRequest:
    """The fork, what is added to it, the script of a promotion, the folder to run it in, and the arithmetic.

    All paths are absolute.
    """

    root: Path
    wish: ExpressionWish | ScriptWish
    script: Path | None = None
    folder: Path | None = None
    arithmetic: str = DEFAULT


def request_proof(request: ProofRequest, op: str, progress: Progress) -> Verdict:
    """The verdict on a new operator. Raises what `run_proof` raises."""
    return run_proof(__name__, encode(request, ProofRequest), op, progress, request.arithmetic)


def _prove(request: ProofRequest) -> Verdict:
    """Plans as the parent did, and proves."""
    from porter.verdict.backends import host

    host.start()
    from porter.kernels.promotion.reading import read_promotion
    from porter.kernels.promotion.subject import find_subject
    from porter.plan.new_operator.planner import plan_new_operator
    from porter.plan.promotion.planner import plan_promotion
    from porter.verdict.new_operator.elementwise import prove_new_operator
    from porter.verdict.new_operator.script import prove_promotion

    checkout, wish = Checkout(request.root, "named"), request.wish

    def report(step: str) -> None:
        print(step, flush=True)

    if isinstance(wish, ExpressionWish):
        return prove_new_operator(request.root, plan_new_operator(checkout, wish), report)
    assert request.script is not None and request.folder is not None
    os.chdir(request.folder)  # a script may read files by relative paths
    subject = find_subject(request.script, wish)
    plan = plan_promotion(checkout, read_promotion(subject, wish))
    return prove_promotion(request.root, subject, plan, report, request.arithmetic)


def main() -> None:
    """Proves what the arguments ask for: a folder for the answer, and the request."""
    answer(Path(sys.argv[1]), _prove(decode(sys.argv[2], ProofRequest)))
    os._exit(0)  # the libraries of the fork and of torch do not agree on who ends first
