"""Writing files all or none, and taking them back: the journal of a checkout.

It lies in this user's private state folder and never in the checkout, of which nothing is believed:

    preparing   a journal entry being written: nothing of the checkout has been touched
    pending     the entry of a write or undo under way: the texts from before it, and `record.json`
    history/N   the entries of finished writes, oldest first
    done        an entry being thrown away

A folder changes its role by one rename, so that a process killed anywhere leaves a state that `recover` settles.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from porter.core import confined
from porter.core.cache import digest
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.interrupts import held_back
from porter.core.private import make_private, state_root
from porter.core.record import Record, Touched, read_record

_STATES = ("preparing", "pending", "done")


def home_of(root: Path) -> Path:
    """The folder of a checkout's journal: it is found by where the checkout lies."""
    place = root.resolve()
    return state_root() / "journals" / f"{place.name}-{digest(str(place))[:16]}"


def require_settled(checkout: Checkout) -> None:
    """For a command that writes nothing. Raises PTR181 where a write or undo was interrupted."""
    if (home_of(checkout.root) / "pending").is_dir():
        raise PorterError(
            "PTR181", "a write to this checkout was interrupted", hint="Run `porter undo`, which takes it back."
        )


def recover(checkout: Checkout) -> str:
    """Settles what an interrupted write left: "" (nothing), "finished" or "rolled back".

    Raises PTR056 (another process is at it), PTR059 (a file was changed since), PTR060 (the system refused), PTR062
    (unreadable journal) and PTR180 (the state folder is not private).
    """
    home = home_of(checkout.root)
    if not any((home / name).exists() for name in _STATES):
        return ""
    with locked(checkout):
        return settle_pending(checkout.root)


def undo(checkout: Checkout) -> tuple[str, ...]:
    """Takes the last written change set back byte for byte and tells its files; an interrupted one counts as written.

    Raises PTR057 (nothing to undo), PTR058 (a file was changed since), and what `recover` and `perform` raise.
    """
    root, home = checkout.root, home_of(checkout.root)
    if not home.is_dir():
        raise _nothing_to_undo()
    with locked(checkout):
        pending = _read_record(home / "pending") if (home / "pending").is_dir() else None
        settled = settle_pending(root)
        if pending and (pending.kind, settled) in (("write", "rolled back"), ("undo", "finished")):
            return tuple(f.path for f in pending.files)
        numbers = _history(home)
        if not numbers:
            raise _nothing_to_undo()
        entry = home / "history" / str(numbers[-1])
        record = _read_record(entry)
        for file in record.files:
            if _state(root, file.path) != file.after:
                raise PorterError("PTR058", "this file has changed since porter wrote it", Place(file.path))
        contents = {f.path: _blob(entry, f) for f in record.files}
        modes = {f.path: f.mode for f in record.files if f.mode is not None}
        perform(root, "undo", contents, modes, record.number, record.folders)
    return tuple(f.path for f in record.files)


def perform(
    root: Path,
    kind: str,
    contents: Mapping[str, bytes | None],
    modes: Mapping[str, int] | None = None,
    number: int | None = None,
    folders: tuple[str, ...] | None = None,
) -> None:
    """Gives every file its new content (None: it goes), all or none. The caller holds the lock.

    Raises PTR060 if the system refuses, with everything rolled back, and PTR061 (a path leads out of the checkout).
    """
    home = home_of(root)
    targets = {path: target(root, path) for path in contents}
    made = _missing_folders(root, targets) if folders is None else folders
    number = (_history(home) or [0])[-1] + 1 if number is None else number
    with held_back():
        try:
            record = _prepare(root, Record(kind, number, secrets.token_hex(4), (), made), contents)
            _carry_out(root, record, contents, modes or {})
            _finish(root, record)
        except OSError as error:
            settle_pending(root)
            if any(current(root, path) != data for path, data in contents.items()):
                place = Place(str(error.filename)) if error.filename else None
                raise PorterError("PTR060", f"cannot write: {error.strerror}; nothing was changed", place) from error
        except BaseException:
            settle_pending(root)
            raise


def settle_pending(root: Path) -> str:
    """`recover` for a caller that holds the lock."""
    home = home_of(root)
    try:
        for name in ("preparing", "done"):
            if (home / name).exists():
                shutil.rmtree(home / name)
        if not (home / "pending").is_dir():
            return ""
        with held_back():
            return _settle(root, _read_record(home / "pending"))
    except OSError as error:
        place = Place(str(error.filename)) if error.filename else None
        told = f"cannot settle an interrupted write: {error.strerror}"
        raise PorterError("PTR060", told, place, "Make the file and its folder writable and try again.") from error


def _settle(root: Path, record: Record) -> str:
    for file in record.files:
        confined.discard_beside(root.resolve(), _inside(root, file.path), record.token)
    states = {f.path: _state(root, f.path) for f in record.files}
    if all(states[f.path] == f.after for f in record.files):
        _finish(root, record)
        return "finished"
    for file in record.files:
        if states[file.path] not in (file.before, file.after):
            raise PorterError("PTR059", "this file changed after an interrupted write", Place(file.path))
    _roll_back(root, record, states)
    return "rolled back"


def last_written(root: Path) -> dict[str, str | None]:
    """For every file in the history, the digest porter left it with."""
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
        raise PorterError("PTR060", f"cannot write: {error.strerror}", Place(str(home / "lock"))) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PorterError("PTR056", "another porter process is writing to this checkout") from error
        yield
    finally:
        os.close(handle)


def target(root: Path, path: str) -> Path:
    """The file a path means, behind symbolic links. Raises PTR061 if that is outside the checkout."""
    base = root.resolve()
    try:
        full = (base / path).resolve()
    except (OSError, RuntimeError) as error:  # a circle of links
        raise PorterError("PTR061", "this path cannot be followed", Place(path)) from error
    if not full.is_relative_to(base) or full == base:
        raise PorterError("PTR061", "this path points outside the checkout", Place(path))
    return full


def current(root: Path, path: str) -> bytes | None:
    """A file's bytes, or None if there is none. Raises PTR061, and PTR060 if it cannot be read."""
    try:
        return confined.read(root.resolve(), _inside(root, path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PorterError("PTR060", f"cannot read this file: {error.strerror}", Place(path)) from error


def _inside(root: Path, path: str) -> str:
    """The path of `target` below the root: there is no link on it."""
    return target(root, path).relative_to(root.resolve()).as_posix()


def _state(root: Path, path: str) -> str | None:
    data = current(root, path)
    return None if data is None else digest(data)


def _prepare(root: Path, record: Record, contents: Mapping[str, bytes | None]) -> Record:
    """Writes the journal entry; from its last rename on, the write is known to the next process."""
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
        files.append(Touched(path, states[0], states[1], mode, str(i)))
    record = Record(record.kind, record.number, record.token, tuple(files), record.folders)
    _write_synced(folder / "record.json", json.dumps(asdict(record), indent=1).encode())
    _sync(folder)
    folder.replace(home / "pending")
    _sync(home)
    return record


def _carry_out(root: Path, record: Record, contents: Mapping[str, bytes | None], modes: Mapping[str, int]) -> None:
    """First every new text beside its target, where a full disk shows; then the renames."""
    base = root.resolve()
    places = {f.path: _inside(root, f.path) for f in record.files}
    for file in record.files:
        data = contents[file.path]
        if data is not None:
            mode = file.mode if file.mode is not None else modes.get(file.path)
            confined.write_beside(base, places[file.path], record.token, data, mode)
    for file in record.files:
        if contents[file.path] is None:
            confined.remove(base, places[file.path])
        else:
            confined.take_over(base, places[file.path], record.token)


def _finish(root: Path, record: Record) -> None:
    """The entry of a write joins the history; that of an undo goes, with the one it took back."""
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


def _roll_back(root: Path, record: Record, states: Mapping[str, str | None]) -> None:
    base, pending = root.resolve(), home_of(root) / "pending"
    for file in record.files:
        place = _inside(root, file.path)
        if states[file.path] == file.before:
            continue
        if file.before is None:
            confined.remove(base, place)
            continue
        confined.write_beside(base, place, record.token, _blob(pending, file) or b"", file.mode)
        confined.take_over(base, place, record.token)
    if record.kind == "write":
        _remove_folders(root, record.folders)
    pending.replace(pending.with_name("done"))
    shutil.rmtree(pending.with_name("done"))


def _missing_folders(root: Path, targets: Mapping[str, Path]) -> tuple[str, ...]:
    """The folders a write will create, the deepest last."""
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
        raise PorterError("PTR062", "this journal record cannot be read", Place(str(folder))) from error


def _blob(entry: Path, file: Touched) -> bytes | None:
    if file.before is None:
        return None
    try:
        data = confined.read(entry, file.blob)
    except OSError as error:
        raise PorterError("PTR062", f"cannot read the journal's copy: {error.strerror}", Place(file.path)) from error
    if digest(data) != file.before:
        raise PorterError("PTR062", "the journal's copy of this file is damaged", Place(file.path))
    return data


def _write_synced(path: Path, data: bytes) -> None:
    confined.write_synced(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), data)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _nothing_to_undo() -> PorterError:
    return PorterError("PTR057", "there is nothing to undo in this checkout")
