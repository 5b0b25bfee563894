"""Edits of spans, gathered into a change set."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """Replaces `start` to `end` of a file by `text`."""

    file: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class ChangeSet:
    """Edits with the texts they apply to."""

    base: Mapping[str, str]
    edits: tuple[Edit, ...]

    def apply(self) -> dict[str, str]:
        texts = {}
        for file in dict.fromkeys(e.file for e in self.edits):
            text = self.base[file]
            for at, edit in sorted(enumerate(self.edits), key=lambda p: (-p[1].start, -p[1].end, -p[0])):
                if edit.file == file:
                    text = text[: edit.start] + edit.text + text[edit.end :]
            texts[file] = text
        return texts

    def diff(self, context: int = 3) -> str:
        out = []
        for file, text in sorted(self.apply().items()):
            out += difflib.unified_diff(
                self.base[file].splitlines(keepends=True),
                text.splitlines(keepends=True),
                f"a/{file}",
                f"b/{file}",
                n=context,
            )
        return "".join(out)
