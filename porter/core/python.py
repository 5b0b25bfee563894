"""Starting Python: the only way in which porter runs Python in another process.

The folder that a command is called in may be a checkout, with a `torch`, or hold a `json.py`. No process of porter's
imports modules from there: neither `-m` nor `-c` starts it, and no entry of `$PYTHONPATH` stands for that folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

EXECUTABLE = sys.executable
PACKAGES = Path(__file__).resolve().parent.parent.parent
"""The folder with the packages `porter` and `aten_overlay`."""

_START = Path(__file__).resolve().parent / "start_module.py"


@dataclass(frozen=True)
class Program:
    """A command line, and the environment and the folder to run it in: the folder may be another one."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path = PACKAGES


def own_module(name: str, *arguments: str) -> Program:
    """Returns the program that calls `main()` of a module of porter, with `sys.argv` as a script would have it.

    Paths in the arguments have to be absolute, unless the program is run in the caller's folder.
    """
    return Program((EXECUTABLE, *_flags(), str(_START), name, *arguments), _environment())


def foreign_module(name: str, *arguments: str) -> Program:
    """Returns the program `python -I -m NAME` of an installed module: no variable of Python's has an effect."""
    return Program((EXECUTABLE, "-I", "-m", name, *arguments), _environment())


def _flags() -> list[str]:
    """The flags of this interpreter that say where modules come from."""
    wanted = {"-E": sys.flags.ignore_environment, "-s": sys.flags.no_user_site}
    return [flag for flag, is_set in wanted.items() if is_set]


def _environment() -> dict[str, str]:
    """This process's environment, in which no folder of modules depends on the current folder."""
    folders = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return environment | ({"PYTHONPATH": os.pathsep.join(map(os.path.abspath, folders))} if folders else {})
