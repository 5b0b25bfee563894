"""Where results of this package are cached, the keys they are found by, and how one is known to be whole.

A result is sealed: a file beside it holds its digest. One that is cut, emptied or without a seal counts as missing.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from aten_overlay.errors import OverlayError

SEAL = ".seal"
_OTHERS, _OTHERS_WRITE = 0o077, 0o022
_checked: dict[Path, tuple[int, ...]] = {}


def root() -> Path:
    """The folder of all caches: `$PORTER_CACHE`, else `~/.cache/porter`.

    Raises PTR180 if others may write to it, and PTR183 if there is no home folder.
    """
    try:
        folder = Path(os.environ.get("PORTER_CACHE") or Path.home() / ".cache" / "porter")
    except RuntimeError as error:
        hint = "Set HOME, or name the folder with $PORTER_CACHE."
        raise OverlayError("PTR183", "this user has no home folder, and $HOME is not set", hint=hint) from error
    if folder.is_dir():
        _close(folder)
    return folder


def commands() -> Path:
    """The folder of the compilers that programs for macOS are given (apple/commands.py)."""
    return root() / "commands"


def digest(*parts: str | bytes) -> str:
    """A cache key of all parts, their boundaries included."""
    h = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        h.update(len(data).to_bytes(8, "little") + data)
    return h.hexdigest()


def make_folder(folder: Path) -> Path:
    """Creates a folder and those above it, for this user alone whatever the umask."""
    missing = [folder, *folder.parents]
    for each in reversed(missing[: next((i for i, p in enumerate(missing) if p.is_dir()), len(missing))]):
        each.mkdir(mode=0o700, exist_ok=True)
    return folder


def write(path: Path, data: bytes) -> Path:
    """Writes a file for this user alone; a reader sees all of it or what was there before."""
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


def seal(path: Path) -> Path:
    """Writes down what a finished result holds, so that `is_intact` finds it."""
    path.chmod(path.stat().st_mode & 0o700)
    write(path.with_name(path.name + SEAL), _content_digest(path).encode())
    return path


def is_intact(path: Path) -> bool:
    """Whether a result is there and is what was sealed; it counts as used. Read again only when it has changed."""
    try:
        sealed, stamp = path.with_name(path.name + SEAL), _stamp(path)
        if _checked.get(path) != stamp:
            if sealed.read_bytes() != _content_digest(path).encode():
                return False
            _checked[path] = stamp
        os.utime(sealed)
        return True
    except OSError:  # one of both is missing, or cannot be read: it is made again
        return False


def _content_digest(path: Path) -> str:
    found = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def _stamp(path: Path) -> tuple[int, ...]:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _close(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid != os.getuid() or (folder.is_symlink() and folder.lstat().st_uid != os.getuid()):
        raise OverlayError("PTR180", f"{folder} belongs to another user", hint=_HINT)
    if found.st_mode & _OTHERS_WRITE and any(folder.iterdir()):
        raise OverlayError("PTR180", f"{folder} can be written to by other users", hint=_HINT)
    if found.st_mode & _OTHERS:
        folder.chmod(0o700)


_HINT = "Remove it, or name another folder; see the page of this code."
