"""Hunks of a change set, some of which are kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from porter.core.change_set import ChangeSet, Hunk, keep_hunks, split_hunks
from porter.core.edits import Edit

LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "  c\n"]), max_size=40)
FILE = "f.mm"


def list_hunks(changes: ChangeSet) -> list[Hunk]:
    return [hunk for _, hunks in split_hunks(changes) for hunk in hunks]


@given(LINES, st.booleans(), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), LINES), max_size=4))
def test_all_hunks_are_the_change_set(
    lines: list[str], ended: bool, replaced: list[tuple[int, int, list[str]]]
) -> None:
    text = "".join(lines) + ("" if ended else "last")
    ends = [0]
    for line in [*lines, *([] if ended else ["last"])]:
        ends.append(ends[-1] + len(line))
    edits, at = list[Edit](), 0
    for start, count, new in sorted(replaced, key=lambda row: row[0]):
        first, last = (min(place, len(ends) - 1) for place in (start, start + count))
        if first >= at:
            edits.append(Edit(FILE, ends[first], ends[last], "".join(new)))
            at = last + 1
    changes = ChangeSet({FILE: text}, tuple(edits))
    hunks = list_hunks(changes)
    kept = keep_hunks(changes, hunks)
    assert kept.gone == changes.gone
    assert kept.gone or {FILE: text} | kept.apply() == {FILE: text} | changes.apply()


def test_a_hunk_that_is_left_out_stays_as_it_was() -> None:
    lines = [f"{number}\n" for number in range(30)]
    text = "".join(lines)
    changes = ChangeSet(
        {FILE: text}, tuple(Edit(FILE, text.index(at), text.index(at), "new\n") for at in ("5\n", "25\n"))
    )
    first, last = list_hunks(changes)
    assert keep_hunks(changes, [last]).apply()[FILE] == text.replace("25\n", "new\n25\n")
    assert keep_hunks(changes, [first]).apply()[FILE] == text.replace("4\n5\n", "4\nnew\n5\n", 1)


def test_a_file_that_comes_or_goes_is_one_hunk() -> None:
    changes = ChangeSet({"old.mm": "x\ny"}, (Edit("new.mm", 0, 0, "a\nb"),), frozenset({"old.mm"}))
    new, old = list_hunks(changes)
    assert (new.file, new.added, old.removed) == ("new.mm", "a\nb", "x\ny")
    assert keep_hunks(changes, [new]).apply() == {"new.mm": "a\nb"}
    assert keep_hunks(changes, [old]).gone == {"old.mm"}
    assert keep_hunks(changes, [new, old]).diff() == changes.diff()
