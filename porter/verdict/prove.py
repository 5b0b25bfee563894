"""From a plan to what the overlay has to prove of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from porter.core.checkout import KERNELS, MPS, NATIVE_FUNCTIONS, OPERATIONS, Checkout
from porter.core.errors import PorterError
from porter.plan.plan import Plan

if TYPE_CHECKING:
    from porter.verdict.result import Verdict


NOT_NATIVE = "PTR019"


def prove(
    root: Path, plan: Plan, base: str, expr: str | None = None, backend: str = "auto", arithmetic: str = "default"
) -> Verdict:
    """The overlay's verdict on a plan; the checkout itself stays as it is.

    Raises PTR100 or PTR170 to PTR172 if there is no verdict.
    """
    from porter.verdict.result import ListEntry, VerifyTarget, verify

    gone = [c for c in plan.lists if not c.change.startswith("kept")]
    stay = [c for c in plan.lists if c.change.startswith("kept")]
    target = VerifyTarget(
        base=base,
        rows=tuple(e.name for e in plan.entries),
        kernels=tuple(f.name for f in plan.functors),
        stubs=tuple(s.stub for s in plan.stubs),
        pairs=tuple(dict.fromkeys((r.input, r.output) for r in plan.registrations)),
        removed=tuple(ListEntry(c.file, c.list, c.entry) for c in gone),
        kept=tuple(ListEntry(c.file, c.list, c.entry) for c in stay),
    )
    return verify(root, plan.changes.apply(), target, _selected(plan, expr), backend, arithmetic=arithmetic)


def verified(checkout: Checkout, op: str, expr: str | None, backend: str, arithmetic: str) -> Verdict:
    """The verdict on an operator as the fork has it where it is native, else on its port. Raises as `prove` does."""
    from porter.plan.planner import plan_operator
    from porter.verdict.native import native_target
    from porter.verdict.result import verify
    from porter.workflows.candidates import judged

    try:
        target = native_target(checkout, op)
    except PorterError as error:
        if error.code != NOT_NATIVE:
            raise
        plan, base = plan_operator(checkout, op), op.split(".")[0]
        return judged(checkout, plan, lambda each: prove(checkout.root, each, base, expr, backend, arithmetic)).verdict
    return verify(checkout.root, {}, target, expr, backend, arithmetic=arithmetic)


def files_of(checkout: Checkout) -> tuple[Path, ...]:
    """The files whose change can change the verdict on operators: MPS's own, its headers, the yaml and the lists."""
    folders = ((MPS, (".h", ".mm")), (OPERATIONS, (".h", ".mm")), (KERNELS, (".metal", ".h")), ("c10/metal", (".h",)))
    names = [path for folder, endings in folders for path in checkout.list(folder, *endings)]
    return tuple(checkout.root / name for name in (NATIVE_FUNCTIONS, *names))


def _selected(plan: Plan, expr: str | None) -> str | None:
    """The tests asked for, without the dtypes that never reach the stub."""
    left_out = " and ".join(f"not mps_{dtype}" for dtype in plan.answered)
    if not left_out:
        return expr
    return f"({expr}) and {left_out}" if expr else left_out
