"""Apple's commands for programs that run with the device: a compiler of Objective-C++, and stand-ins of macOS's own."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from aten_overlay import cache, toolchain
from aten_overlay.apple import build

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "bin"
SETTINGS = "compilers.json"
DRIVER, OFFLINE = HERE / "driver.py", HERE / "offline.py"
# Every Python process finds this module when it starts: it brings the device up before the first import of torch.
CHILDREN = HERE.parent / "children"
_COMPILERS = {"CC": ("gcc", "cc"), "CXX": ("g++", "c++")}  # the variable, what ours is called, what Linux has
# What setup scripts for macOS call by name.
_NAMED = ("clang", "clang++")
_OFFLINE = ("metal", "metallib")


def make_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a program's environment is to say, so that it and the processes it starts find Apple's commands."""
    compilers = {variable: str(_write_compiler(variable, environ)) for variable in _COMPILERS}
    named = _write_folder([toolchain.clang()], _NAMED, _OFFLINE)
    return {
        "PATH": _put_first(PROGRAMS, _put_first(named, environ.get("PATH", os.defpath))),
        "PYTHONPATH": _put_first(CHILDREN, environ.get("PYTHONPATH", "")),
        **compilers,
    }


def objective_flags() -> tuple[str, ...]:
    """Flags for the Objective-C++ of an extension: the language, the frameworks' headers, what numbers are on macOS."""
    return (
        *build.LANGUAGE,
        *build.include_flags(),
        "-include",
        str(HERE / "numbers.h"),
        "-Wno-unused-command-line-argument",
    )


def _put_first(folder: Path, paths: str) -> str:
    others = [path for path in paths.split(os.pathsep) if path and path != str(folder)]
    return os.pathsep.join((str(folder), *others))


def _write_compiler(variable: str, environ: Mapping[str, str]) -> Path:
    """The compiler that `$CC` or `$CXX` names: what it named before is called for all but Objective-C++."""
    name, default = _COMPILERS[variable]
    before = environ.get(variable, "")
    if Path(before).parent.parent == cache.commands():
        return Path(before)
    return _write_folder(shlex.split(before) or [default], [name]) / name


def _write_folder(plain: Sequence[str], compilers: Sequence[str], tools: Sequence[str] = ()) -> Path:
    """A folder with compilers that call `plain` for all but Objective-C++, and with tools for Metal."""
    text = json.dumps({"plain": plain, "objective": [toolchain.clang(), *objective_flags()]})
    folder = cache.commands() / cache.digest(text, sys.executable, str(DRIVER))
    stored = folder / SETTINGS
    scripts = dict.fromkeys(compilers, (str(DRIVER), str(stored))) | {tool: (str(OFFLINE), tool) for tool in tools}
    if not stored.exists() or not all(cache.is_intact(folder / name) for name in scripts):
        cache.write(stored, text.encode())
        for name, words in scripts.items():
            command = " ".join(map(quote, (sys.executable, "-I", "-S", *words)))
            cache.write(folder / name, f'#!/bin/sh\nexec {command} "$@"\n'.encode()).chmod(0o700)
            cache.seal(folder / name)
    return folder
