"""`porter kernel promote`: a checked kernel becomes an operator of a fork, in one change set that is verified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.progress import Progress, ignore
from porter.core.writing import write
from porter.plan.promotion.planner import PromotionPlan, plan_promotion, write_files
from porter.plan.promotion.promotion import Wish
from porter.verdict.backends import host
from porter.verdict.judge import merge_arithmetics
from porter.verdict.promoted_process import ProofRequest, request_proof
from porter.verdict.result import DEFAULT, Verdict
from porter.verdict.verify import find_arithmetics
from porter.workflows.kernel import start_device
from porter.workflows.templates import create_file


@dataclass(frozen=True)
class Request:
    """A script, what to promote of it, and what to do with the plan."""

    file: Path
    wish: Wish
    write: bool = False
    force: bool = False
    verify: bool = True
    arithmetic: str = DEFAULT


@dataclass(frozen=True)
class Wrote:
    """The files written."""

    files: tuple[str, ...]


def promote(
    checkout: Checkout, request: Request, progress: Progress = ignore
) -> Iterator[PromotionPlan | Verdict | Wrote]:
    """The plan, its verdict unless none is wanted, and the files written if that is asked for.

    Raises PTR171 (no such arithmetic), PTR238, PTR239, PTR241 to PTR248 and PTR347 for what cannot be promoted, and
    what `write` and the device raise.
    """
    start_device()
    from porter.kernels.loading import running_script
    from porter.kernels.promotion.reading import check_name, find_subject, read_promotion

    arithmetics = find_arithmetics(request.arithmetic)
    if request.verify:
        host.require()
    progress("planning")
    with running_script(request.file):
        subject = find_subject(request.file, request.wish)
        check_name(subject)
        promotion = read_promotion(subject, request.wish)
    plan = plan_promotion(checkout, promotion)
    yield plan
    if request.verify:
        proof = ProofRequest(checkout.root.resolve(), request.file.resolve(), Path.cwd(), request.wish)
        requests = [replace(proof, arithmetic=each) for each in arithmetics]
        verdicts = [request_proof(each, plan.promotion.op, progress) for each in requests]
        yield verdicts[0] if len(verdicts) == 1 else merge_arithmetics(verdicts)
    if request.write:
        yield Wrote(write(checkout, plan.changes, request.force))


def export_operator(checkout: Checkout, file: Path, wish: Wish, folder: Path) -> list[Path]:
    """Writes the operator's files to a folder. Raises PTR236 and what `promote` raises of a script."""
    start_device()
    from porter.kernels.loading import running_script
    from porter.kernels.promotion.reading import check_name, find_subject, read_promotion

    with running_script(file):
        subject = find_subject(file, wish)
        check_name(subject)
        promotion = read_promotion(subject, wish)
    paths = []
    for name, text in write_files(checkout, promotion).items():
        create_file(folder / name, text)
        paths.append(folder / name)
    return paths
