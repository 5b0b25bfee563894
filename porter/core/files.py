"""Reads and writes files that somebody else may have put there: no pipe is waited for, no device is read without end,
and no half of a file is left where a write fails.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from porter.core.errors import Place, PorterError

# Bytes of a file that a person writes. Nothing that porter wrote itself, such as results, is meant.
LARGEST = 4 * 1024 * 1024
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_INTO = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC


def read_regular(path: Path, most: int = LARGEST) -> bytes:
    """Returns the bytes of a regular file, or of one that a link leads to.

    Raises OSError: with EINVAL for anything else, such as a pipe, and with EFBIG for more than `most` bytes.
    """
    try:
        handle = os.open(path, _READ)
    except ValueError as error:  # a name with a null character
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    return read_open(handle, most, str(path))


def read_open(handle: int, most: int = LARGEST, name: str = "") -> bytes:
    """`read_regular` for a descriptor that was opened without waiting. Closes it."""
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", name)
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"Larger than {most // 1024} KiB", name)
    return data


def read_named(path: Path, code: str, hint: str = "Check the path.", most: int = LARGEST, errors: str = "strict") -> str:
    """Returns the text of a file that a user names. Raises `code` for what `read_regular` refuses, or what is no text."""
    try:
        return read_regular(path, most).decode("utf-8", errors).replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise refuse(path, error, code, hint) from error


def require_regular(path: Path, code: str, hint: str = "Check the path.", most: int = LARGEST) -> None:
    """Raises `code` unless `read_named` could read the bytes: for a file that another program is to read."""
    try:
        read_regular(path, most)
    except OSError as error:
        raise refuse(path, error, code, hint) from error


def refuse(path: Path, error: OSError | UnicodeDecodeError, code: str, hint: str) -> PorterError:
    """Why a file cannot be read, as an error with this code."""
    reason = error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"
    return PorterError(code, f"cannot read this file: {reason[:1].lower()}{reason[1:]}", Place(str(path)), hint)


def write_whole(path: Path, text: str) -> None:
    """Writes a file: all of it, or none, and then what stood there before is unchanged. Keeps its permissions.

    A pipe or a device that somebody reads is written into. Lone surrogates are written as they were read. Raises
    OSError.
    """
    data = text.encode("utf-8", "surrogateescape")
    real = Path(os.path.realpath(path))
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(real.stat().st_mode):
            _write_into(real, data)
            return
    _replace(real, data, lambda part: part.replace(real))


def create_whole(path: Path, text: str) -> None:
    """Writes a new file: all of it, or none. Raises FileExistsError if there is one, and OSError."""
    _replace(path, text.encode("utf-8", "surrogateescape"), lambda part: os.link(part, path))


def _write_into(path: Path, data: bytes) -> None:
    """A pipe without a reader refuses to be opened so; one with a reader is then waited for."""
    with os.fdopen(os.open(path, _INTO), "wb") as file:
        os.set_blocking(file.fileno(), True)
        file.write(data)


def _replace(path: Path, data: bytes, finish: Callable[[Path], object]) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".porter.")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), _mode(path))
        finish(part)
    finally:
        part.unlink(missing_ok=True)


def _mode(path: Path) -> int:
    """The permissions of the file that is there, or those of a new one."""
    with suppress(OSError):
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
