"""A test that a change silences: reviewers ask why, and the reason stands above the entry."""

from __future__ import annotations

from collections.abc import Iterator

from porter.aten.skip_lists import Entry, ListKind, SkipList
from porter.core.layout import COMMON_MPS
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Case, Rule


def _check(change: Change) -> Iterator[Remark]:
    added = {file.path: file.added for file in change.tests}
    before = {(found.name, e.name): e for found in change.earlier_lists for e in found.entries}
    for skip_list in change.lists:
        if skip_list.kind not in (ListKind.SKIP, ListKind.XFAIL, ListKind.REFUSE):
            continue
        for entry in skip_list.entries:
            if entry.line in added.get(skip_list.file, ()) and not _is_explained(skip_list, entry):
                grown = _find_growth(before.get((skip_list.name, entry.name)), entry)
                if grown:
                    what = f"{skip_list.name} silences {grown} of `{entry.name}`, and no comment says why"
                    yield Remark(
                        skip_list.file, entry.line, what, "Mend the kernel, or say above the entry what fails."
                    )


def _find_growth(earlier: Entry | None, entry: Entry) -> str:
    """What an entry silences that it did not before: dtypes, or every test."""
    if entry.dtypes is None:
        return "" if earlier is not None and earlier.dtypes is None else "every test"
    if earlier is not None and earlier.dtypes is None:
        return ""
    return ", ".join(dtype for dtype in entry.dtypes if earlier is None or dtype not in (earlier.dtypes or ()))


def _is_explained(skip_list: SkipList, entry: Entry) -> bool:
    """Whether a comment stands on the line, or above it with nothing but entries between."""
    lines = skip_list.text.splitlines()
    if "#" in lines[entry.line - 1]:
        return True
    return lines[entry.line - 2].lstrip().startswith("#")


_HYPOT = '            "hypot": [torch.float16],\n'
RULE = Rule(
    "new-list-entry",
    Severity.WARNING,
    "A change silences a test, and no comment at the entry says why.",
    _check,
    bad=(
        Case(edits=((COMMON_MPS, _HYPOT, _HYPOT + '            "atan2": [torch.float16],\n'),)),
        Case(
            edits=(
                (
                    COMMON_MPS,
                    "            # The squares overflow in half precision\n" + _HYPOT,
                    '            "hypot": [torch.float16, torch.float32],\n',
                ),
            )
        ),
    ),
    good=(
        Case(
            edits=(
                (COMMON_MPS, _HYPOT, _HYPOT + '            # Off by one ULP\n            "atan2": [torch.float16],\n'),
            )
        ),
        Case(edits=((COMMON_MPS, "            # The squares overflow in half precision\n" + _HYPOT, ""),)),
    ),
)
