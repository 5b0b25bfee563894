"""`porter setup` and `porter doctor`: what of porter is on a machine, and what verdicts need built or installed."""

from __future__ import annotations

import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import Any

import yaml

from aten_overlay.metal.compiler import find_clang, version
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.files import read_regular
from porter.core.progress import Progress, ignore
from porter.core.python import foreign_module
from porter.report.upkeep import Compiler, Overlay, Part
from porter.verdict import client
from porter.verdict.backends.choice import choose_backend
from porter.verdict.errors import raising_porter_errors
from porter.verdict.messages import PrepareRequest
from porter.verdict.result import AUTO

PACKAGES = ("clang-19", "clang-18", "clang-17")
WITHOUT_ROOT = "ziglang"


def set_up() -> Compiler:
    """Returns a clang 17 or newer: an installed one, or else one installed from a system package (as root) or from
    `ziglang` (in a virtual environment).

    Raises PTR100 or PTR142 if there is none.
    """
    for install in (_install_with_apt, _install_with_pip):
        try:
            return _describe_compiler()
        except PorterError:
            install()
    return _describe_compiler()


def prepare(checkout: Checkout, progress: Progress = ignore) -> Overlay:
    """Builds the stand-in for Apple's frameworks and the host code that all operators of a checkout share.

    Raises PTR166 if the shared host code does not compile, and what `request_preparation` raises.
    """
    if find_spec("torch") is None:
        return Overlay()
    torch, backend = metadata.version("torch"), choose_backend(AUTO)
    if backend.RUNS_HOST_CODE:
        client.request_preparation(PrepareRequest(checkout.root.resolve(), backend.NAME), progress)
    return Overlay(torch, backend.NAME, backend.RUNS_HOST_CODE)


def _describe_compiler() -> Compiler:
    with raising_porter_errors():
        path = find_clang()
    return Compiler(str(path), version(path).splitlines()[0])


def _install_with_apt() -> None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    subprocess.run(["apt-get", "update", "-qq"], check=False)
    for package in PACKAGES:
        if subprocess.run(["apt-get", "install", "-y", "-qq", package], check=False).returncode == 0:
            return


def _install_with_pip() -> None:
    if sys.prefix != sys.base_prefix:
        program = foreign_module("pip", "install", "-q", WITHOUT_ROOT)
        subprocess.run(program.command, check=False, cwd=program.folder, env=program.environment)
        importlib.invalidate_caches()


def start_preparation(checkout: Checkout, backend: str) -> Event:
    """Starts the verdict server and prepares it in the background, until this process ends.

    The event is set once the server answers, or does not start, which is said to who asks it next. Raises as
    `choose_backend` does.
    """
    chosen, connected = choose_backend(backend), Event()
    if chosen.RUNS_HOST_CODE and not os.environ.get(client.NO_SERVER):
        Thread(target=_prepare, args=(checkout.root.resolve(), chosen.NAME, connected), daemon=True).start()
    else:
        connected.set()
    return connected


def _prepare(root: Path, backend: str, connected: Event) -> None:
    try:
        with suppress(PorterError, OSError, EOFError), client.connect(backend) as link:
            connected.set()
            client.exchange(link, client.complete(PrepareRequest(root, backend)))
    finally:
        connected.set()


TABLE = Path(__file__).with_name("parts.yaml")
_NUMBER = re.compile(r"\d+(?:\.\d+)+")


def examine() -> tuple[Part, ...]:
    """The parts of porter with the versions that are installed. Imports none of them."""
    return tuple(
        Part(row["name"], row["for"], row["needed"], row["command"], tuple(row.get("tried", ())), _find_version(row))
        for row in yaml.safe_load(read_regular(TABLE))
    )


def _find_version(row: Mapping[str, Any]) -> str:
    """The version of a part; empty where it is missing."""
    if "package" in row:
        try:
            return metadata.version(row["package"])
        except metadata.PackageNotFoundError:
            return _ask(row["package"])
    return _ask(row["program"]) if "program" in row else _FOUND_BY_CODE[row["name"]]()


def _ask(program: str) -> str:
    """The version that a program on the path says of itself."""
    path = shutil.which(program)
    if path is None:
        return ""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    number = _NUMBER.search(done.stdout)
    return number[0] if number else "unknown"


def _find_clang() -> str:
    from aten_overlay.errors import OverlayError
    from aten_overlay.metal.compiler import find_clang, version

    try:
        number = _NUMBER.search(version(find_clang()))
    except OverlayError:
        return ""
    return number[0] if number else "unknown"


_FOUND_BY_CODE: Mapping[str, Callable[[], str]] = {"Python": platform.python_version, "clang": _find_clang}
