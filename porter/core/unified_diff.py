"""Prints edits of a file as a unified diff that `git apply` accepts. Only the edited lines are compared."""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import accumulate

from porter.core.edits import Edit, splice


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
