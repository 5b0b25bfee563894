"""A fork with the changes planned so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.edits import Edit


@dataclass(frozen=True)
class Draft:
    """The fork after some planned steps, and their combined changes to the files on disk."""

    fork: Checkout
    changes: ChangeSet = ChangeSet({}, ())  # noqa: RUF009 (a frozen value)

    def apply(self, edits: Iterable[Edit]) -> Draft:
        """Returns the draft with more edits, of its current texts."""
        made = tuple(edits)
        return self.follow(ChangeSet({edit.file: self.fork.read(edit.file) for edit in made}, made))

    def follow(self, step: ChangeSet) -> Draft:
        """Returns the draft with more changes, of its current texts."""
        return Draft(self.fork.layer(step.apply()), self.changes.combine(step))
