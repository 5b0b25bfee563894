"""Exchanging two names of one folder in a single step, which Python has no function for."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

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
