"""Reads a row of `native_functions.yaml` that is written as almost all of them are, without a YAML parser.

YAML takes half a second for the whole file. A row with anything unusual in it (a quote, a value over several lines, a
tab) is left to the parser: what is read here is what the parser would say.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# A value that YAML takes as it stands: no comment, no mapping, nothing that starts another kind of scalar.
_PLAIN = r"[A-Za-z_][^:#]*(?:(?::(?! |$)|(?<! )#)[^:#]*)*"
_LIST = r"\[\w+(?:, *\w+)*\]"
_COMMENT = r" *(?:(?<= )#.*)?$"
_FUNC = re.compile(rf"- func: ({_PLAIN}){_COMMENT}")
_LINE = re.compile(
    rf"  (?P<field>[a-z_]+):(?: +(?P<value>{_PLAIN}|{_LIST}))?{_COMMENT}"
    rf"|    (?P<keys>\w+(?:, ?\w+)*): +(?P<kernel>[A-Za-z_][\w:<>]*(?<!:)){_COMMENT}"
    r"|(?: *#.*)?$"
)


class PlainEntry(NamedTuple):
    """A line of `dispatch:`, with the offsets of its line and of its keys, and its line from 1."""

    keys: tuple[str, ...]
    kernel: str
    start: int
    keys_start: int
    keys_end: int
    end: int
    line: int


class PlainRow(NamedTuple):
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
            fields["func"] = head[1].rstrip(" ")
            continue
        if not line:
            continue
        found = _LINE.match(line)
        if found is None:
            return None
        field, value, keys, kernel = found.groups()
        if field:
            if field in fields:
                return None
            fields[field], section = (value or "").rstrip(" "), "" if value else field
        elif keys:
            if section != "dispatch":
                return None
            names, end = tuple(part.strip() for part in keys.split(",")), min(offset, len(text))
            entries.append(PlainEntry(names, kernel, start, start + 4, start + found.end("keys"), end, number + 1))
    return PlainRow(fields, tuple(entries)) if _is_plain(fields, entries) else None


def _is_plain(fields: dict[str, str], entries: list[PlainEntry]) -> bool:
    """Whether each field has the value that it needs: `dispatch` entries, any other one a scalar."""
    valued = all(fields.values()) or all(value for name, value in fields.items() if name != "dispatch")
    return valued and ("dispatch" in fields) == bool(entries) and len({each.keys for each in entries}) == len(entries)
