"""The clang inside PyPI's `ziglang` package: a compiler that needs no root.

`zig c++` forces its own C++ library, which does not link with torch's wheels. `zig clang` is the bare driver, and takes
the system's libstdc++ as any clang does; a script gives it what zig leaves out: target, clang's headers and a linker.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from shlex import quote

from aten_overlay import cache
from aten_overlay.errors import OverlayError, refuse_full_disk

_PROBE = "#include <string>\nstd::string probe() { return std::to_string(1); }\n"


def find_clang() -> str | None:
    """The path of a clang++ made of the installed package; None without one, or where it is not Linux.

    Raises PTR142 when it cannot compile and link C++ here: the C++ library's headers have to come from the system.
    """
    spec = find_spec("ziglang")
    if not sys.platform.startswith("linux") or spec is None or not spec.submodule_search_locations:
        return None
    return str(wrap(Path(spec.submodule_search_locations[0])))


def wrap(package: Path) -> Path:
    """The script that makes a clang++ of the package in this folder, proven to work. Raises PTR142."""
    zig = package / "zig"
    folder = cache.root() / "metal" / "ziglang" / cache.digest(str(zig), str(zig.stat().st_mtime_ns))
    made = folder / "clang++"
    if cache.is_intact(made) and cache.is_intact(folder / "ld.lld"):
        return made
    linker = cache.seal(_script(folder / "ld.lld", [str(zig), "ld.lld"]))
    options = [
        "--driver-mode=g++", f"--target={os.uname().machine}-linux-gnu", "-resource-dir", str(package / "lib"),
        f"--ld-path={linker}", "-Wno-unused-command-line-argument",
    ]  # fmt: skip
    unproven = _script(folder / f"clang++.{os.getpid()}", [str(zig), "clang", *options])
    _prove(unproven)
    unproven.replace(made)
    return cache.seal(made)


def _script(path: Path, command: list[str]) -> Path:
    cache.write(path, f'#!/bin/sh\nexec {" ".join(map(quote, command))} "$@"\n'.encode())
    path.chmod(0o700)
    return path


def _prove(script: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [str(script), "-x", "c++", "-fPIC", "-shared", "-Wl,-z,defs", "-o", f"{folder}/probe.so", "-"]
        done = subprocess.run(command, input=_PROBE, capture_output=True, text=True, check=False)
    if done.returncode:
        script.unlink()
        refuse_full_disk(done.stderr)
        raise OverlayError(
            "PTR142",
            f"the ziglang package's clang cannot build C++ here: {done.stderr.strip()[:500]}",
            hint="Install the headers of the system's C++ library (Debian and Ubuntu: apt-get install g++).",
        )
