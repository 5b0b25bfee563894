"""Object files of host code, cached by the source and every file that the compiler read.

Two plans for a fork differ in a few files, and their trees lie in different places: a file is known by its path inside
its tree, so that an object of one plan serves every plan that leaves its sources alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aten_overlay import toolchain
from aten_overlay.cache import is_intact, make_folder, seal
from porter.core.cache import digest, get, put
from porter.core.layout import INCLUDE_ROOTS

_FAILED = ".failed"  # of the file with the compiler's message, beside the record of what it had read
# What is wrong in a file that was read; a full disk, or a header that is missing, is no such error.
_IN_SOURCE = re.compile(r"^[^\s:]+:\d+:\d+: error: ", re.M)


@dataclass(frozen=True)
class Recipe:
    """How host code is compiled and linked.

    `flags` may hold paths of the tree; `digest` covers them without these, the compiler and every header outside the
    tree. `precompiled` are headers to be read first, by language.
    """

    compiler: Path
    flags: tuple[str, ...]
    link: tuple[str, ...]
    digest: str
    precompiled: Mapping[str, Path]


class CompileError(Exception):
    """The compiler's message."""


def compile_object(
    source: Path, name: str, include: Sequence[str], roots: Mapping[str, Path], recipe: Recipe, cache: Path
) -> tuple[Path, bool]:
    """The object of one source, and whether it was compiled just now.

    `name` is what the source is called in its tree; `roots` are the folders that files may be read from and that differ
    between plans, by what they are. Raises CompileError.
    """
    folder = cache / "objects" / digest(recipe.digest, name, source.read_bytes())
    found = _find(folder, roots)
    if found:
        return found, False
    make_folder(folder)
    with toolchain.locked(folder):  # workers of one verdict ask for the same objects at once
        found = _find(folder, roots)
        return (found, False) if found else (_compile(source, include, roots, recipe, folder), True)


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


def _compile(source: Path, include: Sequence[str], roots: Mapping[str, Path], recipe: Recipe, folder: Path) -> Path:
    part, listed = folder / f"{os.getpid()}.part", folder / f"{os.getpid()}.d"
    language = "objective-c++" if source.suffix == ".mm" else "c++"
    before = ("-include-pch", str(recipe.precompiled[language])) if language in recipe.precompiled else ()
    command = [
        str(recipe.compiler), toolchain.BY_CONTENT, *include, *recipe.flags, *before, "-x", language, "-MD", "-MF",
        str(listed), "-c", str(source), "-o", str(part),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # A compiler that crashed, or missed a header, lists nothing.
    record = json.dumps(_record(listed.read_text(), roots)) if listed.is_file() else ""
    listed.unlink(missing_ok=True)
    target = folder / f"{digest(record)}.o"
    if done.returncode:
        part.unlink(missing_ok=True)
        if record and _IN_SOURCE.search(done.stderr):
            put(target.with_suffix(_FAILED), done.stderr)
            put(target.with_suffix(".json"), record)
        raise CompileError(done.stderr)
    part.replace(target)
    seal(target)
    put(target.with_suffix(".json"), record)
    return target


def _record(listed: str, roots: Mapping[str, Path]) -> dict[str, dict[str, str | None]]:
    """By root: the files read with their digests, and those that would have come before one read elsewhere, as None."""
    files = listed.replace("\\\n", " ").split(":", 1)[-1].split()
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
        for path, before in files.items():
            file = roots[root] / path
            if (digest(file.read_bytes()) if file.is_file() else None) != before:
                return False
    return True
