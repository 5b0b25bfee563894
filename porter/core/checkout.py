"""A PyTorch fork on disk. Every file is read once, into one snapshot; nothing outside the root is ever read."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from porter.core.cache import digest
from porter.core.errors import Place, PorterError
from porter.core.layout import NATIVE_FUNCTIONS

EMBEDDED_FORK = Path(__file__).resolve().parents[2] / "aten_overlay" / "fork"

_CONFLICT_MARKERS = ("<<<<<<< ", ">>>>>>> ")


@dataclass(frozen=True, eq=False)
class Folder:
    """The bytes of a folder's files with certain suffixes, for searching only: they do not join the snapshot."""

    files: tuple[tuple[str, bytes], ...]
    _answers: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict, repr=False)

    def files_containing(self, word: str, pattern: str = "") -> tuple[str, ...]:
        """Returns the files that contain `word` where `pattern` matches around it. A match may span two lines."""
        if (word, pattern) not in self._answers:
            wanted = re.compile(pattern.encode(), re.M) if pattern else None
            self._answers[word, pattern] = tuple(
                path for path, data in self.files if _contains(data, word.encode(), wanted)
            )
        return self._answers[word, pattern]


@dataclass
class Disk:
    """What has been read from disk so far, shared by all layers of a snapshot."""

    texts: dict[str, str] = field(default_factory=dict)
    lists: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    folders: dict[tuple[str, ...], Folder] = field(default_factory=dict)


@dataclass
class Checkout:
    """The files of a fork. `origin` says how the fork was found; `hashes` has the digest of every file read so far."""

    root: Path
    origin: str
    hashes: dict[str, str] = field(default_factory=dict)
    _texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    _disk: Disk = field(default_factory=Disk, repr=False)

    def exists(self, path: str) -> bool:
        """Whether `path` (relative, with forward slashes) is a file of the checkout."""
        return path in self._texts or (self.root / path).is_file()

    def read(self, path: str) -> str:
        """Returns the text of a file exactly as on disk, with its line endings, and undecodable bytes as surrogates.

        Raises PTR003 (unreadable), PTR004 (leads out of the checkout) or PTR005 (merge-conflict markers).
        """
        if path in self._texts:
            return self._texts[path]
        if path not in self._disk.texts:
            data = self._bytes(path)
            text = data.decode("utf-8", "surrogateescape")
            _refuse_conflicts(path, text)
            self.hashes[path] = digest(data)
            self._disk.texts[path] = text
        return self._disk.texts[path]

    def layer(self, texts: Mapping[str, str]) -> Checkout:
        """Returns the same snapshot with new texts for some files. `hashes` stays that of the files on disk."""
        return Checkout(self.root, self.origin, self.hashes, {**self._texts, **texts}, self._disk)

    def list(self, folder: str, *suffixes: str) -> list[str]:
        """Returns the files directly in `folder` with one of the suffixes, sorted, relative to the root."""
        key = (folder, *suffixes)
        if key not in self._disk.lists:
            base = self.root / folder
            entries = os.scandir(base) if base.is_dir() else ()
            self._disk.lists[key] = sorted(
                f"{folder}/{e.name}" for e in entries if e.is_file() and e.name.endswith(suffixes)
            )
        return list(self._disk.lists[key])

    def folder(self, folder: str, *suffixes: str) -> Folder:
        """Returns the files of `list` with their bytes, without any that cannot be read."""
        key = (folder, *suffixes)
        if key not in self._disk.folders:
            paths = self.list(folder, *suffixes)
            self._disk.folders[key] = Folder(tuple((path, data) for path in paths if (data := self._peek(path))))
        return self._disk.folders[key]

    def _peek(self, path: str) -> bytes:
        try:
            return (self.root / path).read_bytes()
        except OSError:
            return b""

    def _bytes(self, path: str) -> bytes:
        full = self.root / path
        if not full.resolve().is_relative_to(self.root.resolve()):
            raise PorterError(
                "PTR004", "this path points outside the checkout", Place(path), "Replace the symbolic link with a file."
            )
        try:
            return full.read_bytes()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise PorterError(
                "PTR003", f"cannot read this file: {reason}", Place(path), "Check that the file exists and is readable."
            ) from error


def _contains(data: bytes, word: bytes, wanted: re.Pattern[bytes] | None) -> bool:
    """Whether a word occurs with a match around it. Only the lines around the word are searched, for speed."""
    at = data.find(word)
    while at >= 0 and wanted is not None:
        start = data.rfind(b"\n", 0, max(data.rfind(b"\n", 0, at), 0)) + 1
        after = data.find(b"\n", at + len(word)) + 1
        end = data.find(b"\n", after) if after else -1
        if wanted.search(data[start : end if end >= 0 else len(data)]):
            return True
        at = data.find(word, after) if after else -1
    return at >= 0


def find_checkout(named: Path | None, cwd: Path, environ: dict[str, str]) -> Checkout:
    """Returns the fork to work on: `named`, `$PORTER_CHECKOUT`, the enclosing checkout or the embedded fork.

    Raises PTR001 if `named` or `$PORTER_CHECKOUT` is not a PyTorch checkout.
    """
    if named is not None:
        return _require_fork(named, "--checkout")
    if environ.get("PORTER_CHECKOUT"):
        return _require_fork(Path(environ["PORTER_CHECKOUT"]), "$PORTER_CHECKOUT")
    for folder in (cwd, *cwd.parents):
        if (folder / NATIVE_FUNCTIONS).is_file():
            return Checkout(folder, "the enclosing checkout")
    return Checkout(EMBEDDED_FORK, "the embedded miniature fork")


def _require_fork(root: Path, origin: str) -> Checkout:
    if not (root / NATIVE_FUNCTIONS).is_file():
        raise PorterError(
            "PTR001",
            f"{root} is not a PyTorch checkout: it has no {NATIVE_FUNCTIONS}",
            hint=f"Point {origin} at the root of a PyTorch fork.",
        )
    return Checkout(root, origin)


def _refuse_conflicts(path: str, text: str) -> None:
    for marker in _CONFLICT_MARKERS:
        at = 0 if text.startswith(marker) else text.find("\n" + marker) + 1
        if at or text.startswith(marker):
            raise PorterError(
                "PTR005",
                "unresolved merge conflict",
                Place(path, text.count("\n", 0, at) + 1),
                "Resolve it and try again.",
            )
