"""Writing files all or none, and taking them back: the journal in `<checkout>/.porter/`.

    .porter/preparing   a journal entry being written: nothing of the checkout has been touched
    .porter/pending     the entry of a write or undo under way: the texts from before it, and `record.json`
    .porter/history/N   the entries of finished writes, oldest first
    .porter/done        an entry being thrown away

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
from dataclasses import asdict, dataclass
from pathlib import Path

from porter.core.cache import digest
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError

FOLDER = ".porter"


@dataclass(frozen=True)
class Touched:
    """A file of an entry: digests before and after (None where it does not exist), its mode, its blob's name."""

    path: str
    before: str | None
    after: str | None
    mode: int | None
    blob: str


@dataclass(frozen=True)
class Record:
    """What an entry did: `kind` is write or undo, `number` its place in the history, `folders` those it creates."""

    kind: str
    number: int
    token: str
    files: tuple[Touched, ...]
    folders: tuple[str, ...]


def recover(checkout: Checkout) -> str:
    """Settles what an interrupted write left: "" (nothing), "finished" or "rolled back".

    Raises PTR056 (another process is at it), PTR059 (a file was changed since), PTR062 (unreadable journal).
    """
    home = checkout.root / FOLDER
    if not any((home / name).exists() for name in ("preparing", "pending", "done")):
        return ""
    with locked(checkout):
        return settle_pending(checkout.root)


def undo(checkout: Checkout) -> tuple[str, ...]:
    """Takes the last written change set back byte for byte and tells its files.

    Raises PTR057 (nothing to undo), PTR058 (a file was changed since), and what `recover` and `perform` raise.
    """
    root = checkout.root
    if not (root / FOLDER).is_dir():
        raise _nothing_to_undo()
    with locked(checkout):
        settle_pending(root)
        numbers = _history(root)
        if not numbers:
            raise _nothing_to_undo()
        entry = root / FOLDER / "history" / str(numbers[-1])
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
    targets = {path: target(root, path) for path in contents}
    made = _missing_folders(root, targets) if folders is None else folders
    number = (_history(root) or [0])[-1] + 1 if number is None else number
    try:
        record = _prepare(root, Record(kind, number, secrets.token_hex(4), (), made), contents)
        _carry_out(root, record, contents, modes or {})
        _finish(root, record)
    except OSError as error:
        settle_pending(root)
        if any(current(root, path) != data for path, data in contents.items()):
            place = Place(str(error.filename or FOLDER))
            raise PorterError("PTR060", f"cannot write: {error.strerror}; nothing was changed", place) from error
    except BaseException:
        settle_pending(root)
        raise


def settle_pending(root: Path) -> str:
    """`recover` for a caller that holds the lock."""
    home = root / FOLDER
    for name in ("preparing", "done"):
        shutil.rmtree(home / name, ignore_errors=True)
    if not (home / "pending").is_dir():
        return ""
    record = _read_record(home / "pending")
    for file in record.files:
        _temporary(target(root, file.path), record.token).unlink(missing_ok=True)
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
    entries = [_read_record(root / FOLDER / "history" / str(n)) for n in _history(root)]
    return {file.path: file.after for record in entries for file in record.files}


@contextmanager
def locked(checkout: Checkout) -> Iterator[None]:
    """Keeps other porter processes from writing to the checkout. Raises PTR056 at once if one is."""
    home = target(checkout.root, FOLDER)
    try:
        home.mkdir(exist_ok=True)
        (home / ".gitignore").write_text("*\n")
        lock = (home / "lock").open("w")
    except OSError as error:
        raise PorterError("PTR060", f"cannot write: {error.strerror}", Place(FOLDER)) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PorterError("PTR056", "another porter process is writing to this checkout", Place(FOLDER)) from error
        yield


def target(root: Path, path: str) -> Path:
    """The file a path means, behind symbolic links. Raises PTR061 if that is outside the checkout."""
    full = (root / path).resolve()
    if not full.is_relative_to(root.resolve()):
        raise PorterError("PTR061", "this path points outside the checkout", Place(path))
    return full


def current(root: Path, path: str) -> bytes | None:
    """A file's bytes, or None if there is none. Raises PTR061, and PTR060 if it cannot be read."""
    try:
        return target(root, path).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PorterError("PTR060", f"cannot read this file: {error.strerror}", Place(path)) from error


def _state(root: Path, path: str) -> str | None:
    data = current(root, path)
    return None if data is None else digest(data)


def _prepare(root: Path, record: Record, contents: Mapping[str, bytes | None]) -> Record:
    """Writes the journal entry; from its last rename on, the write is known to the next process."""
    home = root / FOLDER
    folder = home / "preparing"
    folder.mkdir()
    files = []
    for i, (path, data) in enumerate(contents.items()):
        before = current(root, path)
        if before is not None:
            _write_synced(folder / str(i), before)
        mode = None if before is None else target(root, path).stat().st_mode & 0o7777
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
    places = {f.path: target(root, f.path) for f in record.files}
    for file in record.files:
        data = contents[file.path]
        if data is not None:
            mode = file.mode if file.mode is not None else modes.get(file.path)
            _write_beside(places[file.path], record.token, data, mode)
    for file in record.files:
        if contents[file.path] is None:
            places[file.path].unlink()
        else:
            _temporary(places[file.path], record.token).replace(places[file.path])
        _sync(places[file.path].parent)


def _finish(root: Path, record: Record) -> None:
    """The entry of a write joins the history; that of an undo goes, with the one it took back."""
    home = root / FOLDER
    entry = home / "history" / str(record.number)
    if record.kind == "write":
        entry.parent.mkdir(exist_ok=True)
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
    pending = root / FOLDER / "pending"
    for file in record.files:
        place = target(root, file.path)
        if states[file.path] == file.before:
            continue
        if file.before is None:
            place.unlink()
            continue
        _write_beside(place, record.token, _blob(pending, file) or b"", file.mode)
        _temporary(place, record.token).replace(place)
        _sync(place.parent)
    if record.kind == "write":
        _remove_folders(root, record.folders)
    pending.replace(pending.with_name("done"))
    shutil.rmtree(pending.with_name("done"))


def _write_beside(place: Path, token: str, data: bytes, mode: int | None) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(place, token)
    _write_synced(temporary, data)
    if mode is not None:
        temporary.chmod(mode)


def _temporary(place: Path, token: str) -> Path:
    return place.with_name(f".{place.name}.{token}.porter")


def _missing_folders(root: Path, targets: Mapping[str, Path]) -> tuple[str, ...]:
    """The folders a write will create, the deepest last."""
    base = root.resolve()
    missing = {p for place in targets.values() for p in place.parents if p.is_relative_to(base) and not p.exists()}
    return tuple(str(p.relative_to(base)) for p in sorted(missing))


def _remove_folders(root: Path, folders: tuple[str, ...]) -> None:
    for folder in reversed(folders):
        if (root / folder).is_dir() and not any((root / folder).iterdir()):
            (root / folder).rmdir()


def _history(root: Path) -> list[int]:
    folder = root / FOLDER / "history"
    return sorted(int(p.name) for p in folder.iterdir() if p.name.isdigit()) if folder.is_dir() else []


def _read_record(folder: Path) -> Record:
    try:
        raw = json.loads((folder / "record.json").read_bytes())
        files = tuple(Touched(**file) for file in raw.pop("files"))
        return Record(files=files, folders=tuple(raw.pop("folders")), **raw)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        place = Place(f"{FOLDER}/{folder.name if folder.parent.name == FOLDER else f'history/{folder.name}'}")
        raise PorterError("PTR062", "this journal record cannot be read", place) from error


def _blob(entry: Path, file: Touched) -> bytes | None:
    if file.before is None:
        return None
    try:
        data = (entry / file.blob).read_bytes()
    except OSError as error:
        raise PorterError("PTR062", f"cannot read the journal's copy: {error.strerror}", Place(file.path)) from error
    if digest(data) != file.before:
        raise PorterError("PTR062", "the journal's copy of this file is damaged", Place(file.path))
    return data


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _nothing_to_undo() -> PorterError:
    return PorterError("PTR057", "there is nothing to undo in this checkout")
