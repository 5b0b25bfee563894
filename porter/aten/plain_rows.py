"""Reads a row of `native_functions.yaml` that is written as almost all of them are, without a YAML parser.

YAML takes half a second for the whole file. A row with anything unusual in it (a quote, a value over several lines, a
tab) is left to the parser: what is read here is what the parser would say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# A value that YAML takes as it stands: no comment, no mapping, nothing that starts another kind of scalar.
_PLAIN = r"[A-Za-z_](?:(?!: |:$| #).)*?"
_COMMENT = r"[ ]*(?:[ ]#[^\n]*)?$"
_FUNC = re.compile(rf"- func: ({_PLAIN}){_COMMENT}")
_FIELD = re.compile(rf"  ([a-z_]+):(?: +({_PLAIN}|\[[\w ,.]*\]))?{_COMMENT}")
_ENTRY = re.compile(rf"    (\w+(?:, ?\w+)*): +([A-Za-z_][\w:<>]*){_COMMENT}")
_BLANK = re.compile(r"(?: *#[^\n]*)?$")


@dataclass(frozen=True)
class PlainEntry:
    """A line of `dispatch:`, with the offsets of its line and of its keys, and its line from 1."""

    keys: tuple[str, ...]
    kernel: str
    start: int
    keys_start: int
    keys_end: int
    end: int
    line: int


@dataclass(frozen=True)
class PlainRow:
    """The fields of a row, and the entries of its `dispatch:` and of `ufunc_inner_loop:`."""

    fields: dict[str, str]
    dispatch: tuple[PlainEntry, ...]


def read_plain_row(text: str) -> PlainRow | None:
    """Returns a row, or None if it is not plain."""
    if not text.isascii() or "\t" in text or "\r" in text:
        return None
    fields: dict[str, str] = {}
    entries: list[PlainEntry] = []
    section, offset = "", 0
    for number, line in enumerate(text.split("\n")):
        start, offset = offset, offset + len(line) + 1
        if number == 0:
            head = _FUNC.match(line)
            if head is None:
                return None
            fields["func"] = head[1]
            continue
        if _BLANK.match(line):
            continue
        field = _FIELD.match(line)
        if field:
            if field[1] in fields:
                return None
            fields[field[1]], section = field[2] or "", "" if field[2] else field[1]
            continue
        entry = _ENTRY.match(line) if section == "dispatch" else None
        if entry is None:
            return None
        keys = tuple(part.strip() for part in entry[1].split(","))
        end = min(offset, len(text))
        entries.append(PlainEntry(keys, entry[2], start, start + 4, start + entry.end(1), end, number + 1))
    return PlainRow(fields, tuple(entries)) if _is_plain(fields, entries) else None


def _is_plain(fields: dict[str, str], entries: list[PlainEntry]) -> bool:
    """Whether each field has the value that it needs: `dispatch` entries, any other one a scalar."""
    valued = all(value for name, value in fields.items() if name != "dispatch")
    keys = [key for entry in entries for key in [", ".join(entry.keys)]]
    return valued and ("dispatch" in fields) == bool(entries) and len(set(keys)) == len(keys)
