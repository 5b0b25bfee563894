"""`porter kernel promote`: a checked kernel becomes an operator of a fork, in one change set that is verified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.progress import Progress, ignore
from porter.core.writing import refuse_uncommitted, write
from porter.plan.promotion.planner import PromotionPlan, plan_promotion, write_files
from porter.plan.promotion.promotion import Promotion, ScriptWish
from porter.verdict.backends import host
from porter.verdict.judge import merge_arithmetics
from porter.verdict.new_operator.process import ProofRequest, request_proof
from porter.verdict.result import DEFAULT, Verdict
from porter.verdict.verify import find_arithmetics
from porter.workflows.kernel import start_device
from porter.workflows.migrate import Wrote
from porter.workflows.templates import create_file


@dataclass(frozen=True)
class Request:
    """A script, what to promote of it, and what to do with the plan."""

    file: Path
    wish: ScriptWish
    write: bool = False
    force: bool = False
    verify: bool = True
    arithmetic: str = DEFAULT


def promote(
    checkout: Checkout, request: Request, progress: Progress = ignore
) -> Iterator[PromotionPlan | Verdict | Wrote]:
    """The plan, its verdict unless none is wanted, and the files written if that is asked for.

    Raises PTR171 (no such arithmetic), PTR238, PTR239, PTR241 to PTR248 and PTR347 for what cannot be promoted, and
    what `write` and the device raise.
    """
    start_device()
    arithmetics = find_arithmetics(request.arithmetic)
    if request.verify:
        host.require()
    progress("planning")
    promotion = _read_script(request.file, request.wish)
    plan = plan_promotion(checkout, promotion)
    yield plan
    if request.write and not request.force:
        refuse_uncommitted(checkout, plan.changes.files)
    if request.verify:
        proof = ProofRequest(checkout.root.resolve(), request.wish, request.file.resolve(), Path.cwd())
        requests = [replace(proof, arithmetic=each) for each in arithmetics]
        verdicts = [request_proof(each, plan.promotion.op, progress) for each in requests]
        yield verdicts[0] if len(verdicts) == 1 else merge_arithmetics(verdicts)
    if request.write:
        yield Wrote(write(checkout, plan.changes, request.force, (plan.promotion.op,)))


def export_operator(checkout: Checkout, file: Path, wish: ScriptWish, folder: Path) -> list[Path]:
    """Writes the operator's files to a folder. Raises PTR236 and what `promote` raises of a script."""
    start_device()
    promotion = _read_script(file, wish)
    paths = []
    for name, text in write_files(checkout, promotion).items():
        create_file(folder / name, text)
        paths.append(folder / name)
    return paths


def _read_script(file: Path, wish: ScriptWish) -> Promotion:
    """The promotion of a script, which is run, for a name that PyTorch does not have."""
    from porter.kernels.loading import running_script
    from porter.kernels.promotion.reading import read_promotion
    from porter.kernels.promotion.subject import check_name, find_subject

    with running_script(file):
        subject = find_subject(file, wish)
        check_name(subject)
        return read_promotion(subject, wish)
