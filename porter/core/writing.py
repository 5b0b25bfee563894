"""Writes a change set to the checkout without overwriting unsaved work."""

from __future__ import annotations

from collections.abc import Sequence

from porter.core import journal
from porter.core.cache import digest
from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.git import uncommitted


def write(checkout: Checkout, changes: ChangeSet, force: bool = False, ops: Sequence[str] = ()) -> tuple[str, ...]:
    """Writes the change set, all or nothing. Returns the files written: none if they already have the new texts.

    `ops` are the operators that it is about, for who undoes it later.

    Raises PTR054 (a file of the snapshot changed since), PTR055 (uncommitted changes in a file to be written, unless
    `force`), PTR056 (another porter is writing), PTR060 (the system refused), PTR061 (a path leads out of the
    checkout) or PTR063 (git cannot say what is uncommitted, unless `force`).
    """
    texts, gone = changes.apply(), changes.gone
    contents = {file: None if file in gone else _bytes(texts[file]) for file in changes.files}
    if all(journal.current(checkout.root, file) == data for file, data in contents.items()):
        return ()
    with journal.locked(checkout):
        journal.settle_pending(checkout.root)
        _refuse_changed(checkout, changes)
        if not force:
            refuse_uncommitted(checkout, changes.files)
        before = {file: _bytes(changes.base.get(file)) for file in contents}
        changed = {f: d for f, d in contents.items() if d != before[f]}
        journal.perform(checkout.root, "write", changed, {f: _digest(before[f]) for f in changed}, ops=tuple(ops))
    return tuple(file for file in contents if contents[file] != before[file])


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _refuse_changed(checkout: Checkout, changes: ChangeSet) -> None:
    """Raises PTR054 if any file that the plan has read, not only those it writes, has changed since."""
    planned = {file: _digest(_bytes(text)) for file, text in changes.base.items()}
    planned |= dict.fromkeys(changes.created)
    for file, before in {**checkout.hashes, **planned}.items():
        if _digest(journal.current(checkout.root, file)) != before:
            what = "this file is newer than the plan" if before is None else "this file changed after it was read"
            raise PorterError("PTR054", what, Place(file), "Run the command again to make a new plan.")


def _digest(data: bytes | None) -> str | None:
    return None if data is None else digest(data)


def refuse_uncommitted(checkout: Checkout, files: Sequence[str]) -> None:
    """Raises PTR055 for uncommitted changes other than porter's own, so several ports can precede a commit.

    Raises PTR063 if git cannot say.
    """
    contents = {file: journal.current(checkout.root, file) for file in files}
    ours = journal.last_written(checkout.root)
    for file in uncommitted(checkout.root, contents):
        if file not in ours or ours[file] != _digest(contents[file]):
            hint = "Commit or stash them, or pass --force to write alongside them."
            raise PorterError("PTR055", "this file has uncommitted changes", Place(file), hint)
