"""`porter kernel promote`: a checked kernel becomes an operator of a fork, in one change set that is verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from porter.core.checkout import Checkout
from porter.core.progress import Progress, ignore
from porter.core.writing import write
from porter.plan.promotion.planner import PromotionPlan, plan_promotion, write_files
from porter.workflows.kernel import start_device
from porter.workflows.templates import create_file

if TYPE_CHECKING:
    from porter.kernels.promotion.reading import Wish
    from porter.verdict.result import Verdict


@dataclass(frozen=True)
class Request:
    """What to promote, under which name, and what to do with it. See `porter.kernels.promotion.reading.Wish`."""

    file: Path
    op: str
    stage: str | None = None
    simple: bool = False
    schema: str | None = None
    instantiate: Mapping[str, tuple[int, ...]] | None = None
    write: bool = False
    force: bool = False
    verify: bool = True


@dataclass(frozen=True)
class Wrote:
    """The files written."""

    files: tuple[str, ...]


def promote(
    checkout: Checkout, request: Request, progress: Progress = ignore
) -> Iterator[PromotionPlan | Verdict | Wrote]:
    """The plan, its verdict unless none is wanted, and the files written if that is asked for.

    Raises PTR238, PTR239, PTR241 to PTR248 for what cannot be promoted, and what `write` and the device raise.
    """
    if request.verify:
        from porter.verdict.backends import host

        host.require()
        host.start()
    else:
        start_device()
    from porter.kernels.promotion.reading import find_subject, read_promotion

    progress("planning")
    subject = find_subject(request.file, _wish(request))
    plan = plan_promotion(checkout, read_promotion(subject, _wish(request)))
    yield plan
    if request.verify:
        from porter.verdict.promoted import prove_promotion

        yield prove_promotion(checkout.root, subject, plan, progress)
    if request.write:
        yield Wrote(write(checkout, plan.changes, request.force))


def export_operator(checkout: Checkout, request: Request, folder: Path) -> list[Path]:
    """Writes the operator's files to a folder. Raises PTR236 and what `promote` raises of a script."""
    start_device()
    from porter.kernels.promotion.reading import find_subject, read_promotion

    promotion = read_promotion(find_subject(request.file, _wish(request)), _wish(request))
    paths = []
    for name, text in write_files(checkout, promotion).items():
        create_file(folder / name, text)
        paths.append(folder / name)
    return paths


def _wish(request: Request) -> Wish:
    from porter.kernels.promotion.reading import Wish

    return Wish(request.op, request.stage, request.simple, request.schema, request.instantiate)
