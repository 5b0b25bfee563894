"""`porter migrate -i`: the candidates of one operator with their verdicts, and the hunks of the one that is taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from porter.aten.declarations import parse_base_name
from porter.core.change_set import Hunk, keep_hunks
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress
from porter.core.writing import refuse_uncommitted, write
from porter.metal.kernel import FIRST_CANDIDATES
from porter.plan.plan import Draft, Plan
from porter.plan.planner import plan_operator
from porter.verdict.result import Proof, Verdict
from porter.verdict.verify import prove
from porter.workflows.candidates import list_choices
from porter.workflows.coverage import find_needed
from porter.workflows.migrate import refuse_unproven
from porter.workflows.stacking import read_old_code


@dataclass(frozen=True)
class Offer:
    """A candidate: which one of how many, its plan, and its verdict or why there is none."""

    number: int
    count: int
    plan: Plan
    verdict: Verdict | None = None
    error: PorterError | None = None

    @property
    def is_proven(self) -> bool:
        return self.verdict is not None and self.verdict.ok


def offer_candidates(
    checkout: Checkout, op: str, proof: Proof, progress: Progress, keeps: bool = False
) -> Iterator[Offer]:
    """Yields each candidate with its verdict, which is asked for as the candidate is.

    The others differ from the first in the source of one functor. Raises PTR436 for an operator that calls others
    which build graphs, and what `plan_operator` raises of the first candidate.
    """
    if needed := find_needed(checkout, op):
        hint = f"Run `porter migrate {needed[0]} --write` first."
        raise PorterError("PTR436", f"{op} calls {', '.join(needed)}, to be ported before it", hint=hint)
    old = read_old_code(checkout, run=True)
    recorded = old.graphs(progress)
    planner = partial(plan_operator, programs=old.programs(progress), keeps=keeps)
    progress("planning")
    first = planner(checkout, op, FIRST_CANDIDATES, recorded)
    choices = [FIRST_CANDIDATES, *list_choices(first)]
    for number, choice in enumerate(choices, 1):
        plan = planner(checkout, op, choice, recorded) if choice else first
        yield judge(checkout, Offer(number, len(choices), plan), proof, progress)


def judge(checkout: Checkout, offer: Offer, proof: Proof, progress: Progress) -> Offer:
    """The offer with the verdict on its plan, or with the error that prevents one."""
    try:
        verdict = prove(Draft(checkout), offer.plan, parse_base_name(offer.plan.op), proof, progress)
    except PorterError as error:
        return replace(offer, verdict=None, error=error)
    return replace(offer, verdict=verdict, error=None)


def take_hunks(offer: Offer, kept: Sequence[Hunk]) -> Offer:
    """The offer with some of its hunks, on which there is no verdict yet."""
    return replace(offer, plan=replace(offer.plan, changes=keep_hunks(offer.plan.changes, kept)), verdict=None)


def require_committed(checkout: Checkout, plan: Plan, force: bool) -> None:
    """Raises PTR055 before a person is asked anything, unless `force`."""
    if not force:
        refuse_uncommitted(checkout, plan.changes.files)


def write_offer(checkout: Checkout, offer: Offer, force: bool, unverified: bool) -> tuple[str, ...]:
    """Writes what was taken. Raises PTR432 unless its verdict passes or it may be `unverified`, and as `write` does."""
    if not (offer.is_proven or unverified):
        raise refuse_unproven([offer.plan.op])
    return write(checkout, offer.plan.changes, force, (offer.plan.op,))
