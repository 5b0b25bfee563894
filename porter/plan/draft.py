"""A fork with the changes planned so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.edits import Edit


@dataclass(frozen=True)
class Draft:
    """The fork after some planned steps, and their combined changes to the files on disk."""

    fork: Checkout
    changes: ChangeSet = ChangeSet({}, ())  # noqa: RUF009 (a frozen value)

    def apply(self, edits: Iterable[Edit]) -> Draft:
        """The draft with edits of its current texts, their lines ended as those of the file are, or with new files."""
        made = tuple(edits)
        base = {edit.file: self.fork.read(edit.file) for edit in made if self.fork.exists(edit.file)}
        return self.follow(ChangeSet(base, tuple(_ended_alike(edit, base.get(edit.file, "")) for edit in made)))

    def follow(self, step: ChangeSet) -> Draft:
        """Returns the draft with more changes, of its current texts."""
        return Draft(self.fork.layer(step.apply()), self.changes.combine(step))


def _ended_alike(edit: Edit, text: str) -> Edit:
    """The edit with CRLF for LF where most lines of the file end in it; one that has kept lines of the file is left."""
    if "\r" not in text or "\r" in edit.text or text.count("\r\n") * 2 <= text.count("\n"):
        return edit
    return replace(edit, text=edit.text.replace("\n", "\r\n"))
