"""Which porter makes results, and with which torch: what a reader of a table needs to make it again."""

from __future__ import annotations

import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from porter import __version__
from porter.report.results import Provenance

_ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 30
# The commit alone, whatever tags there are; `-dirty` follows it if files of it were changed.
_DESCRIBE = ("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


@cache
def read_provenance() -> Provenance:
    """What results of this process come from. Without a repository, git or torch their parts are empty."""
    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = ""
    return Provenance(__version__, _read_commit(), torch)


def _read_commit() -> str:
    """The commit that porter runs from; empty for a porter that is installed, in whatever repository that is."""
    if not (_ROOT / ".git").exists():
        return ""
    command = ["git", "-C", str(_ROOT), *_DESCRIBE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
