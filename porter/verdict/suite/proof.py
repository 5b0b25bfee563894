"""Checks the edit of the test lists: removed entries now pass, and remaining ones still fail."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite import lists, runner
from porter.verdict.suite.context import Context
from porter.verdict.suite.made_opinfos import list_opinfos

# Upstream's tests, the class they are in, and the list that speaks of each.
LISTED = {
    "test_output_match": ("TestConsistency", "mps_ops_modifier"),
    "test_output_grad_match": ("TestConsistency", "mps_ops_grad_modifier"),
}


@dataclass(frozen=True)
class Proof:
    """`freed` tests were listed before the edit and are not now; `stale` ones are listed still, and pass."""

    freed: tuple[str, ...]
    stale: tuple[str, ...]


def prove(context: Context, outcomes: Sequence[runner.Outcome]) -> Proof:
    """Compares the lists before and after, and runs what they skip, without them."""
    ran = {o.test for o in outcomes}
    before = set(listed(context, context.lists_file, context.lists_before)) & ran
    after = set(listed(context, context.lists_file, context.lists)) & ran
    skipped = [o.test for o in outcomes if o.status == "skipped" and o.test in after]
    stale = [o.test for o in outcomes if o.status == "xpassed"]
    if skipped:
        again = runner.run(replace(context, lists=""), " or ".join(skipped))
        stale += [o.test for o in again if o.status == "passed" and o.test in skipped]
    return Proof(tuple(sorted(before - after)), tuple(sorted(stale)))


def find_lost(context: Context, outcomes: Sequence[runner.Outcome], expression: str | None = None) -> Iterator[str]:
    """Tests that the lists let pass or fail before the edit and do not now, and those of planned types that they skip.

    Fewer tests than before the edit prove less, whoever edits the lists. Of tests of this suite, which no list speaks
    of, one that is skipped is none.
    """
    if context.lists != context.lists_before:
        before, after = (set(_unlisted(context, text)) for text in (context.lists_before, context.lists))
        wanted = runner.matcher(expression)
        yield from sorted(test for test in before - after if wanted(test))
    for each in outcomes:
        own = not each.test.partition(".")[2].startswith(runner.UPSTREAM)
        if own and each.status == "skipped" and each.dtype in context.dtypes:
            yield each.test


def _unlisted(context: Context, text: str) -> Iterator[str]:
    """The names of upstream's tests of planned types that a list file leaves as they are."""
    marked = set(listed(context, context.lists_file, text))
    for name in _available(context, context.lists_file, text):
        if name not in marked and name.rpartition("_")[2] in context.dtypes:
            yield name


def _available(context: Context, file: str, text: str) -> Iterator[str]:
    modifiers = lists.modifiers(file, text)
    for test, (cls, modifier) in LISTED.items():
        for op in modifiers[modifier]([copy.deepcopy(op) for op in _tested(context)]):
            for dtype in sorted(op.supported_dtypes("mps"), key=str):
                yield _name(cls, test, op, dtype)


def listed(context: Context, file: str, text: str) -> Iterator[str]:
    """The names of upstream's tests that a list file decorates, for the operators of a run."""
    modifiers = lists.modifiers(file, text)
    for test, (cls, modifier) in LISTED.items():
        plain = _tested(context)
        marked = modifiers[modifier]([copy.deepcopy(op) for op in plain])
        for old, new in zip(plain, marked, strict=True):
            added = new.decorators[len(old.decorators or ()) :]
            for dtype in sorted(new.supported_dtypes("mps"), key=str):
                if any(d.is_active(cls, test, "mps", dtype, {}) for d in added if hasattr(d, "is_active")):
                    yield _name(cls, test, new, dtype)


def _tested(context: Context) -> list[OpInfo]:
    return list_opinfos(context.bases, context.through, context.through_backward)


def _name(cls: str, test: str, op: OpInfo, dtype: Any) -> str:
    return f"{cls}MPS.{test}_{op.formatted_name}_mps_{str(dtype).removeprefix('torch.')}"
