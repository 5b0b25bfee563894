"""An entry that leaves a test list though nothing of its operator changed: nothing says that its test passes now."""

from __future__ import annotations

from collections.abc import Iterator

from porter.aten.skip_lists import ListKind
from porter.core.layout import COMMON_MPS
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.operators import Touch, find_touched
from porter.review.rule import Case, Rule


def _check(change: Change) -> Iterator[Remark]:
    paths = {file.path for file in change.tests}
    if not paths:
        return
    now = {(found.name, e.name): e.dtypes for found in change.lists for e in found.entries}
    touched = {operator.name for operator in find_touched(change) if operator.touches != (Touch.LIST,)}
    for skip_list in change.earlier_lists:
        if skip_list.kind is ListKind.ALLOW or skip_list.file not in paths:
            continue
        for entry in skip_list.entries:
            gone = (skip_list.name, entry.name) not in now
            remaining = now.get((skip_list.name, entry.name))
            narrowed = not gone and remaining is not None and set(entry.dtypes or ()) - set(remaining)
            if (gone or narrowed) and change.rows.has(entry.name) and entry.name not in touched:
                what = f"`{entry.name}` leaves {skip_list.name}, and nothing of its code changes"
                hint = "Say what made its tests pass, and show that they do: `porter verify`."
                yield Remark(skip_list.file, 0, what, hint)


_HYPOT = '            # The squares overflow in half precision\n            "hypot": [torch.float16],\n'
_IGAMMA = '            # Not an operator of this fork\n            "igamma": None,\n'
RULE = Rule(
    "unproven-removal",
    Severity.WARNING,
    "An entry leaves a test list, and the change touches no code of its operator.",
    _check,
    bad=(Case(edits=((COMMON_MPS, _HYPOT, ""),)),),
    good=(Case(edits=((COMMON_MPS, _IGAMMA, ""),)),),
)
