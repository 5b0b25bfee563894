"""PTX by what it was made of, in the cache: compiled on one machine, run on another that has no compiler.

An entry's key holds the source with all that it includes, the options, and this package's headers and generator; the
compiler is not part of it. Entries are sealed, and lie in the user's own cache alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from aten_overlay import cache
from aten_overlay.metal.cuda.module import Entry, Parameter, PtxModule

_FORMAT = "ptx 1"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"](?P<name>[^>"]+)[>"]', re.M)
_PACKAGE = Path(__file__).resolve().parent.parent


def folder() -> Path:
    """Where PTX is kept: in the cache, which `$PORTER_CACHE` names."""
    return cache.root() / "ptx"


def find_key(source: Path | str, include: Sequence[Path], *options: str) -> str:
    """The key of what is compiled of a source, a file or the text itself. No compiler is asked."""
    text = source.read_text() if isinstance(source, Path) else source
    folders = (source.parent, *include) if isinstance(source, Path) else tuple(include)
    headers = "\0".join(_list_headers(text, folders))
    return cache.digest(_FORMAT, text, headers, *options, _package_digest())


def find(key: str) -> PtxModule | None:
    """What was kept for a key, if it is whole."""
    table, ptx = folder() / f"{key}.json", folder() / f"{key}.ptx"
    if not (cache.is_intact(table) and cache.is_intact(ptx)):
        return None
    rows: list[dict[str, Any]] = json.loads(table.read_text())
    entries = (Entry(**{**row, "parameters": tuple(Parameter(**p) for p in row["parameters"])}) for row in rows)
    return PtxModule(ptx.read_text(), {entry.name: entry for entry in entries})


def keep(key: str, module: PtxModule) -> PtxModule:
    """Writes what was compiled for a key."""
    rows = [{**asdict(entry), "symbols": dict(entry.symbols)} for entry in module.entries.values()]
    cache.seal(cache.write(folder() / f"{key}.ptx", module.text.encode()))
    cache.seal(cache.write(folder() / f"{key}.json", json.dumps(rows).encode()))
    return module


def _list_headers(text: str, folders: Sequence[Path]) -> list[str]:
    """The texts of all headers that a source may include, from these folders, in the order in which they are named."""
    found: dict[Path, str] = {}
    waiting = [text]
    while waiting:
        for path in _resolve(_INCLUDE.findall(waiting.pop()), folders):
            if path not in found:
                found[path] = path.read_text(errors="surrogateescape")
                waiting.append(found[path])
    return list(found.values())


def _resolve(names: Iterable[str], folders: Sequence[Path]) -> list[Path]:
    paths = (next((each / name for each in folders if (each / name).is_file()), None) for name in names)
    return [path for path in paths if path is not None]


@lru_cache(maxsize=1)
def _package_digest() -> str:
    """A hash of all that makes PTX of Metal in this package."""
    files = [p for p in sorted((_PACKAGE / "metal").rglob("*")) if p.is_file() and p.suffix != ".pyc"]
    return cache.digest(*(part for p in files for part in (p.name, p.read_bytes())))
