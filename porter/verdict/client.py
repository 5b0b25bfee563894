"""The client of the verdict server: finds it, starts it when there is none, and asks it for a verdict.

The server keeps torch, the OpInfos and the device imported and forks for every request. There is one for each user and
environment: its socket's name is a digest of the interpreter, torch and porter's own files, so a change of any starts
another and the old one leaves.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from porter.core.errors import PorterError
from porter.core.progress import Progress, ignore
from porter.verdict.result import MPS, Verdict, VerifyTarget

START_SECONDS = 600.0  # the first start of all builds the device
NO_SERVER = "PORTER_NO_SERVER"
VERDICT, RECORDINGS, PREPARATION = "verdict", "recordings", "preparation"
PROGRESS = "progress"
_PACKAGES = Path(__file__).resolve().parent.parent.parent
_WATCHED = ("porter", "aten_overlay")
_CODE = (".py", ".h", ".cpp", ".mm", ".m", ".yaml")
_SETTINGS = ("PORTER_CACHE", "PORTER_CLANG", "CC", "CXX")


def request(
    root: Path,
    texts: Mapping[str, str],
    op: VerifyTarget,
    expr: str | None,
    backend: str,
    arithmetic: str,
    progress: Progress = ignore,
) -> Verdict:
    """Has a checkout with these texts verified, as `verdict.verify` says it.

    Raises PTR170 when no process can be started that answers.
    """
    asked = {
        "what": VERDICT,
        "root": str(root.resolve()),
        "texts": dict(texts),
        "target": asdict(op),
        "expr": expr,
        "backend": backend,
        "arithmetic": arithmetic,
    }
    return Verdict.from_json(ask(asked, progress))


def ask(asked: dict[str, Any], progress: Progress = ignore) -> dict[str, Any]:
    """The answer to a question: its `what` is VERDICT, RECORDINGS or PREPARATION, its `backend` says which server.

    `progress` hears what the server does meanwhile; a process of its own says nothing.

    Under `$PORTER_NO_SERVER`, and for Apple's GPU, which a forked process cannot use, a process of its own answers.
    Raises PTR170 when no process can be started that answers, and the error that the answer tells.
    """
    alone = os.environ.get(NO_SERVER) or asked["backend"] == MPS
    answer = _alone(asked) if alone else _served(asked, progress)
    if "error" in answer:
        raise PorterError(answer.get("code", "PTR170"), answer["error"], hint=answer.get("hint", ""))
    return answer


def fingerprint(backend: str) -> str:
    """The backend, and a digest of all that its server has imported: interpreter, torch, porter's code and settings."""
    parts: list[object] = [sys.executable, sys.version, *(os.environ.get(name, "") for name in _SETTINGS)]
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise PorterError("PTR170", "torch is not installed", hint="Run `pip install 'porter[verify]'`.")
    parts += [spec.origin, (Path(spec.origin).parent / "version.py").stat().st_mtime_ns]
    for package in _WATCHED:
        parts += sorted(_stamps(_PACKAGES / package))
    return f"{backend}-{hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()}"


def private_directory() -> Path:
    """Where sockets and logs live: only this user may enter it."""
    base = os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/porter-{os.getuid()}"
    folder = Path(base) / "porter" if os.environ.get("XDG_RUNTIME_DIR") else Path(base)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    stat = folder.stat()
    if stat.st_uid != os.getuid() or stat.st_mode & 0o077:
        raise PorterError(
            "PTR170",
            f"{folder} is not private to this user",
            hint="Remove it, or set XDG_RUNTIME_DIR to a directory you own.",
        )
    return folder


def _served(asked: dict[str, Any], progress: Progress) -> dict[str, Any]:
    name = fingerprint(asked["backend"])
    for _ in range(2):
        try:
            with _connected(name, progress) as link:
                return exchange(link, asked, progress)
        except (ConnectionError, EOFError, FileNotFoundError):
            continue  # it left between the look and the question: the second round starts another
    raise PorterError("PTR170", "the verdict server does not respond", hint=f"See its log: {_log(name)}.")


def exchange(link: socket.socket, asked: dict[str, Any], progress: Progress = ignore) -> dict[str, Any]:
    """Sends one JSON line and reads the answer: one line, after those that tell of PROGRESS."""
    link.sendall(json.dumps(asked).encode() + b"\n")
    with link.makefile("rb") as lines:
        for line in lines:
            answer: dict[str, Any] = json.loads(line)
            if PROGRESS not in answer:
                return answer
            progress(answer[PROGRESS])
    raise EOFError


def _connected(name: str, progress: Progress) -> socket.socket:
    path = private_directory() / name
    link = _try(path)
    if link is not None:
        return link
    progress("starting the verdict server")
    child = _start(name, path)
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        link = _try(path)
        if link is not None:
            return link
        if child.poll() not in (None, 0):
            raise PorterError("PTR170", f"the verdict server did not start:\n{_tail(_log(name))}")
        time.sleep(0.02)
    raise PorterError("PTR170", "the verdict server did not start in time", hint=f"See its log: {_log(name)}.")


def _try(path: Path) -> socket.socket | None:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        link.close()
        return None
    return link


def _start(name: str, path: Path) -> subprocess.Popen[bytes]:
    with _log(name).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "porter.server.server", str(path), name, name.partition("-")[0]],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=_PACKAGES,
            env=_environment(),
            start_new_session=True,
        )


def _alone(asked: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "porter.server.server", "--once"],
        input=json.dumps(asked).encode(),
        capture_output=True,
        cwd=_PACKAGES,
        env=_environment(),
        check=False,
    )
    lines = done.stdout.splitlines()
    if not lines:
        raise PorterError("PTR170", f"the verdict process exited without an answer:\n{done.stderr.decode()[-2000:]}")
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def _environment() -> dict[str, str]:
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{_PACKAGES}{os.pathsep}{path}" if path else str(_PACKAGES)}


def _stamps(folder: Path) -> Iterator[tuple[str, int, int]]:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in ("__pycache__", "fork"):
                yield from _stamps(Path(entry.path))
        elif entry.name.endswith(_CODE):
            stat = entry.stat()
            yield entry.path, stat.st_mtime_ns, stat.st_size


def _log(name: str) -> Path:
    return private_directory() / f"{name}.log"


def _tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-15:]) if path.is_file() else ""
