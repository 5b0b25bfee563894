"""Proves a promotion in a process of its own: what it calls may crash, and one fork is all that it loads."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from porter.core.codec import decode, encode
from porter.core.progress import Progress
from porter.plan.promotion.promotion import Wish
from porter.verdict.proof_process import answer, run_proof
from porter.verdict.result import DEFAULT, Verdict


@dataclass(frozen=True)
class ProofRequest:
    """The fork, the script, the folder to run it in, what of it is promoted, and the arithmetic of its kernels.

    All paths are absolute.
    """

    root: Path
    file: Path
    folder: Path
    wish: Wish
    arithmetic: str = DEFAULT


def request_proof(request: ProofRequest, op: str, progress: Progress) -> Verdict:
    """The verdict on a promotion. Raises what `run_proof` raises."""
    return run_proof(__name__, encode(request, ProofRequest), op, progress, request.arithmetic)


def _prove(folder: Path, request: ProofRequest) -> None:
    """Plans as the parent did, proves, and leaves the verdict in a folder."""
    from porter.verdict.backends import host

    host.start()
    from porter.core.checkout import Checkout
    from porter.kernels.promotion.reading import find_subject, read_promotion
    from porter.plan.promotion.planner import plan_promotion
    from porter.verdict.promoted import prove_promotion

    os.chdir(request.folder)  # a script may read files by relative paths
    subject = find_subject(request.file, request.wish)
    plan = plan_promotion(Checkout(request.root, "named"), read_promotion(subject, request.wish))
    verdict = prove_promotion(request.root, subject, plan, lambda step: print(step, flush=True), request.arithmetic)
    answer(folder, verdict)


def main() -> None:
    """Proves what the arguments ask for: a folder for the answer, and the request."""
    _prove(Path(sys.argv[1]), decode(sys.argv[2], ProofRequest))
    os._exit(0)  # the libraries of the fork and of torch do not agree on who ends first
