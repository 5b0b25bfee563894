"""`porter watch`: verifies again whenever a file changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

PAUSE_SECONDS = 0.2
SETTLE_SECONDS = 0.1

Stamp = tuple[int, int] | None


def watch(
    files: Callable[[], Iterable[Path]], act: Callable[[], None], sleep: Callable[[float], None] = time.sleep
) -> None:
    """Calls `act` once, then again after every change, until interrupted. Calls `files` each time."""
    try:
        act()
        for _ in changes(files, sleep):
            act()
    except KeyboardInterrupt:
        return


def changes(files: Callable[[], Iterable[Path]], sleep: Callable[[float], None] = time.sleep) -> Iterator[list[Path]]:
    """Yields the files that were changed, added or removed, once writes settle."""
    before = _stamps(files())
    while True:
        sleep(PAUSE_SECONDS)
        now = _stamps(files())
        if now == before:
            continue
        settled = False
        while not settled:
            sleep(SETTLE_SECONDS)
            again = _stamps(files())
            settled, now = again == now, again
        yield sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
        before = now


def _stamps(files: Iterable[Path]) -> dict[Path, Stamp]:
    return {path: _stamp(path) for path in files}


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
