"""The one cache on disk: where it is, how its keys are made, and how values are read and written."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def root() -> Path:
    """The folder of all that is cached: `$PORTER_CACHE`, else `~/.cache/porter`."""
    return Path(os.environ.get("PORTER_CACHE") or Path.home() / ".cache" / "porter")


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
    """The text that is cached there; None where there is none."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


def put(path: Path, value: str | bytes) -> Path:
    """Caches a value there; another process that reads sees all of it or nothing."""
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_bytes(data)
    part.replace(path)
    return path


def put_if_changed(path: Path, text: str) -> Path:
    """The same unless the file holds this text already: an unchanged file keeps what was built from it."""
    return path if get(path) == text else put(path, text)
