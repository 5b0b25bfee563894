"""Ends the process when it touches much more memory than tests of large tensors need."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

MOST_BYTES = 3 << 30
_SECONDS = 0.02


def limit_memory(most: int = MOST_BYTES) -> None:
    """From now on, ends the process when it holds `most` bytes more than now: sparse tensors do not."""
    limit = _read_resident() + most
    threading.Thread(target=_watch, args=(limit,), daemon=True).start()


def _watch(limit: int) -> None:
    while _read_resident() < limit:
        time.sleep(_SECONDS)
    sys.stderr.write(
        f"PTR272 a test of large tensors holds more than {limit >> 20} MiB: code goes over all of a storage\n"
    )
    sys.stderr.flush()
    os._exit(1)


def _read_resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
