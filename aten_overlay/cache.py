"""Where results of this package are cached, and the keys they are found by."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def root() -> Path:
    """The folder of all caches: `$PORTER_CACHE`, else `~/.cache/porter`."""
    return Path(os.environ.get("PORTER_CACHE") or Path.home() / ".cache" / "porter")


def digest(*parts: str | bytes) -> str:
    """A cache key of all parts, their boundaries included."""
    h = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        h.update(len(data).to_bytes(8, "little") + data)
    return h.hexdigest()
