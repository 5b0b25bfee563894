"""The output of `porter setup`, `porter doctor`, `porter cache` and `porter undo`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from porter.core.cache import Kind
from porter.core.record import Record
from porter.report.console import align, printable


@dataclass(frozen=True)
class Compiler:
    """The clang that compiles for the host, and the first line of its version."""

    path: str
    version: str


@dataclass(frozen=True)
class Overlay:
    """The installed torch (None if missing), the backend of verdicts, and whether it needed a build."""

    torch: str | None = None
    backend: str | None = None
    built: bool = False


def compiler_text(compiler: Compiler) -> str:
    """One line about the compiler."""
    return f"compiler: {compiler.path} ({compiler.version})"


def overlay_text(overlay: Overlay) -> str:
    """One line about what was built."""
    if overlay.torch is None:
        return "overlay: not built, torch is not installed (pip install 'torch-porter[verify]')"
    if not overlay.built:
        return f"overlay: nothing to build for the {overlay.backend} backend"
    return f"overlay: built for torch {overlay.torch}"


def cache_text(root: Path, bound: int, kinds: Sequence[Kind], removed: int | None) -> str:
    """Where the cache is, a line for each kind, and the size of all of it; what was removed, where that was asked."""
    total = sum(kind.bytes for kind in kinds)
    width = max((len(kind.name) for kind in kinds), default=0)
    lines = [f"  {printable(kind.name):<{width}}  {_size(kind.bytes):>9}  {kind.files} files" for kind in kinds]
    lines = [
        f"cache: {printable(str(root))}",
        *lines,
        f"{_size(total)} of at most {_size(bound)}; the least recently used files go first",
    ]
    return "\n".join(lines if removed is None else [*lines, f"removed {_size(removed)}"])


def cache_object(root: Path, bound: int, kinds: Sequence[Kind], removed: int | None) -> dict[str, Any]:
    """The same for a script."""
    told = [{"name": kind.name, "files": kind.files, "bytes": kind.bytes} for kind in kinds]
    return {"root": str(root), "bound": bound, "kinds": told, "removed": removed or 0}


def list_writes(writes: Sequence[Record]) -> list[str]:
    """A line for each write, newest first, and its files below."""
    lines = list[str]()
    for write in writes:
        lines += [f"{write.number}: {_name(write)}", *_file_lines(write)]
    return lines or ["there is nothing to undo in this checkout"]


def reverted_text(record: Record) -> str:
    """What an undo took back, and its files."""
    return "\n".join([f"reverted {_name(record)}: {len(record.files)} files", *_file_lines(record)])


def write_object(record: Record) -> dict[str, Any]:
    """A write for a script."""
    return {"number": record.number, "ops": list(record.ops), "files": [file.path for file in record.files]}


def _name(record: Record) -> str:
    return printable(", ".join(record.ops) or "a write without a name")


def _file_lines(record: Record) -> list[str]:
    return [f"  {printable(file.path)}" for file in record.files]


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1024 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


_HEADINGS = ("part", "version", "tried", "for")


@dataclass(frozen=True)
class Part:
    """What porter uses. `version` is empty where it is missing, `command` installs it, `tried` are those that worked.

    A version of `tried` stands for all that begin with it; none stands for any. `needed` is for verdicts.
    """

    name: str
    purpose: str
    needed: bool
    command: str
    tried: tuple[str, ...]
    version: str

    @property
    def is_tried(self) -> bool:
        """Whether the version is one that was tried, or any will do."""
        release = self.version.partition("+")[0]
        return not self.tried or any(release == each or release.startswith(f"{each}.") for each in self.tried)


def is_complete(parts: Sequence[Part]) -> bool:
    """Whether all is there that verdicts need."""
    return all(part.version or not part.needed for part in parts)


def parts_lines(parts: Sequence[Part]) -> Iterator[str]:
    """A line for each part, then a command for each that is missing, those for verdicts first."""
    rows = [_HEADINGS, *((part.name, _describe(part), ", ".join(part.tried), part.purpose) for part in parts)]
    yield from map(printable, align(rows))
    missing = [part for part in parts if not part.version]
    for title, needed in (("verdicts need", True), ("optional", False)):
        commands = dict.fromkeys(part.command for part in missing if part.needed is needed)
        for command in commands:
            names = ", ".join(part.name for part in missing if part.command == command)
            yield f"{title}: {names}: {command}"
    if is_complete(parts):
        yield "all that verdicts need is installed"


def _describe(part: Part) -> str:
    if not part.version:
        return "missing"
    return part.version if part.is_tried else f"{part.version} (not tried)"


def parts_object(parts: Sequence[Part]) -> dict[str, Any]:
    """The same as one JSON object."""
    listed = [{**asdict(part), "tried": list(part.tried), "is_tried": part.is_tried} for part in parts]
    return {"complete": is_complete(parts), "parts": listed}
