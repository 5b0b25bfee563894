"""Proves a promotion in a process of its own: what it calls may crash, and one fork is all that it loads."""

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

from porter.core.codec import decode, encode
from porter.core.progress import Progress
from porter.plan.promotion.promotion import Wish
from porter.verdict.errors import NoVerdict
from porter.verdict.limits import out_of_time, read_limits
from porter.verdict.result import DEFAULT, HOST, Failure, Verdict

_ANSWER = "answer.json"
_LOG = 1500  # characters of what a process that broke has said last


@dataclass(frozen=True)
class ProofRequest:
    """The fork, the script, what of it is promoted, and the arithmetic that kernels run in."""

    root: Path
    file: Path
    wish: Wish
    arithmetic: str = DEFAULT


def request_proof(request: ProofRequest, op: str, progress: Progress) -> Verdict:
    """The verdict on a promotion. Raises PTR170 if the process breaks, and PTR176 for a limit that is none."""
    limits = read_limits(os.environ)
    start = time.monotonic()
    step = "starting"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        command = [sys.executable, "-m", __name__, folder, encode(request, ProofRequest)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True)
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
        return _failed(op, request.arithmetic, out_of_time(step, limits, seconds), seconds)
    if code >= 0:
        raise NoVerdict("PTR170", f"the process that verifies exited with code {code}\n{said}")
    what = (
        f"the process was killed by {signal.Signals(-code).name}: host code or a kernel used memory that is not its own"
    )
    return _failed(op, request.arithmetic, Failure(step, what), seconds)


def _failed(op: str, arithmetic: str, failure: Failure, seconds: float) -> Verdict:
    return Verdict(op, HOST, arithmetic, 0, 1, 0, 0, None, seconds, failures=(failure,))


def _prove(folder: Path, request: ProofRequest) -> None:
    """Plans as the parent did, proves, and leaves the verdict in a folder."""
    from porter.verdict.backends import host

    host.start()
    from porter.core.checkout import Checkout
    from porter.kernels.promotion.reading import find_subject, read_promotion
    from porter.plan.promotion.planner import plan_promotion
    from porter.verdict.promoted import prove_promotion

    subject = find_subject(request.file, request.wish)
    plan = plan_promotion(Checkout(request.root, "named"), read_promotion(subject, request.wish))
    verdict = prove_promotion(request.root, subject, plan, lambda step: print(step, flush=True), request.arithmetic)
    part = folder / "part"
    part.write_text(encode(verdict, Verdict))
    part.rename(folder / _ANSWER)


if __name__ == "__main__":
    _prove(Path(sys.argv[1]), decode(sys.argv[2], ProofRequest))
    os._exit(0)  # the libraries of the fork and of torch do not agree on who ends first
