"""Folders that only this user can access, whatever the umask. porter trusts only what it finds in these."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from porter.core.errors import PorterError

_OTHERS_WRITE = 0o022
_OTHERS = 0o077


def state_root() -> Path:
    """Returns the folder for journals: `$PORTER_STATE`, else `$XDG_STATE_HOME/porter`, else `~/.local/state/porter`.

    Raises PTR183 for the last if there is no home folder.
    """
    if own := os.environ.get("PORTER_STATE"):
        return Path(own)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else find_home() / ".local" / "state") / "porter"


def find_home() -> Path:
    """Returns this user's home folder. Raises PTR183 where there is none, as for a user that a container made up."""
    try:
        return Path.home()
    except RuntimeError as error:
        hint = "Set HOME, or name the folders with $PORTER_CACHE and $PORTER_STATE."
        raise PorterError("PTR183", "this user has no home folder, and $HOME is not set", hint=hint) from error


def make_private(folder: Path) -> Path:
    """Creates a folder with mode 700, or sets this mode on an existing one. Resolves a link that this user owns.

    Raises PTR180 if the folder belongs to another user, or others could have written to it.
    """
    try:
        if folder.is_symlink():
            if folder.lstat().st_uid != os.getuid():
                raise _not_private(folder, "is a link of another user's")
            folder = folder.resolve()
        make_folder(folder)
        found = folder.stat()
        if found.st_uid != os.getuid():
            raise _not_private(folder, "belongs to another user")
        if found.st_mode & _OTHERS_WRITE and any(folder.iterdir()):
            raise _not_private(folder, "can be written to by other users")
        if found.st_mode & _OTHERS:
            folder.chmod(0o700)
    except OSError as error:
        raise _not_private(folder, f"cannot be used: {error.strerror}") from error
    return folder


def make_folder(folder: Path) -> Path:
    """Creates a folder and its parents with mode 700, whatever the umask. Existing ones keep their mode."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def remove_folder(folder: Path) -> None:
    """Removes a folder that other processes look for: none of them finds it half removed."""
    gone = Path(tempfile.mkdtemp(prefix=f"{folder.name}.gone.", dir=folder.parent))
    with suppress(OSError):  # another process removed it
        folder.rename(gone / folder.name)
    shutil.rmtree(gone, ignore_errors=True)


def _not_private(folder: Path, why: str) -> PorterError:
    return PorterError(
        "PTR180", f"{folder} {why}", hint="Remove it, or name another folder; see the page of this code."
    )
