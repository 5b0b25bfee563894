"""Work of tests with large tensors: in a process that ends where it touches much more memory than they need."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch

MOST_BYTES = 3 << 30
_SECONDS = 0.02
SECONDS = 30.0


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


def run_apart(work: Callable[[], str], seconds: float = SECONDS) -> str:
    """What work returns in a child process; "" if that died or took too long."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            limit_memory()
            torch.set_num_threads(1)  # a child has none of its parent's
            os.write(writer, work().encode())
        finally:
            os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], seconds)
    if not ready:
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reader, "rb") as file:
        answer = file.read().decode()
    os.waitpid(child, 0)
    return answer
