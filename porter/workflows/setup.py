"""`porter setup`: the compiler that the overlay needs, found, installed where that is allowed, or named; then all that
is built once, so that no first verdict waits for it.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec

from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress, ignore
from porter.report.setup import Compiler, Overlay

PACKAGES = ("clang-19", "clang-18", "clang-17")
WITHOUT_ROOT = "ziglang"


def set_up() -> Compiler:
    """Makes sure that a clang of 17 or newer is there, and says which: one that is found, else one of the system's
    packages where this user may install them, else `ziglang`, where this is a virtual environment.

    Raises PTR100 or PTR142 where there is none after all.
    """
    for install in (_with_apt, _with_pip):
        try:
            return _found()
        except PorterError:
            install()
    return _found()


def prepare(checkout: Checkout, progress: Progress = ignore) -> Overlay:
    """Builds the stand-in for Apple and what every operator of a checkout shares, and says for which torch.

    Raises PTR166 where the checkout's own shared host code does not compile, and what serving raises.
    """
    from porter.verdict import client
    from porter.verdict.backends.choice import choose_backend
    from porter.verdict.messages import PrepareRequest
    from porter.verdict.result import AUTO

    if find_spec("torch") is None:
        return Overlay()
    torch, backend = metadata.version("torch"), choose_backend(AUTO)
    if backend.RUNS_HOST_CODE:
        client.request_preparation(PrepareRequest(checkout.root.resolve(), backend.NAME), progress)
    return Overlay(torch, backend.NAME, backend.RUNS_HOST_CODE)


def _found() -> Compiler:
    from aten_overlay.metal.compiler import find_clang, version
    from porter.verdict.errors import raising_porter_errors

    with raising_porter_errors():
        path = find_clang()
    return Compiler(str(path), version(path).splitlines()[0])


def _with_apt() -> None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    subprocess.run(["apt-get", "update", "-qq"], check=False)
    for package in PACKAGES:
        if subprocess.run(["apt-get", "install", "-y", "-qq", package], check=False).returncode == 0:
            return


def _with_pip() -> None:
    if sys.prefix != sys.base_prefix:
        subprocess.run([sys.executable, "-I", "-m", "pip", "install", "-q", WITHOUT_ROOT], check=False)
        importlib.invalidate_caches()
