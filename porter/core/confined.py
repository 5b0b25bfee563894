"""File operations below a folder that never follow a symbolic link: each directory is opened relative to its parent.

Paths are relative, with forward slashes, and contain no link when passed in. If one was planted since, the operation
raises OSError.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EEXIST, ENOTEMPTY
from pathlib import Path, PurePosixPath

from porter.core.cache import digest
from porter.core.files import read_open

# renameat2(2) and its RENAME_EXCHANGE on Linux, renameatx_np(2) and its RENAME_SWAP on macOS.
_FUNCTION = "renameatx_np" if sys.platform == "darwin" else "renameat2"
_EXCHANGE = 2
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def exchange_names(folder: int, first: str, second: str) -> bool:
    """Exchanges two names in an open folder. Returns False if the file system cannot, raises OSError if it refuses."""
    function = getattr(ctypes.CDLL(None, use_errno=True), _FUNCTION, None)
    if function is None:
        return False
    if function(folder, os.fsencode(first), folder, os.fsencode(second), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), second)


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LARGEST = 1 << 26  # bytes of what is read: a record of the journal, or a file of the checkout
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def is_plain(path: object) -> bool:
    """Returns whether this is a relative path without `.` or `..`."""
    if not isinstance(path, str) or not path or "\0" in path or path.startswith("/"):
        return False
    return not {"", ".", ".."} & set(path.split("/"))


def read(root: Path, path: str) -> bytes:
    """Returns the bytes of a regular file. Raises OSError for anything else."""
    with _open_parent(root, path) as (folder, name):
        return _read(folder, name)


def mode(root: Path, path: str) -> int:
    """Returns the permission bits of a file."""
    with _open_parent(root, path) as (folder, name):
        return stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def write_beside(root: Path, path: str, token: str, data: bytes, mode: int | None) -> None:
    """Writes the new content of a file to a temporary file beside it and syncs it."""
    with _open_parent(root, path, create=True) as (folder, name):
        handle = os.open(_temporary(name, token), _CREATE, 0o666, dir_fd=folder)
        write_synced(handle, data, mode)


def write_synced(handle: int, data: bytes, mode: int | None = None) -> None:
    """Writes to an open file, syncs and closes it."""
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
        if mode is not None:
            os.chmod(handle, mode)
        os.fsync(handle)
    finally:
        os.close(handle)


def swap_in(root: Path, path: str, token: str, expected: str | None) -> bool:
    """Replaces a file with what `write_beside` wrote, if it still has the expected digest (None: it does not exist).

    Returns False and leaves the file alone otherwise. Where the system can exchange two names atomically, no edit is
    lost, whenever it is made.
    """
    with _open_parent(root, path) as (folder, name):
        ready = _ready(name, token)
        os.rename(_temporary(name, token), ready, src_dir_fd=folder, dst_dir_fd=folder)
        swapped = _link_new(folder, ready, name) if expected is None else _exchange(folder, ready, name, expected)
        with suppress(FileNotFoundError):  # it was renamed where names cannot be exchanged
            os.unlink(ready, dir_fd=folder)
        os.fsync(folder)
        return swapped


def take_away(root: Path, path: str, token: str, expected: str) -> bool:
    """Removes a file if it still has the expected digest. Returns False and leaves it alone otherwise."""
    with _open_parent(root, path) as (folder, name):
        ready = _ready(name, token)
        try:
            os.rename(name, ready, src_dir_fd=folder, dst_dir_fd=folder)
        except FileNotFoundError:
            return False
        removed = digest(_read(folder, ready)) == expected
        if not removed:
            _link_new(folder, ready, name)
        os.unlink(ready, dir_fd=folder)
        os.fsync(folder)
        return removed


def put_back(root: Path, path: str, token: str, ours: set[str | None]) -> None:
    """Restores a file that an interrupted `swap_in` or `take_away` displaced, unless its digest is one of `ours`."""
    with suppress(FileNotFoundError), _open_parent(root, path) as (folder, name):
        ready = _ready(name, token)
        if digest(_read(folder, ready)) in ours:
            return
        if not _link_new(folder, ready, name):
            exchange_names(folder, ready, name)


def discard_beside(root: Path, path: str, token: str) -> None:
    """Removes the temporary files beside a file, if any."""
    with suppress(FileNotFoundError), _open_parent(root, path) as (folder, name):
        for beside in (_temporary(name, token), _ready(name, token)):
            with suppress(FileNotFoundError):
                _require_there(folder, beside)
                os.unlink(beside, dir_fd=folder)


def remove_empty_folder(root: Path, path: str) -> None:
    """Removes a folder if it exists and is empty."""
    with suppress(FileNotFoundError), _open_parent(root, path) as (folder, name):
        _require_there(folder, name)
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in (ENOTEMPTY, EEXIST):
                raise


def _read(folder: int, name: str) -> bytes:
    return read_open(os.open(name, _READ, dir_fd=folder), _LARGEST, name)


def _link_new(folder: int, old: str, new: str) -> bool:
    """Hard-links a file. Returns False if the new name exists."""
    try:
        os.link(old, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False
    return True


def _exchange(folder: int, ready: str, name: str, expected: str) -> bool:
    try:
        if not exchange_names(folder, ready, name):
            if digest(_read(folder, name)) != expected:
                return False
            os.replace(ready, name, src_dir_fd=folder, dst_dir_fd=folder)
            return True
    except FileNotFoundError:
        return False
    if digest(_read(folder, ready)) == expected:
        return True
    exchange_names(folder, ready, name)
    return False


@contextmanager
def _open_parent(root: Path, path: str, create: bool = False) -> Iterator[tuple[int, str]]:
    """Yields a descriptor of the parent folder, and the file name."""
    *folders, name = PurePosixPath(path).parts
    handle = os.open(root, _FOLDER)
    try:
        for each in folders:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(each, dir_fd=handle)
            below = os.open(each, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle, name
    finally:
        os.close(handle)


def _require_there(folder: int, name: str) -> None:
    """Raises FileNotFoundError first: a read-only file system refuses to remove even what is not there."""
    os.stat(name, dir_fd=folder, follow_symlinks=False)


def _temporary(name: str, token: str) -> str:
    return f".{name}.{token}.porter"


def _ready(name: str, token: str) -> str:
    """A name that only ever holds a complete file: the new content before the exchange, the displaced file after it."""
    return f".{name}.{token}.ready"
