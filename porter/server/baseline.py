"""Runs failed tests on the fork as it was before the port, to tell which failures the port did not make."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path

from porter.core import cache, codec
from porter.core.checkout import Checkout
from porter.core.progress import Progress
from porter.server import worker
from porter.server.process import Act
from porter.verdict.backends.choice import BACKENDS
from porter.verdict.baseline import CRASHED, EarlierResult, find_candidates, tell_apart
from porter.verdict.evidence import digest_tested_code, key
from porter.verdict.messages import Answer, BaselineAnswer, ErrorAnswer, VerifyRequest
from porter.verdict.result import Verdict

Run = Callable[[Act], Answer]
CRASHED_CODE = "PTR137"  # the old implementation ended its process


def compare_with_baseline(request: VerifyRequest, verdict: Verdict, run: Run) -> Verdict:
    """The verdict on a port without the failures that the fork had before.

    `run` runs, in a process of their own, only those tests that may have failed before, and each only once for a fork.
    """
    if not request.texts or verdict.failed == 0:
        return verdict
    tests = find_candidates(verdict) if BACKENDS[request.backend].RUNS_HOST_CODE else ()
    evidence = digest_tested_code(Checkout(request.root, "named").as_before(request.earlier)) if tests else ""
    found = {test: _get(request, evidence, verdict.arithmetic, test) for test in tests}
    missing = [test for test, before in found.items() if before is None]
    if missing:
        answer = run(partial(_run_tests, request, missing, verdict.arithmetic))
        if isinstance(answer, ErrorAnswer) and answer.code == CRASHED_CODE and len(missing) > 1:
            answers = [run(partial(_run_tests, request, [test], verdict.arithmetic)) for test in missing]
        else:
            answers = [answer]
        for test, answer in zip(missing, answers, strict=False):
            if isinstance(answer, BaselineAnswer):
                for before in answer.tests:
                    _put(request, evidence, verdict.arithmetic, before)
                    found[before.test] = before
                continue
            assert isinstance(answer, ErrorAnswer)
            if answer.code == CRASHED_CODE:
                found[test] = EarlierResult(test, CRASHED)
            note = f"the fork before the port was not tested: {answer.code} {answer.what.splitlines()[0]}"
            verdict = replace(verdict, notes=(*verdict.notes, note))
    return tell_apart(verdict, {test: before for test, before in found.items() if before})


def _run_tests(request: VerifyRequest, tests: Collection[str], arithmetic: str, progress: Progress) -> Answer:
    old = request.libraries.old
    root, earlier = request.root, request.earlier
    return BaselineAnswer(tuple(worker.run_baseline(root, earlier, request.target, tests, arithmetic, progress, old)))


def _get(request: VerifyRequest, *evidence: str) -> EarlierResult | None:
    text = cache.get(_key(request, *evidence))
    return None if text is None else codec.decode(text, EarlierResult)


def _put(request: VerifyRequest, evidence: str, arithmetic: str, before: EarlierResult) -> None:
    cache.put(_key(request, evidence, arithmetic, before.test), codec.encode(before, EarlierResult))


def _key(request: VerifyRequest, evidence: str, arithmetic: str, test: str) -> Path:
    target = request.target
    return key(evidence, "baseline", target.base, arithmetic, test, repr((target.stubs, target.pairs)))
