"""The kill harness in a process of its own, with a writer that is as it should be or broken in a named way.

    python -m tests.tools.broken_writes NAME KILLS SEED

It prints what was tried as JSON. A test's own process is not forked hundreds of times: it holds torch, and a fork
copies the tables of all its pages.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import kill_writes
from porter.core import confined, journal
from porter.core.errors import PorterError


def _replace_in_place(root: Path, path: str, token: str, data: bytes, mode: int | None) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)
    confined.write_synced(os.open(root / f"{path}.{token}", os.O_WRONLY | os.O_CREAT, 0o600), data)
    (root / f"{path}.{token}").replace(root / path)


def _replace_unchecked(root: Path, path: str, token: str, _expected: str | None) -> bool:
    (root / path).with_name(f".{(root / path).name}.{token}.porter").replace(root / path)
    return True


def _raise_uncoded(*_: Any) -> None:
    raise OSError(28, "No space left on device")


# By name: the module, what of it is replaced, and by what.
BROKEN: Mapping[str, tuple[Any, str, Callable[..., Any]]] = {
    "nothing is rolled back": (journal, "_roll_back", lambda *_: None),
    "new folders stay": (journal, "_remove_folders", lambda *_: None),
    "a journal is not settled": (journal, "_settle", lambda *_: "rolled back"),
    "an error has no code": (journal, "_missing_folders", _raise_uncoded),
    "unused copies stay": (confined, "discard_beside", lambda *_: None),
    "files are written in place": (confined, "write_beside", _replace_in_place),
    "a file of somebody else is replaced": (confined, "swap_in", _replace_unchecked),
    "nothing is put back": (confined, "put_back", lambda *_: None),
}


def main(name: str, kills: str, seed: str) -> None:
    if name in BROKEN:
        module, attribute, fault = BROKEN[name]
        getattr(module, attribute)  # a name that is gone breaks nothing
        setattr(module, attribute, fault)
    try:
        result = vars(kill_writes.run(int(kills), int(seed)))
    except (PorterError, OSError) as error:  # what recovery itself raises is found as well
        result = {"wrong": [str(error)]}
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
