"""Files below a folder, reached without following a symbolic link: every step is opened from the one before it.

Paths are relative, with forward slashes, and hold no link when they are given; where one was put since, the system
refuses with an OSError.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EEXIST, EINVAL, ENOTEMPTY
from pathlib import Path, PurePosixPath

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def is_plain(path: object) -> bool:
    """Whether this is a relative path that leads to nothing above its folder."""
    if not isinstance(path, str) or not path or "\0" in path or path.startswith("/"):
        return False
    return not {"", ".", ".."} & set(path.split("/"))


def read(root: Path, path: str) -> bytes:
    """The bytes of a regular file. Raises OSError for anything else."""
    with _open_parent(root, path) as (folder, name), open(os.open(name, _READ, dir_fd=folder), "rb") as file:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(EINVAL, "not a regular file", path)
        return file.read()


def mode(root: Path, path: str) -> int:
    """The permission bits of a file."""
    with _open_parent(root, path) as (folder, name):
        return stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def write_beside(root: Path, path: str, token: str, data: bytes, mode: int | None) -> None:
    """Writes what a file is to hold into a new one beside it, which is on the disk when this returns."""
    with _open_parent(root, path, create=True) as (folder, name):
        handle = os.open(_temporary(name, token), _CREATE, 0o666, dir_fd=folder)
        write_synced(handle, data, mode)


def write_synced(handle: int, data: bytes, mode: int | None = None) -> None:
    """Writes to a new file, waits until it is on the disk, and closes it."""
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
        if mode is not None:
            os.chmod(handle, mode)
        os.fsync(handle)
    finally:
        os.close(handle)


def take_over(root: Path, path: str, token: str) -> None:
    """The file becomes what was written beside it."""
    with _open_parent(root, path) as (folder, name):
        os.replace(_temporary(name, token), name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)


def remove(root: Path, path: str) -> None:
    """Removes a file."""
    with _open_parent(root, path) as (folder, name):
        os.unlink(name, dir_fd=folder)
        os.fsync(folder)


def discard_beside(root: Path, path: str, token: str) -> None:
    """Removes what was written beside a file, if it is there."""
    with suppress(FileNotFoundError), _open_parent(root, path) as (folder, name):
        _require_there(folder, _temporary(name, token))
        os.unlink(_temporary(name, token), dir_fd=folder)


def remove_empty_folder(root: Path, path: str) -> None:
    """Removes a folder that is there and holds nothing."""
    with suppress(FileNotFoundError), _open_parent(root, path) as (folder, name):
        _require_there(folder, name)
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in (ENOTEMPTY, EEXIST):
                raise


@contextmanager
def _open_parent(root: Path, path: str, create: bool = False) -> Iterator[tuple[int, str]]:
    """A handle of the folder that a path is in, and its last name."""
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
