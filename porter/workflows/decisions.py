"""What verdicts of all tests decided about ports, remembered by the content that they were planned from.

A plan without a verdict takes the candidates that the last verdict chose. What is remembered is of exactly this fork,
this first plan, torch and porter: after a change to any of them, nothing is known until the next verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from porter.core import cache, codec
from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.dtypes import Kind
from porter.core.errors import PorterError
from porter.metal.kernel import CandidateChoice
from porter.plan.plan import Plan
from porter.verdict.evidence import digest_tested_code, key


@dataclass(frozen=True)
class Decision:
    """The candidates (functor, kind of element, index) that a verdict chose, and whether the port `passed` with them.

    Entries of the test lists stay for the tests `listed`. `changes` is the digest of the port's diff; a `thorough`
    verdict had the variations that cost more.
    """

    chosen: tuple[tuple[str, Kind, int], ...]
    listed: tuple[str, ...]
    passed: bool
    thorough: bool
    changes: str

    @property
    def choice(self) -> CandidateChoice:
        return {(functor, kind): index for functor, kind, index in self.chosen}

    def is_of(self, plan: Plan) -> bool:
        """Whether the verdict was on exactly this port."""
        return self.changes == _digest_changes(plan)


def remember_decision(
    checkout: Checkout, first: Plan, choice: CandidateChoice, listed: frozenset[str], plan: Plan, passed: bool,
    thorough: bool,
) -> None:  # fmt: skip
    """Keeps what a verdict of all tests chose in place of the `first` plan of a fork."""
    before = recall_decision(checkout, first)
    again = before is not None and before.is_of(plan) and before.thorough and before.passed and passed
    chosen = tuple((functor, kind, index) for (functor, kind), index in choice.items())
    kept = Decision(chosen, tuple(sorted(listed)), passed, thorough or again, _digest_changes(plan))
    cache.put(_find_file(checkout, first), codec.encode(kept, Decision))


def recall_decision(checkout: Checkout, first: Plan) -> Decision | None:
    """What the last verdict chose in place of the `first` plan of a fork; None if nothing is known of it."""
    try:
        text = cache.get(_find_file(checkout, first))
    except PorterError:  # without torch there was no verdict
        return None
    found: Decision | None = None if text is None else codec.decode(text, Decision)
    return found


def count_candidates(plan: Plan) -> int:
    """How many candidates there are for the functor of a plan that has most."""
    return max((origin.count for functor in plan.functors for origin in functor.origins), default=1)


def _find_file(checkout: Checkout, first: Plan) -> Path:
    described = replace(first, changes=ChangeSet({}, ()))  # what other ports leave around its lines says nothing of it
    return key(digest_tested_code(checkout), "decisions", first.op, repr(described))


def _digest_changes(plan: Plan) -> str:
    return cache.digest(plan.changes.diff())
