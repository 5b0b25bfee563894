"""What `porter migrate` worked out for one operator: a value that can be printed, written or verified."""

from __future__ import annotations

from dataclasses import dataclass

from porter.aten.skip_lists import Change
from porter.core.change_set import ChangeSet
from porter.core.dtypes import Kind
from porter.core.errors import Place
from porter.metal.functor import Origin


@dataclass(frozen=True)
class EntryChange:
    """A row of native_functions.yaml: its MPS line before, the line that serves MPS after (equal when nothing
    moves).
    """

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class PlannedFunctor:
    """A functor as it will stand in `file`, and where it has each kind of element from."""

    file: str
    name: str
    source: str
    origins: tuple[Origin, ...]

    @property
    def origin(self) -> str:
        """Where the text came from, each source once."""
        return "; ".join(dict.fromkeys(each.source for each in self.origins))


@dataclass(frozen=True)
class PlannedRegistration:
    """One dtype pair, in Metal type names, and the macro line that makes it."""

    functor: str
    macro: str
    input: str
    output: str


@dataclass(frozen=True)
class PlannedStub:
    """A host function and the stub it is registered for."""

    stub: str
    function: str
    file: str


@dataclass(frozen=True)
class RemovedSymbol:
    """A function, macro or include that nothing needs any more."""

    file: str
    symbol: str


@dataclass(frozen=True)
class ListChange:
    """A test-list entry, what becomes of it, and why."""

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
        """As reports print it: an entry that stays says why."""
        return f"{self.change.value}: {self.why}" if self.is_kept else self.change.value


@dataclass(frozen=True)
class Unported:
    """Something of the operator that the plan leaves as it is, and why."""

    code: str
    place: Place
    reason: str


@dataclass(frozen=True)
class RejectedCandidate:
    """A candidate for a functor that was proven wrong: for which kinds of element, whose it was, how many tests it
    failed, and what one of them said.
    """

    functor: str
    kinds: tuple[Kind, ...]
    source: str
    failed: int
    reason: str


@dataclass(frozen=True)
class Plan:
    """The complete port of one operator as a change set, with what a person has to know about it.

    `answered` are the torch dtypes that the shared implementation answers without a kernel.
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

    @property
    def complete(self) -> bool:
        """Whether nothing of the operator stays on MPSGraph."""
        return not self.unported
