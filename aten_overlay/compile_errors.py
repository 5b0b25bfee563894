"""What a person is told of a failed compilation: its first errors, how many more there are, and where the rest is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aten_overlay import cache

SHOWN = 3
NO_LIMIT = "-ferror-limit=0"
"""clang's flag to go on after twenty errors: how many there are is told."""


def describe_errors(errors: Sequence[tuple[str, str]], log: str) -> str:
    """The text of the first error with the number of others, then the next ones with their places, then where the
    whole `log` is kept.

    `errors` are places (`file:line`) and texts, at least one; the first one's place is left to the caller. What an
    error says twice of one line counts once. A log of one error is not kept.
    """
    distinct = list(dict.fromkeys(errors))
    (_, first), *others = distinct
    if not others:
        return first
    count = f" (and {len(others)} more error{'s' if len(others) > 1 else ''})"
    shown = [f"{place}: {text}" for place, text in others[: SHOWN - 1]]
    return "\n".join([first + count, *shown, f"the whole log: {keep_log(log)}"])


def keep_log(log: str) -> Path:
    """The file in the cache with what a compiler said."""
    data = log.encode("utf-8", "surrogateescape")
    path = cache.root() / "logs" / f"{cache.digest(data)}.log"
    if not (path.is_file() and path.read_bytes() == data):
        cache.write(path, data)
    return path
