"""Removes the namespaces of a file that nothing is left in, with the last thing that was in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from porter.core.edits import Edit
from porter.languages.brackets import find_closing_end

_NAMESPACE = re.compile(r"^(?:[ \t]*//[^\n]*\n)*[ \t]*namespace (?!at\b)[\w:]* ?\{[ \t]*\r?$", re.M)


def remove_empty_namespaces(text: str, edits: Sequence[Edit]) -> list[Edit]:
    """Returns the edits, which are in order, of which some also remove the namespace around what they remove."""
    made = list(edits)
    for match in _NAMESPACE.finditer(text):
        first = next((edit for edit in made if match.end() <= edit.start), None)
        if first is None or text[match.end() : first.start].strip():
            continue
        close = find_closing_end(text, text.rindex("{", 0, match.end()), "{}")
        inside = [at for at, edit in enumerate(made) if match.end() <= edit.start and edit.end < close]
        if not inside or any(made[at].text for at in inside) or _leaves_text(text, match.end(), close - 1, made):
            continue
        ends = [*(made[at].start for at in inside[1:]), _find_end(text, match.start(), close)]
        starts = [match.start(), *(made[at].start for at in inside[1:])]
        for at, start, end in zip(inside, starts, ends, strict=True):
            made[at] = replace(made[at], start=start, end=end)
    return made


def _leaves_text(text: str, start: int, end: int, edits: Sequence[Edit]) -> bool:
    for edit in edits:
        if start <= edit.start and edit.end <= end:
            if text[start : edit.start].strip():
                return True
            start = edit.end
    return bool(text[start:end].strip())


def _find_end(text: str, start: int, close: int) -> int:
    """Returns the end of the line that closes a namespace, and of a blank one after it if one is before it too."""
    end = text.find("\n", close) + 1 or len(text)
    if text.endswith("\n\n", 0, start) and text.startswith("\n", end):
        end += 1
    return end
