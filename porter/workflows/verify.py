"""`porter verify`: a verdict on native operators, or on the ports of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from porter.aten.names import parse_base_name
from porter.core.checkout import Checkout
from porter.core.layout import KERNELS, METAL_HEADERS, MPS, NATIVE_FUNCTIONS, OPERATIONS
from porter.core.progress import Progress, Steps, ignore, number_progress
from porter.plan.draft import Draft
from porter.plan.planner import plan_operator
from porter.verdict.errors import NotNative
from porter.verdict.native import native_target
from porter.verdict.prove import prove
from porter.verdict.result import Verdict
from porter.verdict.verify import verify
from porter.workflows.candidates import choose_candidates
from porter.workflows.migrate import require_names
from porter.workflows.proof import Proof
from porter.workflows.stacking import read_programs, read_recorded


def verify_operators(
    checkout: Checkout, ops: Sequence[str], proof: Proof, progress: Steps = ignore
) -> Iterator[Verdict]:
    """Yields the verdict on each operator. Raises as `require_names` and `verify_operator` do."""
    require_names(checkout, ops)
    for at, op in enumerate(ops):
        yield verify_operator(checkout, op, proof, number_progress(progress, op, at, len(ops)))


def verify_operator(checkout: Checkout, op: str, proof: Proof, progress: Progress = ignore) -> Verdict:
    """The verdict on a native operator, or on the port of another. Raises what `plan_operator` and `prove` raise."""
    try:
        target = native_target(checkout, op)
    except NotNative:
        recorded = read_recorded(checkout, run=True)(progress)
        planner = partial(plan_operator, programs=read_programs(checkout, run=True)(progress))
        plan, base = planner(checkout, op, recorded=recorded), parse_base_name(op)
        proving = partial(
            prove,
            Draft(checkout),
            base=base,
            expr=proof.expr,
            backend=proof.backend,
            arithmetic=proof.arithmetic,
            progress=progress,
            large=proof.large,
            thorough=proof.thorough,
        )
        return choose_candidates(checkout, plan, lambda each: proving(each), recorded, planner).verdict
    return verify(
        checkout.root, {}, target, proof.expr, proof.backend, proof.arithmetic, progress, proof.large, proof.thorough
    )


def find_watched_files(checkout: Checkout) -> tuple[Path, ...]:
    """The files that a verdict depends on: the MPS backend, its kernels and headers, and native_functions.yaml."""
    folders = ((MPS, (".h", ".mm")), (OPERATIONS, (".h", ".mm")), (KERNELS, (".metal", ".h")), (METAL_HEADERS, (".h",)))
    names = [path for folder, endings in folders for path in checkout.list(folder, *endings)]
    return tuple(checkout.root / name for name in (NATIVE_FUNCTIONS, *names))
