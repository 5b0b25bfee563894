"""A change set: edits that can be applied, combined and printed as a unified diff."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import StringIO
from itertools import accumulate

from porter.core.edits import Edit, check, compose, splice
from porter.core.errors import Place, PorterError


def file_diff(file: str, before: str | None, edits: list[Edit], deleted: bool, context: int) -> str:
    """Returns the diff of one file, empty if nothing changes. `before` is None for a new file."""
    text = before or ""
    hunks = _hunks(text, [Edit(file, 0, len(text), "")] if deleted else edits, context)
    if not hunks and before is not None and not deleted:
        return ""
    old, new = _quote(f"a/{file}"), _quote(f"b/{file}")
    head = f"diff --git {old} {new}\n"
    if before is None:
        head, old = head + "new file mode 100644\n", "/dev/null"
    if deleted:
        head, new = head + "deleted file mode 100644\n", "/dev/null"
    names = f"--- {_end_name(old)}\n+++ {_end_name(new)}\n" if hunks else ""
    return head + names + "".join(hunks)


def _quote(name: str) -> str:
    """Returns a path as git prints it: quoted and escaped if it has a quote, a backslash or a control character."""
    if not any(c in '"\\' or c < " " for c in name):
        return name
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(c, c if c >= " " else f"\\{ord(c):03o}") for c in name) + '"'


def _end_name(name: str) -> str:
    return name + "\t" if " " in name and not name.startswith('"') else name


@dataclass(frozen=True)
class _Region:
    """Lines `start` to `end` (from 0, exclusive) of the old file become `lines`."""

    start: int
    end: int
    lines: list[str]


def _hunks(text: str, edits: list[Edit], context: int) -> list[str]:
    if not edits:
        return []
    at, behind = _find_stretch(text, edits, context + 1)
    before, skipped = text[at:behind], text.count("\n", 0, at)
    moved = [Edit(each.file, each.start - at, each.end - at, each.text) for each in edits]
    old = _lines(before)
    hunks, shift = [], 0
    for group in _group_nearby(list(_find_changes(before, old, moved)), context):
        start, end = max(group[0].start - context, 0), min(group[-1].end + context, len(old))
        body, at, grown = [], start, 0
        for region in group:
            body += [" " + line for line in old[at : region.start]]
            body += ["-" + line for line in old[region.start : region.end]]
            body += ["+" + line for line in region.lines]
            at, grown = region.end, grown + len(region.lines) - (region.end - region.start)
        body += [" " + line for line in old[at:end]]
        first = skipped + start
        header = f"@@ -{_range(first, end - start)} +{_range(first + shift, end - start + grown)} @@\n"
        hunks.append(header + "".join(map(_print_line, body)))
        shift += grown
    return hunks


def _find_stretch(text: str, edits: list[Edit], lines: int) -> tuple[int, int]:
    """Returns the span of the lines that edits touch, and of some lines around them."""
    start, end = edits[0].start, max(edit.end for edit in edits)
    for _ in range(lines + 1):
        start = text.rfind("\n", 0, max(start, 0))
        end = text.find("\n", end) + 1 or len(text)
    return start + 1, end


def _find_changes(before: str, old: list[str], edits: list[Edit]) -> Iterator[_Region]:
    """Yields the regions that differ. Only edited lines are compared: a whole file would take most of a second."""
    starts = list(accumulate(map(len, old), initial=0))
    for first, last, group in _line_groups(before, starts, edits):
        text = before[starts[first] : starts[last]]
        moved = [Edit(e.file, e.start - starts[first], e.end - starts[first], e.text) for e in group]
        new = _lines(splice(text, moved))
        matcher = difflib.SequenceMatcher(None, old[first:last], new, autojunk=False)
        for tag, i, j, k, m in matcher.get_opcodes():
            if tag != "equal":
                yield _Region(first + i, first + j, new[k:m])


def _line_groups(before: str, starts: list[int], edits: list[Edit]) -> Iterator[tuple[int, int, list[Edit]]]:
    """Yields groups of edits that share lines, with the first line they touch and the line after the last."""
    group: list[Edit] = []
    first = last = 0
    for edit in edits:
        begin, end = _find_touched_lines(before, starts, edit)
        if group and begin < last:
            group.append(edit)
            last = max(last, end)
            continue
        if group:
            yield first, last, group
        group, first, last = [edit], begin, end
    if group:
        yield first, last, group


def _find_touched_lines(before: str, starts: list[int], edit: Edit) -> tuple[int, int]:
    """Returns the range of lines that an edit changes: an empty one if it inserts whole lines between two others."""
    begin, end = bisect_right(starts, edit.start) - 1, bisect_right(starts, edit.end) - 1
    joined = before[starts[begin] : edit.start] + edit.text
    if (joined and not joined.endswith("\n")) or edit.end != starts[end]:
        end += 1
    if begin and begin == len(starts) - 1 and not before.endswith("\n"):
        begin -= 1  # text after a last line without a line feed becomes part of that line
    return begin, min(end, len(starts) - 1)


def _group_nearby(regions: list[_Region], context: int) -> list[list[_Region]]:
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
    """Splits into lines with their ends, as git does: only a line feed ends a line."""
    return list(StringIO(text, newline="\n"))


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"


def _print_line(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


@dataclass(frozen=True)
class ChangeSet:
    """Edits with the texts they apply to. Edits of a file missing from `base` create it; one left empty is deleted.

    Edits may touch but not overlap. Insertions at the same offset keep their order and precede a replacement that
    starts there. Raises PTR050 (overlap), PTR051 (outside the file) or PTR052 (an edit of a deleted file, or a deleted
    file that does not exist).
    """

    base: Mapping[str, str]
    edits: tuple[Edit, ...]
    deleted: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        for file in self.deleted:
            if file not in self.base or any(e.file == file for e in self.edits):
                raise PorterError("PTR052", "a deleted file must exist and cannot be edited", Place(file))
        for file, edits in self.by_file.items():
            check(file, self.base.get(file, ""), edits)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the change set touches, sorted."""
        return tuple(sorted({e.file for e in self.edits} | self.deleted))

    @property
    def created(self) -> tuple[str, ...]:
        """The files that the change set creates."""
        return tuple(f for f in self.files if f not in self.base)

    @property
    def gone(self) -> frozenset[str]:
        """The files that are deleted, as such or by edits that leave no text."""
        return self.deleted | {file for file, text in self._applied.items() if not text and self.base.get(file)}

    def apply(self) -> dict[str, str]:
        """Returns the new text of every edited or created file."""
        return dict(self._applied)

    @cached_property
    def _applied(self) -> dict[str, str]:
        return {file: splice(self.base.get(file, ""), edits) for file, edits in self.by_file.items()}

    def combine(self, later: ChangeSet) -> ChangeSet:
        """Returns one change set that does what this one and then `later` do. `later` applies to this one's result.

        Raises PTR053 if `later` applies to other texts.
        """
        after = {**self.base, **self.apply()}
        base = dict(self.base)
        for file, text in later.base.items():
            if file in self.deleted or after.get(file, text) != text:
                raise PorterError("PTR053", "the plan has read two versions of this file", Place(file))
            if file not in after:
                base[file] = text
        theirs = later.by_file
        files = [file for file in dict.fromkeys((*self.files, *theirs)) if file not in later.deleted | self.deleted]
        edits = [edit for file in files for edit in self._compose(file, base.get(file), theirs.get(file, []))]
        again = self.deleted & theirs.keys()
        edits += [Edit(file, 0, len(base[file]), later.apply()[file]) for file in sorted(again)]
        gone = (self.deleted - again) | (later.deleted & base.keys())
        combined = ChangeSet(base, tuple(edits), gone)
        texts = {**self._applied, **later._applied}
        vars(combined)["_applied"] = {file: texts[file] for file in combined.by_file}  # known: not spliced again
        return combined

    def _compose(self, file: str, text: str | None, later: list[Edit]) -> tuple[Edit, ...]:
        first = self.by_file.get(file, [])
        edits = tuple(compose(file, text or "", first, later) if later else first)
        return edits or ((Edit(file, 0, 0, ""),) if text is None else ())

    def diff(self, context: int = 3) -> str:
        """Returns a unified diff with a/ and b/ prefixes that `git apply` accepts."""
        edits = self.by_file
        return "".join(
            file_diff(file, self.base.get(file), edits.get(file, []), file in self.gone, context) for file in self.files
        )

    @cached_property
    def by_file(self) -> dict[str, list[Edit]]:
        """The edits of each file, in order."""
        groups: dict[str, list[Edit]] = {}
        for edit in self.edits:
            groups.setdefault(edit.file, []).append(edit)
        return {file: sorted(group, key=lambda e: (e.start, e.end)) for file, group in groups.items()}


# Hunks of a change set, of which a person may keep some.


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
