"""Reads and writes files that somebody else may have put there: no pipe is waited for, no device is read without end,
and no half of a file is left where a write fails.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

from porter.core.errors import Place, PorterError

# Bytes of a file that a person writes. Nothing that porter wrote itself, such as results, is meant.
LARGEST = 4 * 1024 * 1024
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
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


def read_open(handle: int, most: int, name: str) -> bytes:
    """`read_regular` for a descriptor that was opened without waiting. Closes it."""
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", name)
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"Larger than {most // 1024} KiB", name)
    return data


def read_named(path: Path, code: str, hint: str = "Check the path.", most: int = LARGEST) -> str:
    """Returns the text of a file that a user names. Raises `code` for what `read_regular` refuses, or no text."""
    try:
        return read_regular(path, most).decode().replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise refuse(path, error, code, hint) from error


def require_regular(path: Path, code: str) -> None:
    """Raises `code` unless `read_named` could read the bytes: for a file that another program is to read."""
    try:
        read_regular(path)
    except OSError as error:
        raise refuse(path, error, code, "Check the path.") from error


def refuse(path: Path, error: OSError | UnicodeDecodeError, code: str, hint: str) -> PorterError:
    """Why a file cannot be read, as an error with this code."""
    reason = error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"
    return PorterError(code, f"cannot read this file: {reason[:1].lower()}{reason[1:]}", Place(str(path)), hint)


def write_whole(path: Path, text: str) -> None:
    """Writes a file: all of it, or none, and then what stood there before is unchanged. Keeps its permissions.

    A pipe or a device that somebody reads is written into. Raises OSError.
    """
    data = text.encode("utf-8", "surrogateescape")
    real = Path(os.path.realpath(path))
    there = real.stat().st_mode if real.exists() else None
    if there is not None and not stat.S_ISREG(there):
        _write_into(real, data)
        return
    part = real.with_name(f".porter.{secrets.token_hex(8)}")
    _create(part, data, None if there is None else stat.S_IMODE(there))
    try:
        part.replace(real)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def create_whole(path: Path, text: str) -> None:
    """Writes a new file: all of it, or none. Raises FileExistsError if there is one, and OSError."""
    _create(path, text.encode("utf-8", "surrogateescape"))


def _create(path: Path, data: bytes, mode: int | None = None) -> None:
    with os.fdopen(os.open(path, _CREATE, 0o666), "wb") as file:
        try:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _write_into(path: Path, data: bytes) -> None:
    """A pipe that nobody reads refuses to be opened so; one with a reader is then waited for."""
    with os.fdopen(os.open(path, _INTO), "wb") as file:
        os.set_blocking(file.fileno(), True)
        file.write(data)
