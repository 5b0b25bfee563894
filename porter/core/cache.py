"""The cache on disk: its folder, its keys, reading and writing values, and keeping it below a limit.

A value is stored with its digest, so that a truncated or modified one counts as missing. Only this user has access.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from porter.core import cache
from porter.core.errors import PorterError, refused
from porter.core.private import find_home, make_folder, make_private, remove_folder


def root() -> Path:
    """Returns the cache folder: `$PORTER_CACHE`, else `~/.cache/porter`.

    Raises PTR180 as `make_private` does, and PTR183 if there is no home folder.
    """
    folder = Path(os.environ.get("PORTER_CACHE") or find_home() / ".cache" / "porter")
    return make_private(folder) if folder.is_dir() else folder


def require_writable() -> None:
    """Raises PTR182 if nothing can be written to the cache folder."""
    try:
        handle, probe = tempfile.mkstemp(dir=make_folder(root()), prefix=".probe.")
        os.close(handle)
        Path(probe).unlink()
    except OSError as error:
        raise refused(error) or error from error


def digest(*parts: str | bytes) -> str:
    """Returns a digest of the parts and their boundaries; for a single part, the hash of its content."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        found.update(data if len(parts) == 1 else len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


def key(kind: str, name: str, *parts: str | bytes) -> Path:
    """Returns the file for a JSON value computed from these parts. `name` makes the file name readable."""
    made_from = digest(*parts)
    return root() / kind / (f"{name}-{made_from}.json" if name else f"{made_from}.json")


def has_other(path: Path) -> bool:
    """Whether a value of the kind and the name of this file is kept that was computed from other parts."""
    name = path.stem.rpartition("-")[0]
    return any(other.stem.rpartition("-")[0] == name for other in path.parent.glob(f"{name}-*.json") if other != path)


def get(path: Path) -> str | None:
    """Returns the cached text and marks it as used, or None if there is none or it is damaged."""
    try:
        seal, _, data = path.read_bytes().partition(b"\n")
        if seal != digest(data).encode():
            return None
        os.utime(path)
    except FileNotFoundError:
        return None
    return data.decode("utf-8", "surrogateescape")


def put(path: Path, value: str) -> Path:
    """Writes a value atomically: another process reads all of it or nothing."""
    data = value.encode("utf-8", "surrogateescape")
    return _write(path, digest(data).encode() + b"\n" + data)


def put_if_changed(path: Path, content: str | bytes) -> Path:
    """Writes a plain file, without a digest, and leaves it untouched if it has this content already."""
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    return path if path.is_file() and path.read_bytes() == data else _write(path, data)


def _write(path: Path, data: bytes) -> Path:
    make_folder(path.parent)
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
    return path


DEFAULT_BOUND = "1G"
# A verdict may still be using files used so recently.
IN_USE_SECONDS = 3600.0
# Commands and servers look at the size this often; the time of the last look is that of a file.
LOOK_SECONDS = 600.0
_LAST_LOOK = "bounded"
# The subfolders of these are each used, and removed, as a unit.
_WHOLE = ("trees", "generated", "device_headers", "commands")
_SEAL, _LOCK = ".seal", ".lock"
_SIZE = re.compile(r"(\d{1,15})([KMGT]?)B?", re.I)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class Kind:
    """The size of one folder of the cache."""

    name: str
    files: int
    bytes: int


@dataclass(frozen=True)
class _Entry:
    """Files that are used together, and the time of their last use."""

    paths: tuple[Path, ...]
    bytes: int
    used: float


def parse_size(text: str) -> int:
    """Converts `500M` or `1G` to bytes. Raises PTR006 for anything else."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise PorterError("PTR006", f"{text!r} is not a size", hint="Give one such as 500M or 1G.")
    return int(match[1]) * _UNITS[match[2].upper()]


def bound() -> int:
    """Returns the limit in bytes: `$PORTER_CACHE_SIZE`, else 1G. Raises PTR006 if it is not a size."""
    return parse_size(os.environ.get("PORTER_CACHE_SIZE") or DEFAULT_BOUND)


def keep_bounded() -> None:
    """Prunes the cache to its limit, unless a process did within the last ten minutes. Raises PTR006 as `bound` does.

    A cache that this user may not write to stays as it is.
    """
    most, root = bound(), cache.root()
    last = _stat(root / _LAST_LOOK)
    if not root.is_dir() or (last and time.time() - last.st_mtime < LOOK_SECONDS):
        return
    try:
        (root / _LAST_LOOK).touch()
        prune(most)
    except PermissionError:
        return


def measure() -> tuple[Kind, ...]:
    """Returns the size of each folder of the cache, largest first."""
    root = cache.root()
    folders = sorted(each for each in root.iterdir() if each.is_dir()) if root.is_dir() else []
    kinds = [Kind(each.name, len(sizes), sum(sizes)) for each in folders for sizes in [_sizes(each)]]
    return tuple(sorted(kinds, key=lambda kind: -kind.bytes))


def prune(most: int) -> int:
    """Removes the least recently used files until at most `most` bytes are left. Returns the bytes removed.

    Files used within the last hour stay.
    """
    entries = sorted(_entries(cache.root()), key=lambda entry: entry.used)
    total, removed = sum(entry.bytes for entry in entries), 0
    for entry in entries:
        if total - removed <= most or time.time() - entry.used < IN_USE_SECONDS:
            break
        if any(time.time() - stat.st_mtime < IN_USE_SECONDS for path in entry.paths if (stat := _stat(path))):
            continue  # used since it was measured
        for path in entry.paths:
            if path.is_dir() and not path.is_symlink():
                remove_folder(path)
            else:
                path.unlink(missing_ok=True)
        removed += entry.bytes
    return removed


def _entries(root: Path) -> Iterator[_Entry]:
    groups: dict[Path, list[Path]] = {}
    for path in _files(root):
        inside = path.relative_to(root).parts
        whole = inside[0] in _WHOLE and len(inside) > 2
        one = root.joinpath(*inside[:2]) if whole else path.with_name(path.name.removesuffix(_SEAL))
        groups.setdefault(one, []).append(path)
    for one, paths in groups.items():
        found = [stat for path in paths if (stat := _stat(path))]
        folder = _stat(one) if one.is_dir() else None
        used = max((stat.st_mtime for stat in (*found, *([folder] if folder else []))), default=0.0)
        yield _Entry((one,) if folder else tuple(paths), sum(stat.st_size for stat in found), used)


def _files(folder: Path) -> Iterator[Path]:
    """Yields all files but locks: removing one that is held would let a second process take it."""
    for base, _, names in os.walk(folder):
        yield from (Path(base, name) for name in names if not name.endswith(_LOCK) and name != _LAST_LOOK)


def _sizes(folder: Path) -> list[int]:
    return [stat.st_size for path in _files(folder) if (stat := _stat(path))]


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:  # another process removed it
        return None
