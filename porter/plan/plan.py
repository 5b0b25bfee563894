"""The plan of `porter migrate` for one operator: a value that can be printed, written or verified."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from porter.aten.metal_functions import LIBRARY
from porter.aten.skip_lists import Change
from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.dtypes import Kind
from porter.core.edits import Edit
from porter.core.errors import Place
from porter.metal.codegen.schedule import Schedule
from porter.metal.functor import Origin, Provenance


@dataclass(frozen=True)
class Served:
    """What a dispatch entry says: the keys, and the kernel that serves them."""

    keys: tuple[str, ...]
    kernel: str

    def __str__(self) -> str:
        return f"{', '.join(self.keys)}: {self.kernel}"


@dataclass(frozen=True)
class EntryChange:
    """The MPS dispatch entry of a native function, before and after (equal if it does not move)."""

    name: str
    before: Served
    after: Served


@dataclass(frozen=True)
class PlannedFunctor:
    """A functor as written to `file`, and the origin of its code for each kind of element.

    `dtypes` are the torch names that a kernel of its own, which no line registers, is instantiated for.
    """

    file: str
    name: str
    source: str
    origins: tuple[Origin, ...]
    schedule: Schedule | None = None  # of the threads of a kernel that has one
    dtypes: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """The sources of its code, each once."""
        return "; ".join(dict.fromkeys(str(each.source) for each in self.origins))


@dataclass(frozen=True)
class PlannedRegistration:
    """An (input, output) pair of Metal types, and the macro line that registers it."""

    functor: str
    macro: str
    input: str
    output: str


@dataclass(frozen=True)
class PlannedStub:
    """A host function, and the stub it is registered for."""

    stub: str
    function: str
    file: str


@dataclass(frozen=True)
class RemovedSymbol:
    """A function, macro or include that is no longer needed."""

    file: str
    symbol: str


@dataclass(frozen=True)
class ListChange:
    """A test-list entry, what happens to it, and why."""

    file: str
    list: str
    entry: str
    change: Change
    why: str

    @property
    def is_kept(self) -> bool:
        return self.change is Change.KEPT

    @property
    def outcome(self) -> str:
        """The change as printed in reports, with the reason for an entry that is kept."""
        return f"{self.change.value}: {self.why}" if self.is_kept else self.change.value


@dataclass(frozen=True)
class Unported:
    """A part of the operator that the plan does not port, and why."""

    code: str
    place: Place
    reason: str


@dataclass(frozen=True)
class RejectedCandidate:
    """A functor candidate that failed tests: its kinds of element, source, number of failures, and one message."""

    functor: str
    kinds: tuple[Kind, ...]
    source: Provenance
    failed: int
    reason: str

    @property
    def is_of_library(self) -> bool:
        """Whether the source is a function of the fork's headers, which others call too."""
        return self.source.owner == LIBRARY


@dataclass(frozen=True)
class Plan:
    """The complete port of an operator as a change set, with notes for the reviewer.

    `answered` are the torch dtypes that the shared implementation handles without a kernel; `elsewhere` are complex
    ones that no kernel takes where a row keeps its function, which answers them by other means, or not.
    """

    op: str
    entries: tuple[EntryChange, ...]
    functors: tuple[PlannedFunctor, ...]
    registrations: tuple[PlannedRegistration, ...]
    stubs: tuple[PlannedStub, ...]
    removed: tuple[RemovedSymbol, ...]
    lists: tuple[ListChange, ...]
    unported: tuple[Unported, ...]
    notes: tuple[str, ...]
    answered: tuple[str, ...]
    changes: ChangeSet
    elsewhere: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether no part of the operator stays on MPSGraph."""
        return not self.unported


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
