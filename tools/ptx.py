"""Counts the files and kernels of a folder of Metal that compile to PTX, and that ptxas takes where it is installed.

python tools/ptx.py FOLDER [--include FOLDER] [--arch sm_80] [--forms grid] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, function_constants, host_names
from aten_overlay.metal.cuda.compile import compile_ptx
from aten_overlay.metal.cuda.libdevice import find_assembler
from aten_overlay.metal.cuda.target import FORMS, CudaOptions
from aten_overlay.metal.source.table import Value


@dataclass(frozen=True)
class Outcome:
    """A file: its kernels, and why not all of them are PTX that ptxas takes ("": they are)."""

    path: str
    kernels: int
    failure: str = ""
    assembled: bool = False


def main(arguments: Sequence[str]) -> int:
    """Prints a line for each file and the counts; 1 if a file fails."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--include", type=Path, action="append", default=[], help="an include folder")
    parser.add_argument("--arch", default="sm_80")
    parser.add_argument("--forms", default="grid", help=f"a list of {', '.join(FORMS)}")
    parser.add_argument("--json", type=Path, help="write the outcomes there")
    given = parser.parse_args(arguments)
    files = sorted(given.folder.rglob("*.metal"))
    cuda = CudaOptions(arch=given.arch, forms=tuple(given.forms.split(",")))
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(partial(try_file, include=tuple(given.include), cuda=cuda), files))
    for outcome in outcomes:
        print(f"{outcome.path}: {outcome.kernels} kernels {outcome.failure}".rstrip())
    good = [o for o in outcomes if not o.failure]
    checked = "ptxas takes them" if find_assembler() else "not checked: there is no ptxas"
    print(f"{len(good)} of {len(outcomes)} files compile, {sum(o.kernels for o in good)} kernels; {checked}")
    if given.json:
        given.json.write_text(json.dumps([asdict(o) for o in outcomes], indent=1) + "\n")
    return int(len(good) < len(outcomes))


def try_file(path: Path, include: tuple[Path, ...], cuda: CudaOptions) -> Outcome:
    """Compiles all kernels of a file as one module."""
    count = 0
    try:
        options = Options(include=include or (path.parent,))
        names = host_names(path, options)
        count = len(names)
        values: dict[int | str, Value] = {c.index: c.type == "bool" or 1 for c in function_constants(path, options)}
        options = Options(include=options.include, constants=tuple(values.items()))
        module = compile_ptx(path, names, options, cuda)
    except OverlayError as error:
        return Outcome(path.name, count, str(error).split("\n")[0][:300])
    failure = assemble(module.text, cuda.arch)
    return Outcome(path.name, count, failure or "", failure == "")


def assemble(text: str, arch: str) -> str | None:
    """What ptxas says against PTX ("": nothing); None without ptxas."""
    assembler = find_assembler()
    if assembler is None:
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        command = [assembler, f"-arch={arch}", "-O1", file.name, "-o", "/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip()[:300] or "ptxas fails" if done.returncode else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
