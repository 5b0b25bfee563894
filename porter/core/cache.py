"""The cache on disk: its folder, its keys, and reading and writing values.

A value is stored with its digest, so that a truncated or modified one counts as missing. Only this user has access.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from porter.core.errors import refused
from porter.core.private import find_home, make_folder, make_private


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
