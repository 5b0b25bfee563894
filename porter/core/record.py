"""The record of a write or undo in the journal. Reading validates every field."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from porter.core.confined import is_plain, read

KINDS = ("write", "undo")
LARGEST = 1 << 26  # bytes of a record
_HEXADECIMAL = frozenset("0123456789abcdef")
_DECIMAL = frozenset("0123456789")


@dataclass(frozen=True)
class Touched:
    """A file of an entry: digests before and after (None if it does not exist), mode, and the name of its copy."""

    path: str
    before: str | None
    after: str | None
    mode: int | None
    blob: str


@dataclass(frozen=True)
class Record:
    """A write or undo: `number` is its place in the history, `folders` are the ones it creates, `ops` what it is about.

    Records of older versions of porter have no `ops`.
    """

    kind: str
    number: int
    token: str
    files: tuple[Touched, ...]
    folders: tuple[str, ...]
    ops: tuple[str, ...] = ()


def read_record(path: Path) -> Record:
    """Reads a record. Raises OSError if the file is unreadable, ValueError if it is not a record."""
    data = read(path.parent, path.name)
    _require(len(data) <= LARGEST, "size")
    try:
        return parse_record(json.loads(data))
    except RecursionError as error:
        raise ValueError("nesting") from error


def parse_record(raw: Any) -> Record:
    """Converts a JSON value to a record. Raises ValueError for an unknown, missing or invalid field."""
    raw = {"ops": [], **raw} if isinstance(raw, dict) else raw
    _require_keys(raw, Record)
    _require(raw["kind"] in KINDS, "kind")
    _require(_is_number(raw["number"], 1, 10**9), "number")
    _require(_consists(raw["token"], _HEXADECIMAL, 8, 8), "token")
    _require(isinstance(raw["files"], list) and isinstance(raw["folders"], list), "lists")
    _require(all(map(is_plain, raw["folders"])), "folders")
    _require(isinstance(raw["ops"], list) and all(isinstance(name, str) for name in raw["ops"]), "ops")
    files = tuple(map(_parse_file, raw["files"]))
    _require(len({each.path for each in files}) == len(files), "paths")
    return Record(raw["kind"], raw["number"], raw["token"], files, tuple(raw["folders"]), tuple(raw["ops"]))


def _parse_file(raw: Any) -> Touched:
    _require_keys(raw, Touched)
    _require(is_plain(raw["path"]), "path")
    _require(
        all(raw[name] is None or _consists(raw[name], _HEXADECIMAL, 32, 32) for name in ("before", "after")), "digest"
    )
    _require(raw["mode"] is None or _is_number(raw["mode"], 0, 0o7777), "mode")
    _require(_consists(raw["blob"], _DECIMAL, 1, 9), "blob")
    return Touched(**raw)


def _require_keys(raw: Any, kind: type[Record] | type[Touched]) -> None:
    _require(isinstance(raw, dict) and set(raw) == {field.name for field in fields(kind)}, kind.__name__)


def _is_number(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _consists(value: object, characters: frozenset[str], least: int, most: int) -> bool:
    return isinstance(value, str) and least <= len(value) <= most and characters.issuperset(value)


def _require(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(what)
