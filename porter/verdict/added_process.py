"""Proves a new operator in a process of its own."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from porter.core.codec import decode, encode
from porter.core.progress import Progress
from porter.plan.new_operator.operator import Wish
from porter.verdict.proof_process import answer, run_proof
from porter.verdict.result import Verdict


@dataclass(frozen=True)
class ProofRequest:
    """The fork, and what is added to it."""

    root: Path
    wish: Wish


def request_proof(request: ProofRequest, op: str, progress: Progress) -> Verdict:
    """The verdict on a new operator. Raises what `run_proof` raises."""
    return run_proof(__name__, encode(request, ProofRequest), op, progress)


def _prove(folder: Path, request: ProofRequest) -> None:
    """Plans as the parent did, proves, and leaves the verdict in a folder."""
    from porter.verdict.backends import host

    host.start()
    from porter.core.checkout import Checkout
    from porter.plan.new_operator.planner import plan_new_operator
    from porter.verdict.added import prove_new_operator

    plan = plan_new_operator(Checkout(request.root, "named"), request.wish)
    answer(folder, prove_new_operator(request.root, plan, lambda step: print(step, flush=True)))


def main() -> None:
    """Proves what the arguments ask for: a folder for the answer, and the request."""
    _prove(Path(sys.argv[1]), decode(sys.argv[2], ProofRequest))
    os._exit(0)  # the libraries of the fork and of torch do not agree on who ends first
