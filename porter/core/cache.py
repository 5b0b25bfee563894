"""The one cache on disk: where it is, how its keys are made, and how values are read and written.

A value is kept with its digest, so that one that was cut or changed counts as missing. Only this user may enter.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from porter.core.private import make_folder, make_private


def root() -> Path:
    """The folder of all that is cached: `$PORTER_CACHE`, else `~/.cache/porter`. Raises PTR180 as `make_private`."""
    folder = Path(os.environ.get("PORTER_CACHE") or Path.home() / ".cache" / "porter")
    return make_private(folder) if folder.is_dir() else folder


def digest(*parts: str | bytes) -> str:
    """A digest of texts and bytes in order, their boundaries included; of a single one, the hash of its content."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        found.update(data if len(parts) == 1 else len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


def key(kind: str, name: str, *parts: str | bytes) -> Path:
    """The file in the folder of its kind that holds a JSON value made from these parts; `name` helps a reader."""
    made_from = digest(*parts)
    return root() / kind / (f"{name}-{made_from}.json" if name else f"{made_from}.json")


def get(path: Path) -> str | None:
    """The text that is cached there, which counts as used; None where there is none, or one that is damaged."""
    try:
        seal, _, data = path.read_bytes().partition(b"\n")
        if seal != digest(data).encode():
            return None
        os.utime(path)
    except FileNotFoundError:
        return None
    return data.decode("utf-8", "surrogateescape")


def put(path: Path, value: str) -> Path:
    """Caches a text there; another process that reads sees all of it or what was there before."""
    data = value.encode("utf-8", "surrogateescape")
    return _write(path, digest(data).encode() + b"\n" + data)


def put_if_changed(path: Path, content: str | bytes) -> Path:
    """A file that holds this and nothing else, for a compiler; an unchanged one keeps what was built from it."""
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
