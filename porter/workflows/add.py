"""`porter add`: plans, verifies and writes operators that MPS lacks, or that are new to PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress, Steps, ignore, number_progress
from porter.core.writing import refuse_uncommitted, write
from porter.metal.kernel_spec import no_recording
from porter.plan.addition import plan_addition
from porter.plan.helpers import HelperPlan, plan_helpers
from porter.plan.new_operator.elementwise import ExpressionWish
from porter.plan.new_operator.planner import NewOperatorPlan, plan_new_operator
from porter.plan.plan import Draft
from porter.verdict.result import Proof, Verdict
from porter.workflows.migrate import (
    NotPlanned,
    PortedOperator,
    Wrote,
    prove_candidates,
    refuse_unproven,
    require_all_tests,
    take_decision,
)


@dataclass(frozen=True)
class Request:
    """The operators to add, and what to do with their plans. No `proof` means no verdict.

    `helpers` adds the functions that they need and the fork's MetalShaderLibrary lacks, before them. What is written
    has a verdict of all tests, unless it may be `unverified`.
    """

    ops: tuple[str, ...]
    write: bool = False
    force: bool = False
    proof: Proof | None = None
    helpers: bool = False
    unverified: bool = False


def add(
    checkout: Checkout, request: Request, progress: Steps = ignore
) -> Iterator[PortedOperator | NotPlanned | HelperPlan | Wrote]:
    """Adds each operator on top of the ones before it, then writes the files. One of several that has no plan is left
    out.

    Raises PTR431 and PTR432 as `migrate` does, what `write` raises, and for a single operator what `plan_addition`
    raises.
    """
    if request.write:
        require_all_tests(request.proof)
    draft, unproven = Draft(checkout), list[str]()
    for at, op in enumerate(request.ops):
        report = number_progress(progress, op, at, len(request.ops))
        report("planning")
        helpers = plan_helpers(draft.fork, op, partial(plan_addition, op=op)) if request.helpers else None
        try:
            helped = draft.follow(helpers.changes) if helpers else draft
            plan = plan_addition(helped.fork, op)
        except PorterError as error:
            if len(request.ops) == 1:
                raise
            yield NotPlanned(op, error)
            continue
        if request.write and not request.force:
            refuse_uncommitted(checkout, draft.follow(plan.changes).changes.files)
        if helpers:
            yield helpers
        draft = helped
        added = (
            prove_candidates(draft, plan, request.proof, no_recording, plan_addition, report)
            if request.proof
            else take_decision(draft.fork, plan, plan_addition, no_recording)
        )
        unproven += [] if added.is_proven else [op]
        yield added
        draft = draft.follow(added.plan.changes)
    if request.write and draft.changes.files:
        if unproven and not request.unverified:
            raise refuse_unproven(unproven)
        yield Wrote(write(checkout, draft.changes, request.force, request.ops))


@dataclass(frozen=True)
class NewRequest:
    """An operator that is new to PyTorch, and what to do with its plan."""

    wish: ExpressionWish
    write: bool = False
    force: bool = False
    verify: bool = True


def add_new(
    checkout: Checkout, request: NewRequest, progress: Progress = ignore
) -> Iterator[NewOperatorPlan | Verdict | Wrote]:
    """The plan of a new operator, its verdict unless none is wanted, and the files written if that is asked for.

    Raises what `plan_new_operator`, `request_proof` and `write` raise.
    """
    progress("planning")
    found = plan_new_operator(checkout, request.wish)
    yield found
    if request.write and not request.force:
        refuse_uncommitted(checkout, found.plan.changes.files)
    if request.verify:
        from porter.verdict.backends import host
        from porter.verdict.new_operator.process import ProofRequest, request_proof

        host.require()
        proof = ProofRequest(checkout.root.resolve(), request.wish)
        yield request_proof(proof, found.plan.op, progress)
    if request.write:
        yield Wrote(write(checkout, found.plan.changes, request.force, (found.plan.op,)))
