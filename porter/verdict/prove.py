"""Verifies a plan."""

from __future__ import annotations

from pathlib import Path

from porter.core.progress import Progress, ignore
from porter.plan.plan import Plan
from porter.verdict.result import ListEntry, Verdict, VerifyTarget
from porter.verdict.verify import verify


def prove(
    root: Path,
    plan: Plan,
    base: str,
    expr: str | None = None,
    backend: str = "auto",
    arithmetic: str = "default",
    progress: Progress = ignore,
    large: bool = False,
) -> Verdict:
    """The verdict on a plan. Does not change the checkout.

    Raises PTR100 or PTR170 to PTR172 if there is no verdict.
    """
    target, tests = target_of(plan, base), _select_tests(plan, expr)
    return verify(root, plan.changes.apply(), target, tests, backend, arithmetic, progress, large)


def target_of(plan: Plan, base: str) -> VerifyTarget:
    """What of a plan is to be verified."""
    gone = [c for c in plan.lists if not c.is_kept]
    stay = [c for c in plan.lists if c.is_kept]
    return VerifyTarget(
        base=base,
        rows=tuple(e.name for e in plan.entries),
        kernels=tuple(f.name for f in plan.functors),
        stubs=tuple(s.stub for s in plan.stubs),
        pairs=tuple(dict.fromkeys((r.input, r.output) for r in plan.registrations)),
        removed=tuple(ListEntry(c.file, c.list, c.entry) for c in gone),
        kept=tuple(ListEntry(c.file, c.list, c.entry) for c in stay),
    )


def _select_tests(plan: Plan, expr: str | None) -> str | None:
    """The selected tests, without dtypes that never reach the stub."""
    left_out = " and ".join(f"not mps_{dtype}" for dtype in plan.answered)
    if not left_out:
        return expr
    return f"({expr}) and {left_out}" if expr else left_out
