"""The journal of a checkout: writes are atomic across files and can be undone.

It is in this user's private state folder, never in the checkout, which is not trusted:

    preparing   an entry being written: the checkout has not been touched yet
    pending     the entry of a write or undo in progress: the files' earlier contents, and `record.json`
    history/N   the entries of finished writes, oldest first
    done        an entry being deleted

Each change of state is one rename, so `recover` can handle what a process leaves that is killed at any point.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType

from porter.core import confined
from porter.core.cache import digest
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.private import make_private, state_root
from porter.core.record import Record, Touched, read_record


@contextmanager
def held_back() -> Iterator[None]:
    """Holds Ctrl-C back until the end. It takes milliseconds: nobody waits for it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python interrupts the main thread alone
        return
    came: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
        if came:
            signal.raise_signal(signal.SIGINT)


_LONGEST = 200  # bytes of a checkout's name in that of its journal, of the 255 that a system takes
_STATES = ("preparing", "pending", "done")


class _ChangedMeanwhileError(Exception):
    """A file was changed between the last check and its replacement."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def home_of(root: Path) -> Path:
    """Returns the folder of a checkout's journal, which depends on the checkout's path."""
    place = root.resolve()
    name = os.fsencode(place.name)
    shown = place.name if len(name) <= _LONGEST else name[:_LONGEST].decode("utf-8", "ignore")
    return state_root() / "journals" / f"{shown}-{digest(str(place))[:16]}"


def require_settled(checkout: Checkout) -> None:
    """Raises PTR181 if a write or undo was interrupted. For commands that write nothing."""
    if (home_of(checkout.root) / "pending").is_dir():
        raise PorterError(
            "PTR181", "a write to this checkout was interrupted", hint="Run `porter undo`, which reverts it."
        )


def recover(checkout: Checkout) -> str:
    """Finishes or rolls back an interrupted write. Returns "finished", "rolled back", or "" if there is none.

    Raises PTR056 (another process is writing), PTR059 (a file was changed since), PTR060 (the system refused), PTR062
    (unreadable journal) and PTR180 (the state folder is not private).
    """
    home = home_of(checkout.root)
    if not any((home / name).exists() for name in _STATES):
        return ""
    with locked(checkout):
        return settle_pending(checkout.root)


def list_writes(checkout: Checkout) -> tuple[Record, ...]:
    """The writes that can be undone, newest first. Raises PTR062 for a journal that cannot be read."""
    home = home_of(checkout.root)
    return tuple(_read_record(home / "history" / str(number)) for number in reversed(_history(home)))


def undo(checkout: Checkout, op: str = "") -> Record:
    """Reverts the last write byte for byte, even an interrupted one, or the last one about an operator. Returns it.

    Raises PTR057 (nothing to undo), PTR058 (a file was changed since), and what `recover` and `perform` raise.
    """
    root, home = checkout.root, home_of(checkout.root)
    if not home.is_dir():
        raise _nothing_to_undo(op)
    with locked(checkout):
        pending = _read_record(home / "pending") if (home / "pending").is_dir() else None
        settled = settle_pending(root)
        if pending and (pending.kind, settled) in (("write", "rolled back"), ("undo", "finished")):
            return pending
        record = next((write for write in list_writes(checkout) if not op or op in write.ops), None)
        if record is None:
            raise _nothing_to_undo(op)
        entry = home / "history" / str(record.number)
        for file in record.files:
            if _state(root, file.path) != file.after:
                raise _changed_later(file.path)
        contents = {f.path: _blob(entry, f) for f in record.files}
        modes = {f.path: f.mode for f in record.files if f.mode is not None}
        expected = {f.path: f.after for f in record.files}
        perform(root, "undo", contents, expected, modes, record)
    return record


def perform(
    root: Path,
    kind: str,
    contents: Mapping[str, bytes | None],
    expected: Mapping[str, str | None],
    modes: Mapping[str, int] | None = None,
    undone: Record | None = None,
    ops: tuple[str, ...] = (),
) -> None:
    """Replaces the contents of files (None: removes them), all or none. The caller holds the lock.

    `undone` is the write that an undo reverts, `ops` are the operators that a write is about.

    `expected` maps each file to the digest of its current content, or None if it does not exist. Raises PTR054 or
    PTR058 if a file has another one, even at the last moment, PTR060 if the system refuses, and PTR061 if a path
    leads out of the checkout, each with everything rolled back.
    """
    home = home_of(root)
    targets = {path: target(root, path) for path in contents}
    folders = undone.folders if undone else _missing_folders(root, targets)
    number = undone.number if undone else (_history(home) or [0])[-1] + 1
    with held_back():
        try:
            record = _prepare(
                root,
                Record(kind, number, secrets.token_hex(4), (), folders, undone.ops if undone else ops),
                contents,
                expected,
            )
            _carry_out(root, record, contents, modes or {})
            _finish(root, record)
        except _ChangedMeanwhileError as error:
            settle_pending(root, error.path)
            raise _changed_meanwhile(kind, error.path) from error
        except OSError as error:
            settle_pending(root)
            if any(current(root, path) != data for path, data in contents.items()):
                place = Place(str(error.filename)) if error.filename else None
                what = f"cannot write: {error.strerror}; nothing was changed"
                raise PorterError("PTR060", what, place, "Fix that and run the command again.") from error
        except BaseException:
            settle_pending(root)
            raise


def settle_pending(root: Path, changed: str | None = None) -> str:
    """`recover` for a caller that holds the lock. `changed` is a file to leave alone."""
    home = home_of(root)
    try:
        for name in ("preparing", "done"):
            if (home / name).exists():
                shutil.rmtree(home / name)
        if not (home / "pending").is_dir():
            return ""
        with held_back():
            return _settle(root, _read_record(home / "pending"), changed)
    except OSError as error:
        place = Place(str(error.filename)) if error.filename else None
        told = f"cannot recover from an interrupted write: {error.strerror}"
        raise PorterError("PTR060", told, place, "Make the file and its folder writable and try again.") from error


def _settle(root: Path, record: Record, changed: str | None) -> str:
    for file in record.files:
        confined.put_back(root.resolve(), _inside(root, file.path), record.token, {file.before, file.after})
        confined.discard_beside(root.resolve(), _inside(root, file.path), record.token)
    states = {f.path: _state(root, f.path) for f in record.files}
    if all(states[f.path] == f.after for f in record.files):
        _finish(root, record)
        return "finished"
    for file in record.files:
        if states[file.path] not in (file.before, file.after) and file.path != changed:
            raise _changed_since(file.path)
    _roll_back(root, record)
    return "rolled back"


def read_earlier(root: Path) -> Iterator[dict[str, bytes | None]]:
    """Yields the contents that files had before the last write, before the last two, and so on (None: no file).

    Raises PTR062 for a journal that cannot be read.
    """
    home, earlier = home_of(root), dict[str, bytes | None]()
    for number in reversed(_history(home)):
        entry = home / "history" / str(number)
        earlier |= {file.path: _blob(entry, file) for file in _read_record(entry).files}
        yield dict(earlier)


def last_written(root: Path) -> dict[str, str | None]:
    """Returns the digest that porter left each file of the history with."""
    home = home_of(root)
    entries = [_read_record(home / "history" / str(n)) for n in _history(home)]
    return {file.path: file.after for record in entries for file in record.files}


@contextmanager
def locked(checkout: Checkout) -> Iterator[None]:
    """Keeps other porter processes from writing to the checkout. Raises PTR056 at once if one is."""
    home = home_of(checkout.root)
    for folder in (state_root(), home.parent, home):
        make_private(folder)
    try:
        handle = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        what, place = f"cannot write: {error.strerror}", Place(str(home / "lock"))
        raise PorterError("PTR060", what, place, "Fix that, or name another folder with $PORTER_STATE.") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            what, hint = (
                "another porter process is writing to this checkout",
                "Wait for it, then run the command again.",
            )
            raise PorterError("PTR056", what, hint=hint) from error
        yield
    finally:
        os.close(handle)


def target(root: Path, path: str) -> Path:
    """Resolves a path. Raises PTR061 if it leads out of the checkout."""
    base = root.resolve()
    try:
        full = (base / path).resolve()
    except (OSError, RuntimeError) as error:  # a circle of links
        raise PorterError(
            "PTR061", "this path cannot be followed", Place(path), "Replace the link with a file."
        ) from error
    if not full.is_relative_to(base) or full == base:
        hint = "Replace the link with a file, or point --checkout at the tree that contains it."
        raise PorterError("PTR061", "this path points outside the checkout", Place(path), hint)
    return full


def current(root: Path, path: str) -> bytes | None:
    """Returns a file's bytes, or None if it does not exist. Raises PTR061, and PTR060 if it cannot be read."""
    try:
        return confined.read(root.resolve(), _inside(root, path))
    except FileNotFoundError:
        return None
    except OSError as error:
        what = f"cannot read this file: {error.strerror}"
        raise PorterError("PTR060", what, Place(path), "Fix that and run the command again.") from error


def _inside(root: Path, path: str) -> str:
    """Returns the path of `target` relative to the root, without links."""
    return target(root, path).relative_to(root.resolve()).as_posix()


def _state(root: Path, path: str) -> str | None:
    data = current(root, path)
    return None if data is None else digest(data)


def _prepare(
    root: Path, record: Record, contents: Mapping[str, bytes | None], expected: Mapping[str, str | None]
) -> Record:
    """Writes the journal entry. After the last rename, the next process knows of the write."""
    home = home_of(root)
    folder = home / "preparing"
    folder.mkdir(mode=0o700)
    files = []
    for i, (path, data) in enumerate(contents.items()):
        before = current(root, path)
        if before is not None:
            _write_synced(folder / str(i), before)
        mode = None if before is None else confined.mode(root.resolve(), _inside(root, path))
        states = [None if d is None else digest(d) for d in (before, data)]
        if states[0] != expected[path]:
            raise _ChangedMeanwhileError(path)
        files.append(Touched(path, states[0], states[1], mode, str(i)))
    record = replace(record, files=tuple(files))
    _write_synced(folder / "record.json", json.dumps(asdict(record), indent=1).encode())
    _sync(folder)
    folder.replace(home / "pending")
    _sync(home)
    return record


def _carry_out(root: Path, record: Record, contents: Mapping[str, bytes | None], modes: Mapping[str, int]) -> None:
    """Writes all new contents beside the files, where a full disk shows first, then replaces them."""
    base = root.resolve()
    places = {f.path: _inside(root, f.path) for f in record.files}
    for file in record.files:
        data = contents[file.path]
        if data is not None:
            mode = file.mode if file.mode is not None else modes.get(file.path)
            confined.write_beside(base, places[file.path], record.token, data, mode)
    for file in record.files:
        _exchange(base, places[file.path], record.token, file.path, file.before, file.after)


def _exchange(base: Path, place: str, token: str, path: str, old: str | None, new: str | None) -> None:
    """Replaces or removes a file. Raises _ChangedMeanwhileError if its digest is not `old`."""
    if new is not None:
        done = confined.swap_in(base, place, token, old)
    else:
        done = old is None or confined.take_away(base, place, token, old)
    if not done:
        raise _ChangedMeanwhileError(path)


def _finish(root: Path, record: Record) -> None:
    """Moves the entry of a write to the history; deletes that of an undo together with the entry it reverted."""
    home = home_of(root)
    entry = home / "history" / str(record.number)
    if record.kind == "write":
        entry.parent.mkdir(mode=0o700, exist_ok=True)
        (home / "pending").replace(entry)
        _sync(entry.parent)
        return
    _remove_folders(root, record.folders)
    for folder in (entry, home / "pending"):
        if folder.exists():
            folder.replace(home / "done")
            _sync(home)
            shutil.rmtree(home / "done")


def _roll_back(root: Path, record: Record) -> None:
    """Restores the files that have their new content. Raises PTR059 if one is changed at this moment."""
    base, pending = root.resolve(), home_of(root) / "pending"
    for file in record.files:
        place = _inside(root, file.path)
        confined.discard_beside(base, place, record.token)
        if _state(root, file.path) != file.after:
            continue
        if (data := _blob(pending, file)) is not None:
            confined.write_beside(base, place, record.token, data, file.mode)
        try:
            _exchange(base, place, record.token, file.path, file.after, file.before)
        except _ChangedMeanwhileError as error:
            raise _changed_since(file.path) from error
    if record.kind == "write":
        _remove_folders(root, record.folders)
    pending.replace(pending.with_name("done"))
    shutil.rmtree(pending.with_name("done"))


def _missing_folders(root: Path, targets: Mapping[str, Path]) -> tuple[str, ...]:
    """Returns the folders that a write will create, deepest last."""
    base = root.resolve()
    missing = {p for place in targets.values() for p in place.parents if p.is_relative_to(base) and not p.exists()}
    return tuple(str(p.relative_to(base)) for p in sorted(missing))


def _remove_folders(root: Path, folders: tuple[str, ...]) -> None:
    for folder in reversed(folders):
        confined.remove_empty_folder(root.resolve(), folder)


def _history(home: Path) -> list[int]:
    folder = home / "history"
    return sorted(int(p.name) for p in folder.iterdir() if p.name.isdecimal()) if folder.is_dir() else []


def _read_record(folder: Path) -> Record:
    try:
        return read_record(folder / "record.json")
    except (OSError, ValueError) as error:
        hint = "Delete this folder and use git to undo."
        raise PorterError("PTR062", "this journal record cannot be read", Place(str(folder)), hint) from error


def _blob(entry: Path, file: Touched) -> bytes | None:
    if file.before is None:
        return None
    try:
        data = confined.read(entry, file.blob)
    except OSError as error:
        what = f"cannot read the journal's copy: {error.strerror}"
        raise PorterError("PTR062", what, Place(file.path), "Use git to undo.") from error
    if digest(data) != file.before:
        what = "the journal's copy of this file is damaged"
        raise PorterError("PTR062", what, Place(file.path), "Use git to undo.")
    return data


def _write_synced(path: Path, data: bytes) -> None:
    confined.write_synced(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), data)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _changed_meanwhile(kind: str, path: str) -> PorterError:
    if kind == "write":
        return PorterError("PTR054", "this file changed after it was read", Place(path), "Run the command again.")
    return _changed_later(path)


def _changed_later(path: str) -> PorterError:
    hint = "Revert the later change first, or use git."
    return PorterError("PTR058", "this file has changed since porter wrote it", Place(path), hint)


def _changed_since(path: str) -> PorterError:
    hint = "Settle it by hand: `porter explain PTR059` says how."
    return PorterError("PTR059", "this file changed after an interrupted write", Place(path), hint)


def _nothing_to_undo(op: str = "") -> PorterError:
    if op:
        hint = "`porter undo --list` shows the writes."
        return PorterError("PTR057", f"no write to this checkout is about {op}", hint=hint)
    return PorterError("PTR057", "there is nothing to undo in this checkout", hint="Use git to go back further.")
