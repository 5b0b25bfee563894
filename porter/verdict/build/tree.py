"""A tree with a plan applied: links to the checkout's files, and the plan's texts for those it edits.

The tree lives in a private cache. The checkout is only ever read.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from porter.core import cache
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.files import read_regular
from porter.core.layout import ATEN_ROOT, DEVICE, KERNELS, METAL_HEADERS, MPS, NATIVE_FUNCTIONS, OPERATIONS, TEST_LISTS
from porter.core.private import make_folder, remove_folder

TREES_KEPT = 16
# A tree used so recently may still be in use by another verdict.
IN_USE_SECONDS = 3600.0
_HEADERS = (".h", ".hpp", ".inl")
_HEADER_FOLDERS = (MPS, OPERATIONS, KERNELS, METAL_HEADERS, DEVICE)


def metal_include(root: Path) -> tuple[Path, ...]:
    """The folders in which a fork's build looks for the headers of `.metal` files (cmake/Metal.cmake)."""
    return root, root / ATEN_ROOT


@dataclass(frozen=True)
class Tree:
    """A materialised fork: `root` has its layout; unedited files come from `checkout`, edited ones are `texts`.

    `earlier` are the texts before the edits of files that the checkout has as edited: None for what was not there.
    """

    root: Path
    checkout: Path
    texts: Mapping[str, str]
    earlier: Mapping[str, str | None] = field(default_factory=dict)

    def exists(self, path: str) -> bool:
        return path in self.texts or self.in_checkout(path)

    def in_checkout(self, path: str) -> bool:
        """Whether the file was there before the plan."""
        return self.earlier[path] is not None if path in self.earlier else (self.checkout / path).is_file()

    def read(self, path: str) -> str:
        """The text of a file as the plan leaves it. Raises PTR164 if there is none."""
        if path in self.texts:
            return self.texts[path]
        return self.before(path)

    def before(self, path: str) -> str:
        """The text of a file before the plan. Raises PTR164 if there is none."""
        text = self.earlier.get(path)
        if text is not None:
            return text
        try:
            if path in self.earlier:
                raise FileNotFoundError(path)
            return read_regular(self.checkout / path).decode("utf-8", "surrogateescape")
        except OSError as error:
            raise PorterError("PTR164", "the fork has no such file", Place(path), "Is this a complete fork?") from error

    def unedited(self) -> Checkout:
        """A snapshot of the fork before the plan."""
        return Checkout(self.checkout, "named").as_before(self.earlier)

    def files(self, folder: str, *suffixes: str) -> list[str]:
        """The files directly inside a folder with one of the endings, as the plan leaves them, sorted."""
        base = self.root / folder
        names = (e.name for e in os.scandir(base) if e.is_file()) if base.is_dir() else ()
        return sorted(f"{folder}/{name}" for name in names if name.endswith(suffixes))

    def kernel_files(self) -> list[str]:
        return self.files(KERNELS, ".metal")

    def list_file(self) -> str:
        """The file that holds the MPS test lists, or `""`."""
        return next((path for path in TEST_LISTS if self.exists(path)), "")

    def headers_digest(self) -> str:
        """A digest of every header that host code of the fork can include."""
        paths = (path for folder in _HEADER_FOLDERS for path in self.files(folder, *_HEADERS))
        return cache.digest(*(part for path in paths for part in (path, self.read(path))))


def materialise(
    checkout: Path, texts: Mapping[str, str], into: Path, earlier: Mapping[str, str | None] | None = None
) -> Tree:
    """Builds the tree below `into`, or finds it again: its name is a digest of the checkout's place, its file names and
    the texts.

    Of files that have changed since, `earlier` has the texts before, which those of `texts` replace.
    """
    checkout, before = checkout.resolve(), dict(earlier or {})
    written = {path: text for path, text in before.items() if text is not None} | dict(texts)
    links = sorted(path for path in _linked(checkout) if path not in before and path not in written)
    root = into / "trees" / cache.digest(repr((str(checkout), links, sorted(written.items()))))[:24]
    if root.is_dir() and not _is_filled(root, checkout, links, written):
        remove_folder(root)  # another process may repair it too
    try:
        os.utime(root)  # marks it as in use
    except FileNotFoundError:
        make_folder(root.parent)
        part = root.with_name(f"{root.name}.{os.getpid()}")
        _fill(part, checkout, links, written)
        try:
            part.rename(root)
        except OSError:  # another process made the same tree first
            shutil.rmtree(part)
        taken = {path: _last_use(path) for path in root.parent.iterdir() if "." not in path.name}
        for old in sorted(taken, key=lambda path: taken[path], reverse=True)[TREES_KEPT:]:
            if time.time() - taken[old] > IN_USE_SECONDS:
                remove_folder(old)
    return Tree(root, checkout, dict(texts), before)


def _linked(checkout: Path) -> Iterator[str]:
    for folder in (MPS, METAL_HEADERS, DEVICE):
        for base, _, names in os.walk(checkout / folder):
            yield from (os.path.relpath(os.path.join(base, n), checkout) for n in names)  # noqa: PTH118
    if (checkout / NATIVE_FUNCTIONS).is_file():
        yield NATIVE_FUNCTIONS


def _fill(root: Path, checkout: Path, links: list[str], texts: Mapping[str, str]) -> None:
    for path in links:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(checkout / path)
    for path, text in texts.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode("utf-8", "surrogateescape"))


def _is_filled(root: Path, checkout: Path, links: list[str], texts: Mapping[str, str]) -> bool:
    """Whether every link and every text is as `_fill` makes it: a damaged tree would be compiled as it is."""
    try:
        linked = all(os.readlink(root / path) == str(checkout / path) for path in links)  # noqa: PTH115
        return linked and all(
            (root / path).read_bytes() == text.encode("utf-8", "surrogateescape") for path, text in texts.items()
        )
    except OSError:
        return False


def _last_use(tree: Path) -> float:
    """When a tree was last asked for; 0 if another process removed it meanwhile."""
    try:
        return tree.stat().st_mtime
    except FileNotFoundError:
        return 0.0
