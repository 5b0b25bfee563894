"""Verifies a plan."""

from __future__ import annotations

from dataclasses import replace

from porter.aten.operator import Operator, find_called_operators
from porter.core.checkout import Checkout
from porter.core.progress import Progress, ignore
from porter.plan.draft import Draft
from porter.plan.plan import Plan
from porter.verdict.errors import NotNative
from porter.verdict.native import add_gradient, native_target
from porter.verdict.result import ListEntry, Proof, Verdict, VerifyTarget
from porter.verdict.verify import ask_verdict, make_request


def prove(draft: Draft, plan: Plan, base: str, proof: Proof, progress: Progress = ignore) -> Verdict:
    """The verdict on a plan that follows a draft. Does not change the checkout.

    Raises as `make_request` and `ask_verdict` do if there is no verdict.
    """
    after = draft.follow(plan.changes)
    target = find_target(plan, base, after.fork)
    request = make_request(draft.fork.root, after.changes.apply(), target, proof, select_tests(plan, proof.expr))
    return ask_verdict(request, progress)


def find_target(plan: Plan, base: str, after: Checkout) -> VerifyTarget:
    """What of a plan is to be verified in the fork `after` it: kernels that were there before, where it adds none."""
    return add_gradient(_add_native_kernels(target_of(plan, base), after), after)


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
        elsewhere=plan.elsewhere,
    )


def _add_native_kernels(target: VerifyTarget, after: Checkout) -> VerifyTarget:
    """The target of a plan that only joins a stub with the kernels that were registered for it before."""
    if target.kernels:
        return target
    try:
        native = native_target(after, target.base)
    except NotNative:
        # The target of a plan whose rows join code that only calls other operators, with the kernels of these. Raises
        # PTR019 where one has none, or where nothing is called.
        called = find_called_operators(after, Operator.read(after, target.base))
        natives = [native_target(after, base) for base in called or (target.base,)]
        return replace(
            target,
            kernels=tuple(dict.fromkeys(name for each in natives for name in each.kernels)),
            stubs=tuple(dict.fromkeys(name for each in natives for name in each.stubs)),
            through=called,
        )
    return replace(target, kernels=native.kernels, stubs=native.stubs, pairs=native.pairs)


def select_tests(plan: Plan, expr: str | None) -> str | None:
    """The selected tests, without dtypes that never reach the stub."""
    left_out = " and ".join(f"not mps_{dtype}" for dtype in plan.answered)
    if not left_out:
        return expr
    return f"({expr}) and {left_out}" if expr else left_out
