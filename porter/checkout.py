"""A PyTorch fork on disk, read once: every file comes from one snapshot, and nothing outside the root is ever read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from porter.errors import Place, PorterError

NATIVE_FUNCTIONS = "aten/src/ATen/native/native_functions.yaml"
MPS = "aten/src/ATen/native/mps"
OPERATIONS = f"{MPS}/operations"
KERNELS = f"{MPS}/kernels"
EMBEDDED_FORK = Path(__file__).resolve().parent.parent / "aten_overlay" / "fork"

_CONFLICT_MARKERS = ("<<<<<<< ", ">>>>>>> ")


@dataclass
class Checkout:
    """A fork's files. `origin` says how it was found; `hashes` holds the digest of every file read so far."""

    root: Path
    origin: str
    hashes: dict[str, str] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict, repr=False)

    def exists(self, path: str) -> bool:
        """Whether `path` (relative, with forward slashes) is a file of the checkout."""
        return (self.root / path).is_file()

    def read(self, path: str) -> str:
        """The text of a file exactly as on disk: line endings kept, undecodable bytes as surrogates.

        Raises PTR003 (unreadable), PTR004 (leads out of the checkout) or PTR005 (merge-conflict markers).
        """
        if path not in self._texts:
            data = self._bytes(path)
            text = data.decode("utf-8", "surrogateescape")
            _refuse_conflicts(path, text)
            self.hashes[path] = digest(data)
            self._texts[path] = text
        return self._texts[path]

    def layer(self, texts: Mapping[str, str]) -> Checkout:
        """The same snapshot with some files as a plan would leave them; the hashes stay those on disk."""
        return Checkout(self.root, self.origin, self.hashes, {**self._texts, **texts})

    def list(self, folder: str, *suffixes: str) -> list[str]:
        """The files directly inside `folder` with one of the endings, sorted, relative to the root."""
        base = self.root / folder
        if not base.is_dir():
            return []
        return sorted(f"{folder}/{e.name}" for e in os.scandir(base) if e.is_file() and e.name.endswith(suffixes))

    def _bytes(self, path: str) -> bytes:
        full = self.root / path
        if not full.resolve().is_relative_to(self.root.resolve()):
            raise PorterError(
                "PTR004", "this path leads out of the checkout", Place(path), "Replace the symbolic link by a file."
            )
        try:
            return full.read_bytes()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise PorterError(
                "PTR003", f"cannot be read: {reason}", Place(path), "Check that the file exists and is readable."
            ) from error


def find_checkout(named: Path | None, cwd: Path, environ: dict[str, str]) -> Checkout:
    """The fork to work on: `named`, else `$PORTER_CHECKOUT`, else the enclosing one, else the embedded miniature."""
    if named is not None:
        return _checked(named, "--checkout")
    if environ.get("PORTER_CHECKOUT"):
        return _checked(Path(environ["PORTER_CHECKOUT"]), "$PORTER_CHECKOUT")
    for folder in (cwd, *cwd.parents):
        if (folder / NATIVE_FUNCTIONS).is_file():
            return Checkout(folder, "the enclosing checkout")
    return Checkout(EMBEDDED_FORK, "the embedded miniature fork")


def digest(data: bytes) -> str:
    """The content hash that snapshots, journals and caches agree on."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _checked(root: Path, origin: str) -> Checkout:
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
                "a merge conflict is not resolved here",
                Place(path, text.count("\n", 0, at) + 1),
                "Resolve it and try again.",
            )
