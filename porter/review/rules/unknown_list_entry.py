"""An entry of a test list that names no operator silences nothing, and hides what it was to silence."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.core.layout import COMMON_MPS, OPINFO_DEFINITIONS, OPINFOS
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Case, Rule

_LITERAL = re.compile(r"""["']([\w.]*)["']""")


def _check(change: Change) -> Iterator[Remark]:
    added = {file.path: file.added for file in change.tests}
    names: frozenset[str] | None = None
    for skip_list in change.lists:
        for entry in skip_list.entries:
            if entry.line not in added.get(skip_list.file, ()):
                continue
            names = _list_known(change) if names is None else names
            if not _is_known(change, entry.name, names):
                what = f"`{entry.name}` of {skip_list.name} names no operator and no OpInfo"
                yield Remark(
                    skip_list.file, entry.line, what, "Name a test by its OpInfo's name and variant, or remove it."
                )


def _list_known(change: Change) -> frozenset[str]:
    """Every string of the OpInfos: their names and their variants' are among them."""
    paths = (OPINFOS, *change.after.list(OPINFO_DEFINITIONS, ".py"))
    texts = (change.after.read(path) for path in paths if change.after.exists(path))
    return frozenset(word for text in texts for word in _LITERAL.findall(text))


def _is_known(change: Change, name: str, names: frozenset[str]) -> bool:
    """Whether a name is an OpInfo's or an operator's, with a variant behind it or not."""
    base = name.strip("_").rpartition(".")[2]
    if name in names or change.rows.has(name) or change.rows.has(base) or base in names:
        return True
    heads = (name[:end] for end in range(len(name) - 1, 0, -1))
    return any((head in names or change.rows.has(head)) and name[len(head) :].lstrip("_") in names for head in heads)


_HYPOT = '            "hypot": [torch.float16],\n'
RULE = Rule(
    "unknown-list-entry",
    Severity.ERROR,
    "An entry that a change adds to a test list names no operator.",
    _check,
    bad=(Case(edits=((COMMON_MPS, _HYPOT, '            # Squares\n            "hypott": [torch.float16],\n'),)),),
    good=(
        Case(edits=((COMMON_MPS, _HYPOT, _HYPOT + '            # As hypot\n            "atan2": [torch.float16],\n'),)),
    ),
)
