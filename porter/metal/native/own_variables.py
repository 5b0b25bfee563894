"""Variables of host code that a launch declares, beside those that the function has."""

from __future__ import annotations

import re
from collections.abc import Collection

from porter.languages.statements import name_tokens
from porter.metal.native.host_values import Names

_THEIRS = "\0"  # before a variable of the function


def mark_theirs(variable: str) -> str:
    """A variable of the function, that `rename_own` leaves as it is."""
    return f"{_THEIRS}{variable}"


def rename_own(text: str, own: Collection[str], names: Names, body: str) -> str:
    """Statements with other names for their `own` variables that the function has too."""
    taken = {token.text for token in name_tokens(body)} | set(names.variables.values())
    for name in (each for each in own if each in taken):
        text = re.sub(rf"(?<![\w.:{_THEIRS}]){name}\b", f"{name}_", text)
    return text.replace(_THEIRS, "")
