"""Include folders that a source's own project has, by where its headers lie: nothing in a `.metal` file names them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

INCLUDE = Path(__file__).resolve().parent / "include"  # Metal's own headers
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*(?:include|import)[ \t]*[<"]([^>"\n]+)[>"]', re.M)
_LEVELS = 4  # of folders above a file in which others are looked through
_MOST_FOLDERS = 100  # in one: a project has fewer


def find_include_folders(source: Path) -> tuple[Path, ...]:
    """The folders in which the headers lie that `source`, and what it includes, would not find; nearest first."""
    found: dict[Path, None] = {}
    waiting, seen = [source], set[Path]()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        for header in _INCLUDED.findall(file.read_text(errors="replace")):
            beside = file.parent / header
            folder = None if beside.is_file() else find_include_folder(file, header)
            if folder:
                found.setdefault(folder)
            waiting += [each for each in (beside, folder / header if folder else None) if each and each.is_file()]
    return tuple(found)


def find_include_folder(file: Path, header: str) -> Path | None:
    """The folder that holds `header` nearest above `file` or within two folders of one above; None for Metal's own."""
    if (INCLUDE / header).is_file() or (INCLUDE / "metal4" / header).is_file():
        return None
    for level, above in enumerate(file.resolve().parents):
        places = _list_folders(above) if level < _LEVELS else iter((above,))
        if folder := next((each for each in places if (each / header).is_file()), None):
            return folder
    return None


def _list_folders(above: Path) -> Iterator[Path]:
    """A folder, those in it, and those in these."""
    yield above
    inner = _list_children(above)
    yield from inner
    for each in inner:
        yield from _list_children(each)


def _list_children(folder: Path) -> list[Path]:
    """The folders in one, none if they are too many for a part of a project."""
    try:
        found = list(islice((each for each in sorted(folder.iterdir()) if each.is_dir()), _MOST_FOLDERS + 1))
    except OSError:
        return []
    return found if len(found) <= _MOST_FOLDERS else []
