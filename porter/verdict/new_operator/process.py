"""Proves a new operator in a process of its own: what it calls may crash, and one fork is all that it loads."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from porter.core.codec import decode, encode
from porter.core.progress import Progress
from porter.plan.new_operator.elementwise import ExpressionWish
from porter.plan.promotion.promotion import ScriptWish
from porter.verdict.proof_process import answer, run_proof
from porter.verdict.result import DEFAULT, Verdict


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
    from porter.core.checkout import Checkout
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
