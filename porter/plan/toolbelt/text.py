"""Edits of configuration files that leave every other line as it is."""

from __future__ import annotations

import re
import sys
from typing import Any

from porter.core.checkout import Checkout
from porter.core.edits import Edit, splice
from porter.core.errors import Place, PorterError

_HEADER = re.compile(r"^\[", re.MULTILINE)
_WITH_TEXT = re.compile(r"^(?!\s*(?:#|$)).*\n?", re.MULTILINE)


def refuse(path: str, what: str) -> PorterError:
    """The error for a file that cannot be edited without guessing."""
    return PorterError("PTR152", what, Place(path), "Add it by hand: docs/toolbelt.md has the text.")


def replace_file(checkout: Checkout, path: str, text: str) -> list[Edit]:
    """Edits that give a file this text; none where it has it."""
    before = checkout.read(path) if checkout.exists(path) else ""
    return [] if before == text else [Edit(path, 0, len(before), text)]


def append(path: str, text: str, added: str) -> Edit:
    """An edit that adds lines at the end of a file."""
    return Edit(path, len(text), len(text), added if not text or text.endswith("\n") else f"\n{added}")


def find_table_end(text: str, name: str) -> int | None:
    """Where the last line of a TOML table ends that is no comment: comments after it are about the next table."""
    header = re.search(rf"^\[{re.escape(name)}\][^\n]*\n?", text, re.MULTILINE)
    if header is None:
        return None
    following = _HEADER.search(text, header.end())
    last = header.end()
    for line in _WITH_TEXT.finditer(text, header.end(), following.start() if following else len(text)):
        last = line.end()
    return last


def read_toml(path: str, text: str) -> dict[str, Any]:
    """What a TOML file says; nothing before Python 3.11, which cannot tell. Raises PTR152 for what is no TOML."""
    if sys.version_info < (3, 11):
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise refuse(path, f"this is no TOML: {error}") from error


def check_toml(path: str, text: str, edits: list[Edit]) -> list[Edit]:
    """The edits, unless the file is no TOML before them or after them. Raises PTR152."""
    read_toml(path, text)
    read_toml(path, splice(text, sorted(edits, key=lambda edit: edit.start)))
    return edits
