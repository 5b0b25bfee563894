"""Turns test outcomes into a verdict, and merges verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from porter.core.dtypes import BY_METAL
from porter.core.errors import PorterError
from porter.verdict.behavior import SampleResult
from porter.verdict.result import (
    BUILD,
    DEFAULT,
    HOST,
    MOST_TOLD,
    NO_TEST,
    DTypeVerdict,
    Failure,
    Skip,
    Verdict,
    VerifyTarget,
    add_failures,
    add_findings,
)

_EXPECTED = "listed as an expected failure"
_MATCHES = "test_output_match"
_PASSED = ("passed", "xpassed")


def verdict_of_error(
    op: str, error: PorterError, seconds: float, backend: str = HOST, arithmetic: str = DEFAULT
) -> Verdict:
    """The verdict on a port that failed before its tests."""
    return verdict_without_tests(
        op, [Failure(BUILD, f"{error.code} {error.what}", place=str(error.place or ""))], seconds, backend, arithmetic
    )


def verdict_without_tests(
    op: str, failures: Sequence[Failure], seconds: float, backend: str = HOST, arithmetic: str = DEFAULT
) -> Verdict:
    """The verdict on a port that failed its lint or build, without tests."""
    return Verdict(op, backend, arithmetic, 0, len(failures), 0, 0, None, round(seconds, 3), failures=tuple(failures))


def judge(op: str, outcomes: Iterable[Any], seconds: float, backend: str = HOST, arithmetic: str = DEFAULT) -> Verdict:
    """The verdict on test outcomes (`porter.verdict.suite.runner.Outcome`).

    No tests is a failure; so is it if all of the fork's that compare results are expected to fail, and fewer others
    pass: these have few of the samples.
    """
    outcomes = list(outcomes)
    dtypes = dict.fromkeys(o.dtype for o in outcomes if o.dtype)
    rows = tuple(_count_dtype(dtype, [o for o in outcomes if o.dtype == dtype]) for dtype in dtypes)
    failures = [
        Failure(o.test, o.reason, o.dtype, kernel_calls=o.calls, findings=o.findings)
        for o in outcomes
        if o.status == "failed"
    ]
    if not outcomes:
        failures.append(Failure(NO_TEST, "no test was selected, so nothing was verified"))
    matches = [o for o in outcomes if f".{_MATCHES}" in o.test]
    passed = sum(o.status in _PASSED for o in outcomes)
    if 0 < passed < len(matches) and all(o.status == "xfailed" for o in matches):
        what = f"all {len(matches)} tests that compare results are listed as expected failures; of others {passed} pass"
        failures.append(Failure(_MATCHES, what))
    ulps = [o.max_ulp for o in outcomes if o.max_ulp is not None]
    return Verdict(
        op=op,
        backend=backend,
        arithmetic=arithmetic,
        passed=passed,
        failed=len(failures),
        skipped=sum(o.status in ("skipped", "xfailed") for o in outcomes),
        kernel_calls=sum(o.calls for o in outcomes),
        max_ulp=max(ulps, default=None),
        seconds=round(seconds, 3),
        dtypes=rows,
        failures=tuple(failures),
        notes=(*(f"{o.test}: {o.reason}" for o in outcomes if o.status == "xpassed"), *_count_remarks(outcomes)),
        skips=_count_skips(outcomes),
        fork_findings=tuple(dict.fromkeys(finding for o in outcomes for finding in o.fork_findings)),
    )


def list_listed_types(outcomes: Iterable[Any]) -> tuple[str, ...]:
    """The types (torch names) in which all of the fork's tests that compare results are expected to fail, and do."""
    matches = [outcome for outcome in outcomes if f".{_MATCHES}" in outcome.test]
    judged = {outcome.dtype for outcome in matches if outcome.status != "xfailed"}
    return tuple(dict.fromkeys(outcome.dtype for outcome in matches if outcome.dtype not in judged))


def require_tests(found: Verdict, lost: Iterable[str]) -> Verdict:
    """Fails a verdict on an edit of the test lists that leaves fewer tests than there were."""
    reason = "no longer tested: the edited lists skip it or expect it to fail"
    failures = (*found.failures, *(Failure(test, reason) for test in dict.fromkeys(lost)))
    return replace(found, failed=len(failures), failures=failures)


def require_samples(found: Verdict, lost: Sequence[SampleResult]) -> Verdict:
    """Fails a verdict on a port that refuses, in some type, what the old path computed."""
    first = {each.dtype: each for each in reversed(lost)}
    failures = [
        Failure(each.sample, f"no longer computed, as before the port: {each.message}", dtype)
        for dtype, each in first.items()
    ]
    return add_failures(found, failures)


def require_no_worse(found: Verdict, worse: Sequence[SampleResult]) -> Verdict:
    """Fails a verdict on a port that is farther from the CPU than the old path, in some type.

    All tests together compare the same values: those that are not selected, or are expected to fail, cannot speak for
    them.
    """
    first = {each.dtype: each for each in reversed(worse)}
    what = "no test judges it, and the old path matched the CPU"
    failures = [Failure(each.sample, f"{what}: {each.message}", dtype) for dtype, each in first.items()]
    return add_failures(found, failures)


def require_kernel_calls(target: VerifyTarget, found: Verdict) -> Verdict:
    """Fails a verdict whose tests pass without calling any kernel under test: they say nothing of it."""
    if not target.kernels or found.kernel_calls or not found.passed:
        return found
    unreached = Failure(NO_TEST, f"no test reached its kernels ({', '.join(target.kernels)})")
    return replace(found, failed=found.failed + 1, failures=(*found.failures, unreached))


def require_launches(
    target: VerifyTarget, found: Verdict, unlaunched: Iterable[tuple[str, str]], demanded: Collection[str]
) -> Verdict:
    """Fails or notes planned pairs of types (Metal names) of which no kernel was launched.

    A failure is one in whose input type tests pass and call kernels under test: host code never dispatches to it,
    though the type (torch name) is among those `demanded`. Tests say nothing of others, which are the first notes.
    """
    called = {row.dtype for row in found.dtypes if row.passed and row.kernel_calls and row.dtype in demanded}
    what = f"no test launched a kernel of {', '.join(target.kernels)} that takes"
    failures, unproven = [], []
    for given, made in unlaunched:
        dtype, pair = BY_METAL[given].torch, f"{given} and returns {made}"
        if dtype in called:
            failures.append(Failure("launches", f"{what} {pair}, and tests in {dtype} called others", dtype))
        else:
            unproven.append(pair)
    more = f", and {len(unproven) - MOST_TOLD} other pairs of types" if len(unproven) > MOST_TOLD else ""
    notes = [f"not proven: {what} {', or '.join(unproven[:MOST_TOLD])}{more}"] if unproven else []
    return replace(
        found,
        failed=found.failed + len(failures),
        failures=(*found.failures, *failures),
        notes=(*notes, *found.notes),
    )


def require_registrations(verdict: Verdict, missing: Iterable[str]) -> Verdict:
    """Fails a verdict on kernels that are not registered, though others of the operator are for both index widths."""
    failures = [
        Failure("registration", f"no kernel {name} is registered, as others are of its width") for name in missing
    ]
    return add_failures(verdict, failures)


def add_notes(found: Verdict, notes: Iterable[str], seconds: float) -> Verdict:
    """Adds notes and the total time to a verdict."""
    return replace(found, notes=(*found.notes, *notes), seconds=round(seconds, 3))


def describe_lists(
    target: VerifyTarget, freed: Sequence[str], stale: Sequence[str], outcomes: Iterable[Any]
) -> list[str]:
    """Notes on the test lists: tests removed from them (`freed`), and listed tests that pass (`stale`)."""
    status = {o.test: o.status for o in outcomes}
    passing = [test for test in freed if status.get(test, "") == "passed"]
    others = {0: "", 1: "", 2: ", and 1 other test"}.get(len(passing), f", and {len(passing) - 1} other tests")
    notes = [f"removed from the test lists: {test} now passes{others}" for test in passing[:1]]
    notes += [f"removed from the test lists: {test} still fails" for test in freed if test not in passing]
    notes += [f"still on the test lists, but passes: {t}" for t in stale if status.get(t) != "xpassed"]
    if target.removed and not freed:
        gone = ", ".join(f"{e.list}[{e.entry}]" for e in target.removed)
        notes.append(f"no selected test depends on the removed entries {gone}")
    return notes


def merge_bounds_check(found: Verdict, checked: Sequence[Verdict]) -> Verdict:
    """Adds the failures found only with bounds checks, first because they name the kernel."""
    known = {(f.test, f.reason) for f in (*found.failures, *found.failed_before)}
    new = [f for other in checked for f in other.failures if (f.test, f.reason) not in known and f.test != NO_TEST]
    failures = (*(replace(f, reason=f"with bounds checks: {f.reason}") for f in new), *found.failures)
    whole = replace(found, failures=failures, failed=len(failures))
    return add_findings(whole, (finding for other in checked for finding in other.fork_findings))


def describe_large(found: Verdict, refused: Sequence[str]) -> Verdict:
    """The verdict of a run on large tensors, with a note of what it covered and what host code `refused`."""
    tests = found.passed + found.failed
    told = f"large tensors: {tests} tests, {found.kernel_calls} calls of kernels under test"
    if not found.kernel_calls:
        told += ": no kernel under test ran, so that nothing is known of its index width"
    return replace(found, notes=(told, *(f"large tensors: {each}" for each in refused)))


def merge_large(found: Verdict, large: Verdict) -> Verdict:
    """Adds the failures and notes of a run on large tensors."""
    new = (replace(f, reason=f"in large tensors: {f.reason}") for f in large.failures if f.test != NO_TEST)
    failures = (*found.failures, *new)
    passed = found.passed + large.passed
    notes = (*found.notes, *large.notes)
    whole = replace(found, failures=failures, failed=len(failures), passed=passed, notes=notes)
    return add_findings(whole, large.fork_findings)


def merge_arithmetics(verdicts: Sequence[Verdict]) -> Verdict:
    """Merges verdicts under several arithmetics: the first one's counts, all failures, and a note if they differ."""
    first, *others = verdicts
    failures, notes, before = list(first.failures), list(first.notes), list(first.failed_before)
    for other in others:
        before += [f for f in other.failed_before if f.test not in {each.test for each in before}]
        known = {(f.test, f.dtype) for f in first.failures}
        new = [f for f in other.failures if (f.test, f.dtype) not in known]
        failures += [replace(f, reason=f"under {other.arithmetic} arithmetic: {f.reason}") for f in new]
        if new:
            notes.append(f"the verdict depends on the arithmetic: {len(new)} tests fail only under {other.arithmetic}")
    whole = replace(
        first,
        arithmetic="+".join(v.arithmetic for v in verdicts),
        failed=len(failures),
        failures=tuple(failures),
        notes=tuple(notes),
        failed_before=tuple(before),
        seconds=max(v.seconds for v in verdicts),
        kernel_calls=sum(v.kernel_calls for v in verdicts),
    )
    return add_findings(whole, (finding for other in others for finding in other.fork_findings))


def _count_skips(outcomes: Iterable[Any]) -> tuple[Skip, ...]:
    """The reasons, by their first lines, the most frequent first."""
    reasons = Counter(
        _EXPECTED if o.status == "xfailed" else o.reason.strip().partition("\n")[0]
        for o in outcomes
        if o.status in ("skipped", "xfailed")
    )
    return tuple(Skip(reason, tests) for reason, tests in reasons.most_common())


def _count_remarks(outcomes: Iterable[Any]) -> Iterator[str]:
    """What holds for samples of tests, and for how many."""
    for remark, samples in Counter(remark for o in outcomes for remark in o.remarks).items():
        yield f"{remark}: {samples} sample{'s' * (samples > 1)}"


def _count_dtype(dtype: str, outcomes: Sequence[Any]) -> DTypeVerdict:
    ulps = [(o.max_ulp, o.cpu_ulp) for o in outcomes if o.max_ulp is not None]
    max_ulp, cpu_ulp = max(ulps, default=(None, None))
    return DTypeVerdict(
        dtype,
        passed=sum(o.status in _PASSED for o in outcomes),
        failed=sum(o.status == "failed" for o in outcomes),
        skipped=sum(o.status in ("skipped", "xfailed") for o in outcomes),
        kernel_calls=sum(o.calls for o in outcomes),
        max_ulp=max_ulp,
        cpu_ulp=cpu_ulp,
        seconds=round(sum(o.seconds for o in outcomes), 3),
    )
