"""A PyTorch fork on disk. Every file is read once, into one snapshot; nothing outside the root is ever read."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from porter.core.cache import digest
from porter.core.errors import Place, PorterError
from porter.core.files import LARGEST, read_regular
from porter.core.layout import NATIVE_FUNCTIONS

EMBEDDED_FORK = Path(__file__).resolve().parents[2] / "aten_overlay" / "fork"
EMBEDDED = "embedded"  # what --checkout calls it

# No file that is read whole in any fork comes near `LARGEST`: those lexed token by token have a bound of their own.
LARGEST_LEXED = 1024 * 1024
_LEXED = frozenset({".h", ".metal", ".mm"})

BYTE_ORDER_MARK = "\ufeff"
_IDENTIFIER = re.compile(rb"\w+")
_SPACED = bytes(each if _IDENTIFIER.match(bytes([each])) else ord(" ") for each in range(256))
_FEW = 12  # searches of a folder that take less time than collecting its words
_CONFLICT_MARKERS = ("<<<<<<< ", ">>>>>>> ")


@dataclass(frozen=True, eq=False)
class Folder:
    """The bytes of a folder's files with certain endings, for searches: none becomes part of the snapshot.

    `unread` are the files that cannot be read: they may hold anything.
    """

    files: tuple[tuple[str, bytes], ...]
    unread: tuple[str, ...] = ()
    _answers: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict, repr=False)

    def files_containing(self, word: str, pattern: str = "", whole: bool = False) -> tuple[str, ...]:
        """The paths of the files that hold `word`, where it stands matching `pattern`, which may span two lines.

        With `whole`, the pattern only matches where the word is an identifier of its own. Behind them those that cannot
        be read: a search that comes to them has found nothing elsewhere.
        """
        if (word, pattern) not in self._answers:
            wanted = re.compile(pattern.encode("utf-8", "surrogateescape"), re.M) if pattern else None
            found = word.encode("utf-8", "surrogateescape")
            self._answers[word, pattern] = tuple(
                path for path, data in self._find_mentioning(found, whole) if _contains(data, found, wanted, whole)
            )
        return (*self._answers[word, pattern], *self.unread)

    def _find_mentioning(self, word: bytes, whole: bool) -> tuple[tuple[str, bytes], ...]:
        """The files with this word, or one that it is part of: far less text to search than all that they say.

        A few searches are done before the words are collected.
        """
        if len(self._answers) < _FEW or not _IDENTIFIER.fullmatch(word):
            return self.files
        text, holders = self._words
        if whole:
            return tuple(self.files[each] for each in sorted(holders.get(word, ())))
        found, at = set[int](), text.find(word)
        while at >= 0:
            start, end = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
            found |= holders[text[start:end]]
            at = text.find(word, end)
        return tuple(self.files[each] for each in sorted(found))

    @cached_property
    def _words(self) -> tuple[bytes, Mapping[bytes, set[int]]]:
        """Every identifier of the files on a line of its own, and which files have it."""
        holders: dict[bytes, set[int]] = {}
        for at, (_, data) in enumerate(self.files):
            for word in set(data.translate(_SPACED).split()):
                holders.setdefault(word, set()).add(at)
        return b"\n".join((*holders, b"")), holders


@dataclass
class Disk:
    """What has been read from disk so far, shared by all layers of a snapshot.

    `earlier` stands for files that have changed since: their texts then, or None for those that were not there.
    """

    earlier: Mapping[str, str | None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    lists: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    folders: dict[tuple[str, ...], Folder] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)


@dataclass
class Checkout:
    """The files of a fork. `origin` says how the fork was found; `hashes` has the digest of every file read so far."""

    root: Path
    origin: str
    hashes: dict[str, str] = field(default_factory=dict)
    _texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    _disk: Disk = field(default_factory=Disk, repr=False)
    _added: frozenset[str] = frozenset()  # of the layers' files those that the disk did not have

    def exists(self, path: str) -> bool:
        """Whether `path` (relative, with forward slashes) is a file of the checkout.

        A link counts wherever it leads, and so does a file in a folder that is closed: reading says what is wrong.
        """
        return path in self._texts or path in self._disk.texts or self._is_on_disk(path)

    def read(self, path: str) -> str:
        """Returns the text of a file exactly as on disk, with its line endings, and undecodable bytes as surrogates.

        Raises PTR003 (unreadable), PTR004 (leads out of the checkout), PTR005 (merge-conflict markers) or PTR007 (too
        large).
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

    def remember(self, fact: str, find: Callable[[], str]) -> str:
        """A fact that is found out once for all layers of a snapshot."""
        if fact not in self._disk.facts:
            self._disk.facts[fact] = find()
        return self._disk.facts[fact]

    def as_before(self, earlier: Mapping[str, str | None]) -> Checkout:
        """Returns a snapshot of the fork as it was: with earlier texts of some files, without those of None."""
        return Checkout(self.root, self.origin, _disk=Disk(dict(earlier)))

    @property
    def earlier(self) -> Mapping[str, str | None]:
        """What `as_before` was told."""
        return self._disk.earlier

    def layer(self, texts: Mapping[str, str]) -> Checkout:
        """Returns the same snapshot with new texts for some files. `hashes` stays that of the files on disk."""
        added = (path for path in texts if path not in self._texts and not self._is_on_disk(path))
        layered = {**self._texts, **texts}
        return Checkout(self.root, self.origin, self.hashes, layered, self._disk, self._added.union(added))

    def list(self, folder: str, *suffixes: str) -> list[str]:
        """The files directly inside `folder` with one of the endings, sorted, relative to the root; links too.

        Raises PTR003 for a folder that cannot be read; one that is not there has no files.
        """
        key = (folder, *suffixes)
        if key not in self._disk.lists:
            try:
                with os.scandir(self.root / folder) as entries:
                    names = {
                        e.name for e in entries if e.name.endswith(suffixes) and not e.is_dir(follow_symlinks=False)
                    }
            except (FileNotFoundError, NotADirectoryError):
                names = set()
            except OSError as error:
                raise _unreadable(folder, error) from error
            for path, text in self._disk.earlier.items():
                place, _, name = path.rpartition("/")
                if place == folder and name.endswith(suffixes):
                    names = names - {name} if text is None else names | {name}
            self._disk.lists[key] = sorted(f"{folder}/{name}" for name in names)
        new = self._list_new(folder, suffixes)
        return sorted({*self._disk.lists[key], *new}) if new else [*self._disk.lists[key]]

    def folder(self, folder: str, *suffixes: str) -> Folder:
        """The files that `list` gives: as on disk, and those that only the layers have."""
        key = (folder, *suffixes)
        if key not in self._disk.folders:
            self.list(folder, *suffixes)
            found = [(path, self._peek(path)) for path in self._disk.lists[key]]
            files = tuple((path, data) for path, data in found if data is not None)
            self._disk.folders[key] = Folder(files, tuple(path for path, data in found if data is None))
        there = self._disk.folders[key]
        new = self._list_new(folder, suffixes)
        if not new:
            return there
        added = ((path, self._texts[path].encode("utf-8", "surrogateescape")) for path in new)
        return Folder((*there.files, *added), there.unread)

    def _list_new(self, folder: str, suffixes: tuple[str, ...]) -> tuple[str, ...]:
        """The files directly inside `folder` that the layers have, and the disk has not."""
        inside = (path for path in self._added if path.rpartition("/")[0] == folder and path.endswith(suffixes))
        return tuple(sorted(path for path in inside if not self._is_on_disk(path)))

    def _is_on_disk(self, path: str) -> bool:
        if path in self._disk.earlier:
            return self._disk.earlier[path] is not None
        return _is_there(self.root / path)

    @cached_property
    def _real_root(self) -> Path:
        return self.root.resolve()

    def _peek(self, path: str) -> bytes | None:
        try:
            return self._bytes(path)
        except PorterError:
            return None

    def _bytes(self, path: str) -> bytes:
        if path in self._disk.earlier:
            text = self._disk.earlier[path]
            if text is None:
                raise _unreadable(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
            return text.encode("utf-8", "surrogateescape")
        full = self.root / path
        try:
            if not full.resolve().is_relative_to(self._real_root):
                raise PorterError(
                    "PTR004",
                    "this path points outside the checkout",
                    Place(path),
                    "Replace the symbolic link with a file.",
                )
            return _read_regular(full, path)
        except (OSError, RuntimeError) as error:  # before Python 3.13, a loop of links is a RuntimeError
            raise _unreadable(path, error) from error


def _read_regular(full: Path, path: str) -> bytes:
    most = LARGEST_LEXED if PurePosixPath(path).suffix in _LEXED else LARGEST
    try:
        return read_regular(full, most)
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        what = f"this file is larger than {most // 1024} KiB"
        raise PorterError("PTR007", what, Place(path), "Check that it is the file of a PyTorch fork.") from error


def _unreadable(path: str, error: OSError | RuntimeError) -> PorterError:
    reason = getattr(error, "strerror", None) or os.strerror(errno.ELOOP)
    return PorterError(
        "PTR003", f"cannot read this file: {reason}", Place(path), "Check that the file exists and is readable."
    )


def _is_there(full: Path) -> bool:
    try:
        return not stat.S_ISDIR(full.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True


def _contains(data: bytes, word: bytes, wanted: re.Pattern[bytes] | None, whole: bool) -> bool:
    """Whether a word occurs with a match around it. Only the lines around the word are searched, for speed."""
    at = data.find(word)
    while at >= 0 and wanted is not None:
        if whole and (_ends_in_word(data[at - 1 : at]) or _ends_in_word(data[at + len(word) : at + len(word) + 1])):
            at = data.find(word, at + 1)
            continue
        start = data.rfind(b"\n", 0, max(data.rfind(b"\n", 0, at), 0)) + 1
        after = data.find(b"\n", at + len(word)) + 1
        end = data.find(b"\n", after) if after else -1
        if wanted.search(data[start : end if end >= 0 else len(data)]):
            return True
        at = data.find(word, after) if after else -1
    return at >= 0


def _ends_in_word(data: bytes) -> bool:
    return data.isalnum() or data == b"_"


def find_checkout(named: Path | None, cwd: Path, environ: dict[str, str], to_write: bool = False) -> Checkout:
    """Returns the fork to work on: `named`, `$PORTER_CHECKOUT`, the enclosing checkout or the embedded fork.

    The embedded one, which is part of porter's installation, is only written to where it is named: as `embedded`.
    Raises PTR001 if `named` or `$PORTER_CHECKOUT` is not a PyTorch checkout, and PTR008 if there is none `to_write`.
    """
    if named is not None:
        return _require_fork(named, "--checkout")
    if environ.get("PORTER_CHECKOUT"):
        return _require_fork(Path(environ["PORTER_CHECKOUT"]), "$PORTER_CHECKOUT")
    for folder in (cwd, *cwd.parents):
        if _is_there(folder / NATIVE_FUNCTIONS):
            return Checkout(folder, "the enclosing checkout")
    if to_write:
        hint = f"Name a fork with --checkout DIR, or --checkout {EMBEDDED} for the miniature fork in porter itself."
        raise PorterError("PTR008", f"{cwd} is in no PyTorch checkout, so there is none to write to", hint=hint)
    return Checkout(EMBEDDED_FORK, "the embedded miniature fork, as this folder is in no PyTorch checkout")


def _require_fork(root: Path, origin: str) -> Checkout:
    if str(root) == EMBEDDED:
        return Checkout(EMBEDDED_FORK, "the embedded miniature fork")
    try:
        root.resolve(strict=True)
    except FileNotFoundError:
        pass
    except (OSError, RuntimeError, ValueError) as error:  # before Python 3.13, a loop of links is a RuntimeError
        reason = getattr(error, "strerror", None) or os.strerror(errno.ELOOP)
        what = f"{root} cannot be opened: {reason}"
        raise PorterError("PTR001", what, hint=f"Point {origin} at the root of a PyTorch fork.") from error
    if not _is_there(root / NATIVE_FUNCTIONS):
        raise PorterError(
            "PTR001",
            f"{root} is not a PyTorch checkout: it has no {NATIVE_FUNCTIONS}",
            hint=f"Point {origin} at the root of a PyTorch fork.",
        )
    return Checkout(root, origin)


def _refuse_conflicts(path: str, text: str) -> None:
    start = 1 if text.startswith(BYTE_ORDER_MARK) else 0
    for marker in _CONFLICT_MARKERS:
        at = start if text.startswith(marker, start) else text.find("\n" + marker) + 1
        if at or text.startswith(marker):
            raise PorterError(
                "PTR005",
                "unresolved merge conflict",
                Place(path, text.count("\n", 0, at) + 1),
                "Resolve it and try again.",
            )
