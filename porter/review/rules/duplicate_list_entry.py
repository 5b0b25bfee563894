"""Two entries of one name in a test list: Python keeps the second, and nobody sees that the first is gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from porter.core.layout import COMMON_MPS
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Case, Rule


def _check(change: Change) -> Iterator[Remark]:
    added = {file.path: file.added for file in change.tests}
    for skip_list in change.lists:
        seen = set[str]()
        for entry in skip_list.entries:
            new = entry.line in added.get(skip_list.file, ())
            if entry.name in seen and skip_list.file in added and _is_new(change, skip_list.name, entry.name):
                what = f"{skip_list.name} has `{entry.name}` twice: the first is not read"
                yield Remark(skip_list.file, entry.line, what, "Join the two.")
            seen.add(entry.name)
            twice = [dtype for dtype, count in Counter(entry.dtypes or ()).items() if count > 1]
            if twice and new:
                what = f"`{entry.name}` of {skip_list.name} names {', '.join(twice)} twice"
                yield Remark(skip_list.file, entry.line, what, "Remove one.")


def _is_new(change: Change, name: str, entry: str) -> bool:
    """Whether the fork before the change had an entry once at most."""
    earlier = (e.name for found in change.earlier_lists if found.name == name for e in found.entries)
    return Counter(earlier)[entry] < 2


_HYPOT = '            "hypot": [torch.float16],\n'
RULE = Rule(
    "duplicate-list-entry",
    Severity.ERROR,
    "A test list has an operator twice, or an entry has a dtype twice.",
    _check,
    bad=(
        Case(
            edits=((COMMON_MPS, _HYPOT, _HYPOT + '            # Also this\n            "hypot": [torch.bfloat16],\n'),)
        ),
        Case(edits=((COMMON_MPS, _HYPOT, _HYPOT.replace("float16]", "float16, torch.float16]")),)),
    ),
    good=(Case(edits=((COMMON_MPS, _HYPOT, _HYPOT.replace("float16]", "float16, torch.bfloat16]")),)),),
)
