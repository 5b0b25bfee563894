"""What `verify` asks of a port that is written: what `migrate` asked before it wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from porter.aten.names import parse_base_name
from porter.aten.operator import Operator
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import KERNELS
from porter.core.progress import Progress
from porter.languages.identifiers import contains_identifier
from porter.metal.kernel import FIRST_CANDIDATES, CandidateChoice
from porter.metal.kernel_spec import no_recording
from porter.plan.addition import plan_addition
from porter.plan.draft import Draft
from porter.plan.plan import Plan
from porter.plan.planner import plan_operator
from porter.verdict.messages import VerifyRequest
from porter.verdict.native import native_target
from porter.verdict.proof import Proof
from porter.verdict.prove import find_target, select_tests
from porter.verdict.verify import make_request
from porter.workflows.baselines import Baseline
from porter.workflows.candidates import Planner
from porter.workflows.decisions import recall_decision
from porter.workflows.needed import find_needed
from porter.workflows.stacking import read_programs, read_recorded

_DECLARED = re.compile(r"\b(?:struct|kernel void) (\w+)")


@dataclass(frozen=True)
class _Replanned:
    """The plan that the checkout has as written, and whether its verdict was thorough."""

    plan: Plan
    thorough: bool = False


def request_written(checkout: Checkout, before: Baseline, op: str, proof: Proof, progress: Progress) -> VerifyRequest:
    """The request for the verdict on an operator as the checkout has it, against the fork `before` its port.

    Its rows, types and list entries are those of the port that porter plans on that fork. Where the checkout has
    another port, they are read from the checkout. Raises what reading them, recording and `make_request` raise.
    """
    replanned = _plan_again(checkout, before.fork, op, progress)
    if replanned is None:
        target, expr = native_target(checkout, op), proof.expr
    else:
        target = find_target(replanned.plan, parse_base_name(op), checkout)
        expr = select_tests(replanned.plan, proof.expr)
        proof = replace(proof, thorough=replanned.thorough if proof.thorough is None else proof.thorough)
    return make_request(checkout.root, before.texts, target, proof, expr, before.fork.earlier)


def _plan_again(checkout: Checkout, fork: Checkout, op: str, progress: Progress) -> _Replanned | None:
    """The plan of a port on the fork before it, with the candidates that the checkout has; None if it has another."""
    progress("planning")
    recorded = read_recorded(fork, run=True)(progress)
    planner: Planner = partial(plan_operator, programs=read_programs(fork, run=True)(progress))
    if not Operator.read(fork, op).served:
        planner, recorded = plan_addition, no_recording
    draft = Draft(fork)
    try:
        for needed in find_needed(fork, op):
            draft = draft.follow(planner(draft.fork, needed, FIRST_CANDIDATES, recorded).changes)
        first = planner(draft.fork, op, FIRST_CANDIDATES, recorded)
        kernels = "\n".join(checkout.read(path) for path in checkout.list(KERNELS, ".metal"))
        decision = recall_decision(draft.fork, first)
        if decision:
            plan = planner(draft.fork, op, decision.choice, recorded, listed=decision.listed)
            if _has_kernels(kernels, plan):
                return _Replanned(plan, decision.thorough)
        choices = (FIRST_CANDIDATES, *_list_choices(first))
        plans = (planner(draft.fork, op, choice, recorded) for choice in choices)
        plan = next((each for each in plans if _has_sources(kernels, each)), first)
    except PorterError:
        return None
    return _Replanned(plan) if _has_kernels(kernels, plan) else None


def _list_choices(first: Plan) -> Iterator[CandidateChoice]:
    for functor in first.functors:
        for origin in functor.origins:
            yield from ({(functor.name, origin.kinds[0]): index} for index in range(1, origin.count))


def _has_sources(kernels: str, plan: Plan) -> bool:
    return all(functor.source.strip() in kernels for functor in plan.functors)


def _has_kernels(kernels: str, plan: Plan) -> bool:
    """Whether what the plan's functors and kernels are declared as is in the files: they may have been edited since."""
    declared = (name for functor in plan.functors for name in _DECLARED.findall(functor.source))
    return all(contains_identifier(kernels, name) for name in declared)
