"""Tells the failures that a fork had before a port from those that the port made.

A failure is the fork's own only if the same test, run on the fork as it was, failed too, in the same words, and no
kernel under test computed any of what it found wrong. A port whose kernels repeat an error of the old code is wrong;
the type of a result is what host code chose, if the values agree with the CPU's. Values that only fail upstream's
comparison, and match float64 where the CPU's do not, are a failure of the port if the test passed before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from porter.verdict.errors import refusal_in
from porter.verdict.result import DTypeVerdict, Failure, Finding, Verdict

NOT_RUN = "not run"
EXPECTED = "xfailed"
FAILED = ("failed", EXPECTED)
CRASHED = "crashed"
LISTED = (EXPECTED, "xpassed")
INHERITED, REFUSED = "PTR446", "PTR447"
_ASKED = 4  # failed tests that the old code is run with to tell that
_LINE = re.compile(r'("[^"\s]+\.(?:mm|cpp|h)"):\d+')  # as assertions print it


@dataclass(frozen=True)
class EarlierResult:
    """What came of a test on the fork before the port: its status, and all that it found wrong."""

    test: str
    status: str
    findings: tuple[Finding, ...] = ()


def find_candidates(verdict: Verdict) -> tuple[str, ...]:
    """The failed tests that compared samples and found nothing wrong in one for which a kernel under test ran.

    The fork may have had these failures. A test that breaks otherwise has compared nothing, and is not excused.
    """
    return tuple(f.test for f in verdict.failures if f.findings and all(map(_may_be_older, f.findings)))


def _may_be_older(found: Finding) -> bool:
    """Whether the fork may have had it: an error with a code is that of what stands in for Apple.

    A result of an inner call may be a number that nobody reads, such as the weight of `nll_loss_forward` where losses
    are not averaged: the port of a graph has the graph's.
    """
    is_of_host = found.is_type or found.is_nearer or found.is_as_near or found.is_inner or not found.kernel_calls
    return found.sample >= 0 and is_of_host and refusal_in(found.what) is None


def list_inheritable(verdict: Verdict) -> tuple[str, ...]:
    """A few failed tests that compared values of kernels under test: what the old graph computes may be as wrong."""
    compared = (f.test for f in verdict.failures if f.findings and all(each.sample >= 0 for each in f.findings))
    return tuple(islice((test for test in compared if test not in find_candidates(verdict)), _ASKED))


def tell_apart(verdict: Verdict, before: Mapping[str, EarlierResult]) -> Verdict:
    """The verdict on a port, with every failure's status before it, and without those that the fork had before."""
    failures = [replace(each, before=_status(before.get(each.test))) for each in verdict.failures]
    theirs = [each for each in failures if each.test in before and _had(before[each.test], each)]
    ours = tuple(_explain(before.get(each.test), each) for each in failures if each not in theirs)
    rows = tuple(_move(row, sum(each.dtype == row.dtype for each in theirs)) for row in verdict.dtypes)
    alike = [each.test for each in ours if each.code == INHERITED]
    what = f"fails {len(alike)} of these tests in the same words, the first {alike[0]}" if alike else ""
    note = f"{INHERITED} the old code {what}: its graph is wrong there, and the port computes the same"
    refused = [each.test for each in ours if each.code == REFUSED]
    where = f"in {len(refused)} of these tests, the first {refused[0]}" if refused else ""
    refusal = f"{REFUSED} the port refuses what the old code computes wrongly {where}: the fork's lists ask for it"
    return replace(
        verdict,
        failed=len(ours),
        failures=ours,
        failed_before=(*verdict.failed_before, *theirs),
        dtypes=rows,
        notes=(*verdict.notes, *([note] if alike else []), *([refusal] if refused else [])),
    )


def _refuses(before: EarlierResult, now: Failure) -> bool:
    """Whether a test finds samples refused as not implemented that were wrong before, and nothing new beside."""
    wrong = {each.sample for each in before.findings if each.sample >= 0}
    refused = [each for each in now.findings if each.is_refusal and each.sample in wrong]
    others = (each for each in now.findings if each not in refused)
    return before.status in FAILED and bool(refused) and all(_is_excused(each, before.findings) for each in others)


def _is_inherited(before: EarlierResult, now: Failure) -> bool:
    """Whether the fork's own code computed all that a test finds wrong in values of kernels."""
    return (
        before.status in FAILED
        and bool(now.findings)
        and all(_is_known(each, before.findings) for each in now.findings)
    )


def _status(found: EarlierResult | None) -> str:
    return found.status if found else NOT_RUN


def _had(before: EarlierResult, now: Failure) -> bool:
    """Whether the test failed before, and no kernel under test computed anything that was not wrong before.

    A test of values nearer to float64 than the CPU's that a list expects to fail is no worse: the entry can stay.
    """
    if now.findings and all(each.is_nearer for each in now.findings):
        return before.status in (*FAILED, *LISTED)
    if before.status == CRASHED:  # which says nothing of values; a type or a shape that host code chose is no worse
        return bool(now.findings) and all(each.is_type for each in now.findings)
    if before.status not in FAILED or not now.findings:
        return False
    return all(_is_excused(each, before.findings) for each in now.findings)


def _explain(before: EarlierResult | None, now: Failure) -> Failure:
    """The failure, for the first thing that the fork did not have, or could not: samples that it fails come first.

    It has a code if the fork's own code or lists are to blame for all of it.
    """
    new = [each for each in now.findings if not (_is_excused(each, before.findings) if before else _may_be_older(each))]
    code = ""
    if before is not None:
        code = INHERITED if _is_inherited(before, now) else REFUSED if _refuses(before, now) else ""
    return replace(now, code=code, reason=new[0].what if new else now.reason)


def _is_excused(now: Finding, before: Sequence[Finding]) -> bool:
    """Whether the fork had the finding, or could have: the CPU's own error excuses a sample whose values were wrong
    before. One that was refused, or whose type alone was wrong, says nothing of values.
    """
    was_wrong = any(
        finding.sample == now.sample >= 0 and not finding.is_type and not finding.is_refusal for finding in before
    )
    return now.is_nearer or (now.is_as_near and was_wrong) or (_may_be_older(now) and _is_known(now, before))


def _is_known(now: Finding, before: Sequence[Finding]) -> bool:
    """Whether the sample was wrong before in the same words. Of types alone, other samples may have them, where this
    one's values were wrong: those are what a test names.
    """
    of_sample = [each for each in before if each.sample == now.sample]
    had_values = now.is_type and bool(of_sample) and not any(each.is_type for each in of_sample)
    return any(_words(each) == _words(now) for each in (before if had_values else of_sample))


def _words(found: Finding) -> str:
    """What is wrong; of types alone, without the sample: each test draws its own, where it makes samples.

    An assertion of the fork says its line, which a port moves.
    """
    return _LINE.sub(r"\1", found.type_error or found.what)


def _move(row: DTypeVerdict, count: int) -> DTypeVerdict:
    return replace(row, failed=row.failed - count, failed_before=row.failed_before + count)
