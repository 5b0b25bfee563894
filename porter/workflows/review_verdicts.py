"""The verified part of a review: the operators of a change, built and tested before and after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.progress import Steps, ignore, number_progress
from porter.review.finding import Finding, Severity
from porter.review.operators import Touch, TouchedOperator
from porter.verdict.native import native_target
from porter.verdict.result import Failure, Proof, Verdict
from porter.verdict.verify import ask_verdict, make_request
from porter.workflows.verify import NotVerified
from porter.workflows.written import Baseline, request_written

FAILED, LOST, UNPROVEN = "verdict-failed", "verdict-lost", "no-verdict"


def verify_touched(
    checkout: Checkout, before: Baseline, operators: Iterable[TouchedOperator], proof: Proof, progress: Steps = ignore
) -> Iterator[Verdict | NotVerified]:
    """Yields the verdict on each operator whose code the change touches, against the fork before the change.

    A list entry alone is no code. What keeps one from a verdict does not end the others.
    """
    chosen = [operator for operator in operators if operator.touches != (Touch.LIST,)]
    for at, operator in enumerate(chosen):
        report = number_progress(progress, operator.name, at, len(chosen))
        try:
            if operator.moved:
                request = request_written(checkout, before, operator.name, proof, report)
            else:
                target = native_target(checkout, operator.name, beside_graphs=True)
                request = make_request(checkout.root, before.texts, target, proof, proof.expr, before.fork.earlier)
            yield replace(ask_verdict(request, report), op=operator.name)
        except PorterError as error:
            yield NotVerified(operator.name, error)


def find_in_verdict(judged: Verdict | NotVerified, changed: Place) -> Iterator[Finding]:
    """What a verdict says as findings: each failure that the fork did not have, and what the old code did that is lost.

    A test that fails for several dtypes is one finding, at its own place or else at `changed`, where the change begins.
    One without a verdict is an error of its own: nothing is proven of it. An operator on MPSGraph has none to ask for.
    """
    if isinstance(judged, NotVerified):
        severity = Severity.ADVICE if judged.error.code in ("PTR018", "PTR019") else Severity.ERROR
        place = judged.error.place or changed
        what = f"no verdict on {judged.op}: {judged.error.code} {judged.error.what}"
        yield _make(place.file, place.line, UNPROVEN, severity, what, judged.error.hint)
        return
    by_test: dict[str, list[Failure]] = {}
    for failure in judged.failures:
        by_test.setdefault(failure.test.removesuffix(f"_{failure.dtype}"), []).append(failure)
    for test, failures in by_test.items():
        first = failures[0]
        path, line = _read_place(first) if first.place else (changed.file, changed.line)
        reason = first.reason.strip().splitlines()[0] if first.reason.strip() else "failed"
        dtypes = ", ".join(failure.dtype for failure in failures if failure.dtype)
        about = f" ({dtypes})" if dtypes else ""
        yield _make(path, line, FAILED, Severity.ERROR, f"{judged.op}: {test}{about}: {reason}")
    for lost in judged.old_path.lost if judged.old_path else ():
        hint = "Keep it, or say in the text that it goes."
        yield _make(changed.file, changed.line, LOST, Severity.WARNING, f"{judged.op}: {lost}", hint)


def _make(path: str, line: int, rule: str, severity: Severity, what: str, hint: str = "") -> Finding:
    return Finding(path, line, 0, rule, severity, what, hint)


def _read_place(failure: Failure) -> tuple[str, int]:
    path, _, line = failure.place.rpartition(":")
    return (path, int(line)) if path and line.isdigit() else (failure.place, 0)
