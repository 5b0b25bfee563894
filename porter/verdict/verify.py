"""Verifies the native code of an operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from aten_overlay.cuda.sanitizer import TOOLS, run_sanitized
from aten_overlay.metal.sanitizer.checks import select
from porter.aten.operator import Operator, find_called_operators
from porter.core.checkout import Checkout
from porter.core.progress import Progress, ignore
from porter.core.python import own_module
from porter.plan.plan import Draft, Plan
from porter.verdict import client
from porter.verdict.backends.choice import choose_backend
from porter.verdict.errors import NotNative, NoVerdict, raising_porter_errors
from porter.verdict.messages import VerifyRequest, encode_request
from porter.verdict.native import add_gradient, native_target
from porter.verdict.result import (
    ALL,
    ARITHMETICS,
    AUTO,
    CUDA,
    DEFAULT,
    FAST,
    HOST,
    Failure,
    ListEntry,
    Proof,
    Verdict,
    VerifyTarget,
)


def add_findings(found: Verdict, request: VerifyRequest) -> Verdict:
    """The verdict with what the checks that `--sanitize` names find. Raises PTR394 without compute-sanitizer."""
    failures = [failure for check in select() if check in TOOLS for failure in _find_failures(check, request)]
    notes = tuple(f"compute-sanitizer: {check}" for check in select() if check in TOOLS)
    return replace(
        found,
        failures=(*found.failures, *failures),
        failed=found.failed + len(failures),
        notes=(*found.notes, *notes),
    )


def _find_failures(check: str, request: VerifyRequest) -> list[Failure]:
    program, question = own_module(client.SERVER, "--once"), encode_request(client.complete(request))
    with raising_porter_errors():
        findings, _ = run_sanitized(check, program.command, program.environment, given=question)
    return [
        Failure(f"compute-sanitizer {check}", str(each), place=":".join(map(str, each.lines[0])) if each.lines else "")
        for each in findings
    ]


def make_request(
    checkout_root: Path,
    texts: Mapping[str, str],
    op: VerifyTarget,
    proof: Proof,
    expr: str | None = None,
    earlier: Mapping[str, str | None] | None = None,
) -> VerifyRequest:
    """The request for what `ask_verdict` answers, of the tests that `expr` selects. Raises PTR171, PTR172 or PTR271."""
    find_arithmetics(proof.arithmetic)
    chosen = choose_backend(proof.backend)
    if chosen.ON_HARDWARE and proof.arithmetic != DEFAULT:
        what = f"the {chosen.NAME} backend uses the arithmetic of its GPU"
        raise NoVerdict("PTR171", what, hint="Omit --arithmetic.")
    if proof.large and chosen.NAME != HOST:
        what = f"the {chosen.NAME} backend has no sparse memory for large tensors"
        raise NoVerdict("PTR271", what, hint="Omit --large, or use --backend host.")
    return VerifyRequest(
        checkout_root.resolve(),
        texts,
        op,
        expr,
        chosen.NAME,
        proof.arithmetic,
        large=proof.large,
        thorough=bool(proof.thorough),
        earlier=earlier or {},
        selects=proof.selects,
        strict=proof.strict,
    )


def ask_verdict(request: VerifyRequest, progress: Progress = ignore) -> Verdict:
    """Builds the checkout with the plan's texts in a private tree, and tests the operator there.

    Problems with the port are failures in the verdict; raises PorterError only if there is no verdict:
    PTR100 (no compiler), PTR170 (no torch, or no process that answers) or PTR430 (no test is selected).
    """
    found = client.request_verdict(request, progress)
    return add_findings(found, request) if request.backend == CUDA else found


def verify(
    checkout_root: Path,
    texts: Mapping[str, str],
    op: VerifyTarget,
    expr: str | None = None,
    backend: str = AUTO,
    arithmetic: str = DEFAULT,
    progress: Progress = ignore,
    large: bool = False,
    thorough: bool = False,
) -> Verdict:
    """The verdict on the checkout with the plan's `texts` (relative file -> new text).

    `expr` selects tests as pytest's -k does. `backend` is one of `choice.BACKENDS`, or `auto` for the most complete one
    available. `large` adds tests on tensors whose offsets pass 32 bits, `thorough` the
    variations that cost more than a verdict has by default. Raises as `make_request` and `ask_verdict` do.
    """
    proof = Proof(expr, backend, arithmetic, large, thorough)
    return ask_verdict(make_request(checkout_root, texts, op, proof, expr), progress)


def find_arithmetics(name: str) -> tuple[str, ...]:
    """The arithmetics of that name: every one that torch lets a GPU use for `all`. Raises PTR171."""
    if name not in (*ARITHMETICS, FAST, ALL):
        named = ", ".join((*ARITHMETICS, FAST, ALL))
        raise NoVerdict("PTR171", f"unknown arithmetic {name}", hint=f"Choose one of {named}.")
    return ARITHMETICS if name == ALL else (name,)


# Verifies a plan.


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
