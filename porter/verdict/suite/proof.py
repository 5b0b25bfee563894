"""Checks the edit of the test lists: removed entries now pass, and remaining ones still fail."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite import lists, runner
from porter.verdict.suite.context import Context

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


def listed(context: Context, file: str, text: str) -> Iterator[str]:
    """The names of upstream's tests that a list file decorates, for the operators of a run."""
    modifiers = lists.modifiers(file, text)
    for test, (cls, modifier) in LISTED.items():
        plain = [op for op in op_db if context.names(op) or op.full_name in context.through]
        marked = modifiers[modifier]([copy.deepcopy(op) for op in plain])
        for old, new in zip(plain, marked, strict=True):
            added = new.decorators[len(old.decorators or ()) :]
            for dtype in sorted(new.supported_dtypes("mps"), key=str):
                if _active(added, cls, test, dtype):
                    name = str(dtype).removeprefix("torch.")
                    yield f"{cls}MPS.{test}_{_formatted(new)}_mps_{name}"


def _active(decorators: Iterable[Any], cls: str, test: str, dtype: Any) -> bool:
    return any(d.is_active(cls, test, "mps", dtype, {}) for d in decorators if hasattr(d, "is_active"))


def _formatted(op: OpInfo) -> str:
    return str(op.formatted_name)
