"""Verifies the native code of an operator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from porter.core.progress import Progress, ignore
from porter.verdict import client
from porter.verdict.backends.choice import choose_backend
from porter.verdict.errors import NoVerdict
from porter.verdict.gpu_findings import add_findings
from porter.verdict.messages import VerifyRequest
from porter.verdict.result import ALL, ARITHMETICS, AUTO, CUDA, DEFAULT, HOST, Verdict, VerifyTarget


def make_request(
    checkout_root: Path,
    texts: Mapping[str, str],
    op: VerifyTarget,
    expr: str | None = None,
    backend: str = AUTO,
    arithmetic: str = DEFAULT,
    large: bool = False,
    thorough: bool = False,
) -> VerifyRequest:
    """The request for what `verify` answers. Raises PTR100, PTR171, PTR172 or PTR271 as it does."""
    find_arithmetics(arithmetic)
    chosen = choose_backend(backend)
    if chosen.ON_HARDWARE and arithmetic != DEFAULT:
        what = f"the {chosen.NAME} backend uses the arithmetic of its GPU"
        raise NoVerdict("PTR171", what, hint="Omit --arithmetic.")
    if large and chosen.NAME != HOST:
        what = f"the {chosen.NAME} backend has no sparse memory for large tensors"
        raise NoVerdict("PTR271", what, hint="Omit --large, or use --backend host.")
    return VerifyRequest(
        checkout_root.resolve(), texts, op, expr, chosen.NAME, arithmetic, large=large, thorough=thorough
    )


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
    """Builds the checkout with the plan's `texts` (relative file -> new text) in a private tree, and tests `op` there.

    `expr` selects tests as pytest's -k does. `backend` is one of `choice.BACKENDS`, or `auto` for the most complete one
    available. `large` adds tests on tensors whose offsets pass 32 bits, `thorough` the
    variations that cost more than a verdict has by default. Problems with the port are failures in the
    verdict; raises PorterError only if there is no verdict:
    PTR100 (no compiler), PTR170 (no torch, or no process that answers), PTR171 (no such backend or arithmetic),
    PTR172 (an operator that the backend cannot call) or PTR271 (no large tensors there).
    """
    request = make_request(checkout_root, texts, op, expr, backend, arithmetic, large, thorough)
    found = client.request_verdict(request, progress)
    return add_findings(found, request) if request.backend == CUDA else found


def find_arithmetics(name: str) -> tuple[str, ...]:
    """The arithmetics of that name: every one for `all`. Raises PTR171."""
    if name not in (*ARITHMETICS, ALL):
        named = ", ".join((*ARITHMETICS, ALL))
        raise NoVerdict("PTR171", f"unknown arithmetic {name}", hint=f"Choose one of {named}.")
    return ARITHMETICS if name == ALL else (name,)
