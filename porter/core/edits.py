"""Edits of spans, gathered into a change set: a value that applies, inverts and prints as a unified diff."""

from __future__ import annotations

import difflib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from porter.core.errors import Place, PorterError


@dataclass(frozen=True)
class Edit:
    """Replaces `start` to `end` (character offsets into the text `Checkout.read` gives) of `file` by `text`."""

    file: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class ChangeSet:
    """Edits with the texts they apply to. A file that `base` lacks is created; the files in `deleted` go.

    Edits may touch but not overlap: insertions at one offset stand in the order given, before a replacement that
    starts there. Raises PTR050 (overlap), PTR051 (outside the file) or PTR052 (an edit of a file that goes, or
    one that goes without being there).
    """

    base: Mapping[str, str]
    edits: tuple[Edit, ...]
    deleted: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        for file in self.deleted:
            if file not in self.base or any(e.file == file for e in self.edits):
                raise PorterError("PTR052", "a deleted file must exist and have no other edit", Place(file))
        for file, edits in self._by_file().items():
            _check(file, self.base.get(file, ""), edits)

    @property
    def files(self) -> tuple[str, ...]:
        """Every file the change set touches, sorted."""
        return tuple(sorted({e.file for e in self.edits} | self.deleted))

    @property
    def created(self) -> tuple[str, ...]:
        """The files that are there only afterwards."""
        return tuple(f for f in self.files if f not in self.base)

    def apply(self) -> dict[str, str]:
        """The new text of every file that is edited or created, without the deleted ones."""
        return {file: _splice(self.base.get(file, ""), edits) for file, edits in self._by_file().items()}

    def combine(self, *others: ChangeSet) -> ChangeSet:
        """All edits as one change set of the same base. Raises PTR053 if the parts were planned on different texts."""
        base = dict(self.base)
        for other in others:
            for file, text in other.base.items():
                if base.setdefault(file, text) != text:
                    raise PorterError("PTR053", "two parts of the plan read different texts of this file", Place(file))
        edits = tuple(e for part in (self, *others) for e in part.edits)
        return ChangeSet(base, edits, frozenset().union(*(p.deleted for p in (self, *others))))

    def diff(self, context: int = 3) -> str:
        """A unified diff with a/ and b/ prefixes, as `git apply` takes it."""
        groups = self._by_file()
        return "".join(_file_diff(file, self, groups.get(file, []), context) for file in self.files)

    def _by_file(self) -> dict[str, list[Edit]]:
        groups: dict[str, list[Edit]] = {}
        for edit in self.edits:
            groups.setdefault(edit.file, []).append(edit)
        return {file: sorted(group, key=lambda e: (e.start, e.end)) for file, group in groups.items()}


def line_of(text: str, offset: int) -> int:
    """The line, from 1, that holds a character offset."""
    return text.count("\n", 0, offset) + 1


def _check(file: str, text: str, edits: list[Edit]) -> None:
    for edit in edits:
        if not 0 <= edit.start <= edit.end <= len(text):
            raise PorterError("PTR051", f"an edit of {edit.start} to {edit.end} is outside the file", Place(file))
    for one, two in pairwise(edits):
        if two.start < one.end:
            raise PorterError("PTR050", "two edits want to change the same text", Place(file, line_of(text, two.start)))


def _splice(text: str, edits: list[Edit]) -> str:
    parts, at = [], 0
    for edit in edits:
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _file_diff(file: str, changes: ChangeSet, edits: list[Edit], context: int) -> str:
    before = changes.base.get(file, "")
    if file in changes.deleted:
        edits = [Edit(file, 0, len(before), "")]
    hunks = _hunks(before, edits, context)
    if not hunks and file in changes.base and file not in changes.deleted:
        return ""
    old, new = _quoted(f"a/{file}"), _quoted(f"b/{file}")
    head = f"diff --git {old} {new}\n"
    if file not in changes.base:
        head, old = head + "new file mode 100644\n", "/dev/null"
    if file in changes.deleted:
        head, new = head + "deleted file mode 100644\n", "/dev/null"
    names = f"--- {_ended(old)}\n+++ {_ended(new)}\n" if hunks else ""
    return head + names + "".join(hunks)


def _quoted(name: str) -> str:
    """A path as git prints it: in quotes with escapes when it holds a quote, a backslash or a control character."""
    if not any(c in '"\\' or c < " " for c in name):
        return name
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(c, c if c >= " " else f"\\{ord(c):03o}") for c in name) + '"'


def _ended(name: str) -> str:
    return name + "\t" if " " in name and not name.startswith('"') else name


@dataclass(frozen=True)
class _Region:
    """Lines `start` to `end` (from 0, exclusive) of the old file become `lines`."""

    start: int
    end: int
    lines: list[str]


def _hunks(before: str, edits: list[Edit], context: int) -> list[str]:
    old = _lines(before)
    hunks, shift = [], 0
    for group in _near(list(_changed(before, old, edits)), context):
        start, end = max(group[0].start - context, 0), min(group[-1].end + context, len(old))
        body, at, grown = [], start, 0
        for region in group:
            body += [" " + line for line in old[at : region.start]]
            body += ["-" + line for line in old[region.start : region.end]]
            body += ["+" + line for line in region.lines]
            at, grown = region.end, grown + len(region.lines) - (region.end - region.start)
        body += [" " + line for line in old[at:end]]
        header = f"@@ -{_range(start, end - start)} +{_range(start + shift, end - start + grown)} @@\n"
        hunks.append(header + "".join(map(_printed, body)))
        shift += grown
    return hunks


def _changed(before: str, old: list[str], edits: list[Edit]) -> Iterator[_Region]:
    """The lines that differ, compared only where an edit is: a whole-file comparison would take most of a second."""
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    for first, last, group in _line_groups(before, starts, edits):
        text = before[starts[first] : starts[last]]
        moved = [Edit(e.file, e.start - starts[first], e.end - starts[first], e.text) for e in group]
        new = _lines(_splice(text, moved))
        matcher = difflib.SequenceMatcher(None, old[first:last], new, autojunk=False)
        for tag, i, j, k, m in matcher.get_opcodes():
            if tag != "equal":
                yield _Region(first + i, first + j, new[k:m])


def _line_groups(before: str, starts: list[int], edits: list[Edit]) -> Iterator[tuple[int, int, list[Edit]]]:
    """Edits that share lines, with the whole lines they reach: an edit at a line's start may join the line before."""
    group: list[Edit] = []
    first = last = 0
    for edit in edits:
        begin = max(bisect_left(starts, edit.start) - 1, 0)
        end = min(bisect_right(starts, edit.end), len(starts) - 1)
        if group and begin < last:
            group.append(edit)
            last = max(last, end)
            continue
        if group:
            yield first, last, group
        group, first, last = [edit], begin, end
    if group:
        yield first, last, group


def _near(regions: list[_Region], context: int) -> list[list[_Region]]:
    groups: list[list[_Region]] = []
    for region in regions:
        if groups and region.start == groups[-1][-1].end:
            last = groups[-1][-1]
            groups[-1][-1] = _Region(last.start, region.end, last.lines + region.lines)
        elif groups and region.start - groups[-1][-1].end <= 2 * context:
            groups[-1].append(region)
        else:
            groups.append([region])
    return groups


def _lines(text: str) -> list[str]:
    """Lines with their ends, as git sees them: only a line feed ends one."""
    return [line + "\n" for line in text.split("\n")[:-1]] + ([tail] if (tail := text.rsplit("\n", 1)[-1]) else [])


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"


def _printed(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
