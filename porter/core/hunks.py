"""Hunks of a change set, of which a person may keep some."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from porter.core.change_set import ChangeSet, file_diff
from porter.core.edits import Edit

_HEADER = re.compile(r"@@ -(?P<start>\d+),(?P<count>\d+) ")
_NO_END = "\\ No newline at end of file"


@dataclass(frozen=True)
class Hunk:
    """A hunk of a file's diff as text, from its `@@` on."""

    file: str
    text: str

    @property
    def removed(self) -> str:
        """The lines that it removes."""
        return self._list_lines("-")

    @property
    def added(self) -> str:
        """The lines that it adds."""
        return self._list_lines("+")

    def _list_lines(self, sign: str) -> str:
        return "\n".join(line[1:] for line in self.text.splitlines()[1:] if line.startswith(sign))

    def explained(self, why: str) -> str:
        """The text with a reason behind its `@@`, where `git apply` reads nothing."""
        first, _, rest = self.text.partition("\n")
        return f"{first} {why}\n{rest}"


def split_hunks(changes: ChangeSet) -> Iterator[tuple[str, tuple[Hunk, ...]]]:
    """For each file, what stands above its hunks in the diff, and these."""
    for file in changes.files:
        diff = file_diff(file, changes.base.get(file), changes.by_file.get(file, []), file in changes.gone, 3)
        head, *texts = re.split(r"^(?=@@ )", diff, flags=re.M)
        yield head, tuple(Hunk(file, text) for text in texts)


def keep_hunks(changes: ChangeSet, kept: Sequence[Hunk]) -> ChangeSet:
    """The change set with some of its hunks. A file that goes, goes with its hunk."""
    gone = changes.gone & {hunk.file for hunk in kept}
    edits = tuple(_make_edit(changes, hunk) for hunk in kept if hunk.file not in gone)
    return ChangeSet(
        {file: changes.base[file] for file in {hunk.file for hunk in kept} & changes.base.keys()}, edits, gone
    )


def _make_edit(changes: ChangeSet, hunk: Hunk) -> Edit:
    """The edit that replaces the old lines of a hunk with the new ones."""
    header = _HEADER.match(hunk.text)
    assert header is not None
    text = changes.base.get(hunk.file, "")
    offsets = list(accumulate(map(len, text.split("\n")), lambda end, length: end + length + 1, initial=0))
    first, count = int(header["start"]), int(header["count"])
    begin = first - 1 if count else first  # a hunk without old lines names the line before it
    start, end = (min(offsets[at], len(text)) for at in (begin, begin + count))
    return Edit(hunk.file, start, end, "".join(_list_new(hunk)))


def _list_new(hunk: Hunk) -> Iterator[str]:
    """The lines that a hunk leaves, with their ends."""
    lines = hunk.text.split("\n")[1:-1]
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line[:1] in (" ", "+"):
            yield line[1:] + ("" if following == _NO_END else "\n")
