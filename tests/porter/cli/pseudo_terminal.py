"""Runs porter on a terminal of a given width, as a person would."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
COLOR = re.compile(r"\x1b\[[0-9;]*m")
_CURSOR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def shown(text: str) -> str:
    """What stays of a terminal's output where it is only printed: no colors, no line that was erased."""
    lines = (line.rpartition("\x1b[2K")[2] for line in COLOR.sub("", text).replace("\r\n", "\n").split("\n"))
    return "\n".join(_CURSOR.sub("", line) for line in lines)


def on_terminal(*arguments: str, width: int = 80, **environment: str) -> str:
    """All that `porter ARGUMENTS` writes to a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")}
    settings = {**kept, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-m", "porter", *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=settings, cwd="/") as child:
        os.close(theirs)
        written = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    assert child.returncode == 0, written.decode(errors="replace")
    return written.decode()


def in_pipe(*arguments: str, cwd: str | Path = "/") -> subprocess.CompletedProcess[bytes]:
    """What `porter ARGUMENTS` writes where no terminal is."""
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-m", "porter", *arguments], env=settings, cwd=cwd, capture_output=True)


def _read(end: int) -> bytes:
    try:
        return os.read(end, 1 << 16)
    except OSError:  # Linux's way to say that the other end is closed
        return b""
