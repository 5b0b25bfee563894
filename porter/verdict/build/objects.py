"""Object files of host code, cached by the source and every file that the compiler read.

Two plans for a fork differ in a few files, and their trees lie in different places: a file is known by its path inside
its tree, so that an object of one plan serves every plan that leaves its sources alone.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aten_overlay import toolchain
from aten_overlay.cache import is_intact, make_folder, seal
from aten_overlay.compile_errors import NO_LIMIT
from aten_overlay.errors import OverlayError
from porter.core.cache import digest, get, put
from porter.core.layout import INCLUDE_ROOTS

_FAILED = ".failed"  # of the file with the compiler's message, beside the record of what it had read
_ATTEMPTS = 3  # to compile while files change


@dataclass(frozen=True)
class Recipe:
    """How host code is compiled and linked.

    `flags` may hold paths of the tree; `digest` covers them without these, the compiler and every header outside the
    tree. `precompiled` are more flags by language, at the end a precompiled header to be read first.
    """

    compiler: Path
    flags: tuple[str, ...]
    link: tuple[str, ...]
    digest: str
    precompiled: Mapping[str, tuple[str, ...]]


class CompileError(Exception):
    """The compiler's message."""


def compile_object(
    source: Path, name: str, include: Sequence[str], roots: Mapping[str, Path], recipe: Recipe, cache: Path
) -> tuple[Path, bool]:
    """The object of one source, and whether it was compiled just now.

    `name` is what the source is called in its tree; `roots` are the folders that files may be read from and that differ
    between plans, by what they are. Raises CompileError, also for a file that changes again and again meanwhile.
    """
    for _ in range(_ATTEMPTS):
        text = source.read_bytes()
        folder = cache / "objects" / digest(recipe.digest, name, text)
        found = _find(folder, roots)
        if found:
            return found, False
        make_folder(folder)
        with toolchain.locked(folder):  # workers of one verdict ask for the same objects at once
            if found := _find(folder, roots):
                return found, False
            if compiled := _compile(source, text, include, roots, recipe, folder):
                return compiled, True
    raise CompileError(f"{name}, or a file that it includes, changes while it is compiled")


def _find(folder: Path, roots: Mapping[str, Path]) -> Path | None:
    """The object of an earlier compilation. Raises CompileError where that failed."""
    for record in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        text, found = get(record), record.with_suffix(".o")
        if text is not None and _is_current(json.loads(text), roots):
            if (message := get(record.with_suffix(_FAILED))) is not None:
                raise CompileError(message)
            if is_intact(found):
                return found
    return None


def _compile(
    source: Path, text: bytes, include: Sequence[str], roots: Mapping[str, Path], recipe: Recipe, folder: Path
) -> Path | None:
    """The object, or None if the source was not `text` all the time, or another file that was read has changed.

    The compiler reads the files of the checkout, which may be edited and edited back meanwhile: what is stored has to
    be of the contents in its record.
    """
    part, listed = folder / f"{os.getpid()}.part", folder / f"{os.getpid()}.d"
    language = "objective-c++" if source.suffix == ".mm" else "c++"
    more = recipe.precompiled.get(language, ())
    command = [
        str(recipe.compiler), NO_LIMIT, toolchain.BY_CONTENT, *include, *recipe.flags, *more, "-x", language,
        "-MD", "-MF", str(listed), "-c", str(source), "-o", str(part),
    ]  # fmt: skip
    stamps = _Stamps([source, *roots.values()])
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="surrogateescape")
    try:
        files = _read_rule(listed, source, bool(done.returncode))
        record = json.dumps(_record(files, roots)) if files else ""
        is_of_text = source.read_bytes() == text and stamps.hold([str(source), *files], roots)
    except OSError:  # a file that was read is gone
        is_of_text = False
    finally:
        listed.unlink(missing_ok=True)
    if not is_of_text:
        part.unlink(missing_ok=True)
        return None
    target = folder / f"{digest(record)}.o"
    if done.returncode:
        part.unlink(missing_ok=True)
        errors = toolchain.ERROR.finditer(done.stderr)
        if record and any(not error["fatal"] for error in errors):  # a full disk, or a header that is missing, is fatal
            put(target.with_suffix(_FAILED), done.stderr)
            put(target.with_suffix(".json"), record)
        raise CompileError(done.stderr)
    part.replace(target)
    seal(target)
    put(target.with_suffix(".json"), record)
    return target


def _read_rule(listed: Path, source: Path, failed: bool) -> list[str]:
    """The files that were read: none where the compiler crashed, missed a header or had no space for the list."""
    try:
        return toolchain.read_rule(listed, source) if listed.is_file() else []
    except OverlayError as error:
        if failed:
            return []
        raise CompileError(str(error)) from error


class _Stamps:
    """What the system says of each file in some folders: the time of a change cannot be set back."""

    def __init__(self, places: Iterable[Path]) -> None:
        self._stamps = {file: _stamp(file) for place in places for file in _walk(str(place))}

    def hold(self, files: Iterable[str], roots: Mapping[str, Path]) -> bool:
        """Whether the files among the roots are as they were, and none is new."""
        paths = map(os.path.normpath, files)
        folders = tuple(f"{folder}/" for folder in roots.values())
        inside = (path for path in paths if path in self._stamps or path.startswith(folders))
        return all(_stamp(path) == self._stamps.get(path) for path in inside)


def _walk(place: str) -> Iterator[str]:
    if not os.path.isdir(place):  # noqa: PTH112
        yield place
        return
    for entry in os.scandir(place):
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path)
        else:
            yield entry.path


def _stamp(file: str) -> tuple[int, ...] | None:
    try:
        stat = os.stat(file)  # noqa: PTH116
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _record(files: Iterable[str], roots: Mapping[str, Path]) -> dict[str, dict[str, str | None]]:
    """By root: the files read with their digests, and those that would have come before one read elsewhere, as None."""
    found: dict[str, dict[str, str | None]] = {root: {} for root in roots}
    for text in files:
        for root, path in _places(text, roots):
            inside = text.startswith(f"{roots[root]}/")
            found[root][path] = digest(Path(text).read_bytes()) if inside else None
    return found


def _places(file: str, roots: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Where a file is among the roots; for a header from outside, where it would be."""
    for root, folder in roots.items():
        if file.startswith(f"{folder}/"):
            yield root, file[len(str(folder)) + 1 :]
            return
    for top in INCLUDE_ROOTS:
        at = file.rfind(f"/include/{top}")
        if at >= 0:
            yield from ((root, file[at + len("/include/") :]) for root in roots)


def _is_current(record: Mapping[str, Mapping[str, str | None]], roots: Mapping[str, Path]) -> bool:
    for root, files in record.items():
        names: dict[str, Collection[str]] = {}  # by folder: to ask for each of 1,500 headers that is elsewhere is slow
        for path, before in files.items():
            folder, name = os.path.split(path)
            if folder not in names:
                names[folder] = _list_names(f"{roots[root]}/{folder}")
            file = roots[root] / path
            if (digest(file.read_bytes()) if name in names[folder] and file.is_file() else None) != before:
                return False
    return True


def _list_names(folder: str) -> Collection[str]:
    try:
        return frozenset(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return ()
