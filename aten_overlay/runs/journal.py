"""Writes down what a program does: a folder, named by `$PORTER_RUN`, that all of its processes write to.

Each process has files of its own: `PID.jsonl`, a line for each kernel compiled and each finding, and `PID.launches`
(aten_overlay/device/launches.cpp). Each is whole after every write: a process may end in any way.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from aten_overlay.runs.origin import Origin, find_origin

VARIABLE = "PORTER_RUN"
KERNELS, FINDING = "kernels", "finding"
SOURCES = "sources"
_DIGITS = 12


@dataclass(frozen=True)
class Journal:
    """A folder that a program's processes write to."""

    folder: Path

    def note_kernels(self, library: Path, names: Sequence[str], source: str | Path, origin: Origin) -> None:
        """Notes that kernels were compiled into a library: its file names them where launches are counted."""
        self._append({
            "event": KERNELS, "library": str(library), "kernels": list(names), "source": self._keep(source),
            "origin": asdict(origin),
        })  # fmt: skip

    def note_finding(self, library: str, kernel: str, operators: Sequence[str], text: str, origin: Origin) -> None:
        """Notes what is wrong with a launch, and the operators that ran, outermost first."""
        self._append({
            "event": FINDING, "library": library, "kernel": kernel, "operators": list(operators), "text": text,
            "origin": asdict(origin),
        })  # fmt: skip

    def _keep(self, source: str | Path) -> str:
        """The name of a copy of the source, in the folder of all of them."""
        text = source.read_bytes() if isinstance(source, Path) else source.encode(errors="surrogateescape")
        start = source.stem if isinstance(source, Path) else "source"
        name = f"{start}-{hashlib.blake2b(text).hexdigest()[:_DIGITS]}.metal"
        path = self.folder / SOURCES / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            part = path.with_name(f".{name}.{os.getpid()}")
            part.write_bytes(text)
            part.replace(path)
        return name

    def _append(self, record: Mapping[str, object]) -> None:
        with (self.folder / f"{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")


def find_journal(environ: Mapping[str, str] | None = None) -> Journal | None:
    """The journal of this program; None where nobody asked for one, and in a process that outlives who did."""
    folder = (os.environ if environ is None else environ).get(VARIABLE)
    return Journal(Path(folder)) if folder and Path(folder).is_dir() else None


def note_kernels(library: Path, names: Sequence[str], source: str | Path, producer: str = "") -> None:
    """`Journal.note_kernels` for what this thread does now, where there is a journal."""
    if journal := find_journal():
        journal.note_kernels(library, names, source, find_origin(producer))
