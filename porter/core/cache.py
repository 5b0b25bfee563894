"""The cache on disk: its folder, its keys, and reading and writing values."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def root() -> Path:
    """Returns the cache folder: `$PORTER_CACHE`, else `~/.cache/porter`."""
    return Path(os.environ.get("PORTER_CACHE") or Path.home() / ".cache" / "porter")


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


def get(path: Path) -> str | None:
    """Returns the cached text, or None."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


def put(path: Path, value: str | bytes) -> Path:
    """Writes a value atomically: another process reads all of it or nothing."""
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_bytes(data)
    part.replace(path)
    return path


def put_if_changed(path: Path, text: str) -> Path:
    """Like `put`, but leaves a file with this text untouched, so that nothing built from it is rebuilt."""
    return path if get(path) == text else put(path, text)
