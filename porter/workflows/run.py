"""`porter run`: starts a program with the device, and reads what it wrote down of its kernels."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aten_overlay.as_mac import VARIABLE as AS_MAC
from aten_overlay.cuda.seed import VARIABLE as SEED
from aten_overlay.metal.build import VARIABLE as ARITHMETIC
from aten_overlay.metal.sanitizer.checks import select
from aten_overlay.runs.journal import SOURCES, VARIABLE
from aten_overlay.runs.reading import Run, read_run
from porter.core.errors import PorterError
from porter.core.files import read_regular
from porter.core.python import Program, own_module
from porter.server.ending import Bounds, run_bounded

MODULE, CODE = "-m", "-c"
_PYTHON = "python"
_METAL = (".metal", ".metallib")
_SIGNALED = 128  # what a shell adds to the number of the signal that ended a program
OVERDUE = 124  # what `timeout` exits with for a program whose time is over


@dataclass(frozen=True)
class RunSettings:
    """How kernels run: `operators` of the fork at `checkout` run its own code. None is what the environment says.

    Files below the folders `as_mac` see a Mac.
    """

    checkout: Path | None = None
    operators: str | None = None
    arithmetic: str | None = None
    shuffle: int | None = None
    mlx: bool = False  # porter's kernels under MLX's
    as_mac: tuple[Path, ...] = ()

    def make_environment(self) -> Mapping[str, str]:
        """The variables of the program that say so."""
        variables = {
            "PORTER_CHECKOUT": None if self.checkout is None else str(self.checkout.resolve()),
            "PORTER_OPERATORS": self.operators,
            ARITHMETIC: self.arithmetic,
            SEED: None if self.shuffle is None else str(self.shuffle),
            AS_MAC: os.pathsep.join(map(str, self.as_mac)) or None,
        }
        return {name: value for name, value in variables.items() if value is not None}


@dataclass(frozen=True)
class Ended:
    """How a program ended: its own exit code, or 128 and the signal's number; the checks on; what it ran; the folders
    whose files saw a Mac.
    """

    code: int
    checks: tuple[str, ...]
    run: Run
    as_mac: tuple[str, ...] = ()


def run_program(
    words: Sequence[str], settings: RunSettings, keep: Path | None = None, bounds: Bounds | None = None
) -> Ended:
    """Runs a program as `python -m aten_overlay` does, and waits; one with bounds that takes longer ends with OVERDUE.

    `words` are what follows `python`: a script, `-m` and a module, or `-c` and code. A copy of each kernel's source
    goes into the folder `keep`. Raises PTR190 where there is no such program.
    """
    module = "porter.workflows.mlx" if settings.mlx else "aten_overlay.__main__"
    program = own_module(module, *find_program(words))
    with tempfile.TemporaryDirectory(prefix="porter-run-") as folder:
        environment = {**program.environment, **settings.make_environment(), VARIABLE: folder}
        code = _wait(program, environment) if bounds is None else run_bounded(program.command, environment, bounds)
        run = read_run(Path(folder))
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            if run.compiled:
                shutil.copytree(Path(folder) / SOURCES, keep, dirs_exist_ok=True)
    as_mac = tuple(filter(None, environment.get(AS_MAC, "").split(os.pathsep)))
    code = OVERDUE if code is None else _SIGNALED - code if code < 0 else code
    return Ended(code, select(), run, as_mac)


def _wait(program: Program, environment: Mapping[str, str]) -> int:
    process = subprocess.Popen(program.command, env=environment)
    with _leaving_signals_to(process):
        return process.wait()


def find_folder(words: Sequence[str]) -> Path:
    """The folder of a program: a file's own, or else the current one, where `-m` and `-c` find modules."""
    first = find_program(words)[0]
    is_file = first in words and first not in (MODULE, CODE)  # a command is somebody else's file, which the path finds
    return Path(first).resolve().parent if is_file else Path.cwd()


def find_program(words: Sequence[str]) -> list[str]:
    """Returns what Python is to run: `python` before it is passed over, and a command that is a Python script, such as
    `pytest`, is the file that the path finds. Raises PTR190.
    """
    words = list(words)
    if words and Path(words[0]).name.rstrip("0123456789.") == _PYTHON and Path(words[0]).suffix != ".py":
        words = words[1:]
    if not words or (words[0] in (MODULE, CODE) and len(words) == 1):
        raise PorterError("PTR190", "there is no program to run", hint=_HINT)
    if Path(words[0]).suffix in _METAL:
        raise PorterError(
            "PTR190", f"`{words[0]}` is Metal, which a program compiles",
            hint="Run a Python file that gives its text to torch.mps.compile_shader.",
        )  # fmt: skip
    if words[0] in (MODULE, CODE) or Path(words[0]).exists():
        return words
    path = shutil.which(words[0])
    if path is None or not _is_python(Path(path)):
        what = "is no Python program" if path else "is neither a file nor a command"
        raise PorterError("PTR190", f"`{words[0]}` {what}", hint=_HINT)
    return [path, *words[1:]]


def _is_python(path: Path) -> bool:
    """Whether the first line of a file says that Python runs it; that of a pipe or of a large file is not read."""
    try:
        first = read_regular(path).split(b"\n", 1)[0]
    except OSError:
        return False
    return first.startswith(b"#!") and _PYTHON.encode() in first


@contextmanager
def _leaving_signals_to(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ctrl-C reaches the program by itself, and a request to end is handed on: the report comes after its end."""
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended = signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, interrupted)
        signal.signal(signal.SIGTERM, ended)


_HINT = "Give a Python file, -m MODULE or -c CODE, as `python` takes it: porter run train.py --epochs 1"
