"""Verifies the native code of an operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from aten_overlay.cuda.sanitizer import TOOLS, run_sanitized
from aten_overlay.metal.sanitizer.checks import select
from porter.core.progress import Progress, ignore
from porter.core.python import own_module
from porter.verdict import client
from porter.verdict.backends.choice import choose_backend
from porter.verdict.errors import NoVerdict, raising_porter_errors
from porter.verdict.messages import VerifyRequest, encode_request
from porter.verdict.result import (
    ALL,
    ARITHMETICS,
    AUTO,
    CUDA,
    DEFAULT,
    FAST,
    HOST,
    Failure,
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
