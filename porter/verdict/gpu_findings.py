"""A verdict's tests on an NVIDIA GPU again, under compute-sanitizer: what it finds are failures with Metal's lines."""

from __future__ import annotations

from dataclasses import replace

from aten_overlay.cuda.sanitizer import TOOLS, run_sanitized
from aten_overlay.metal.sanitizer.checks import select
from porter.core.python import own_module
from porter.verdict import client
from porter.verdict.errors import raising_porter_errors
from porter.verdict.messages import VerifyRequest, encode_request
from porter.verdict.result import Failure, Verdict


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
