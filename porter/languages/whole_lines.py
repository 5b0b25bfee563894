"""Removes items of a Python expression that fill their lines, as libcst would, without importing it.

libcst takes longer to import than most plans take to make; what is less simple is left to it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

_AFTER = re.compile(rb"\s*,\s*(#.*)?")
_OTHER_BREAKS = re.compile(r"\r(?!\n)|[\f\v\x1c-\x1e\x85\u2028\u2029]")

Read = Sequence[tuple[ast.expr, ast.expr]]  # where an item starts, and its value


def drop_lines(source: str, node: ast.expr, gone: Collection[tuple[int, ...]]) -> str | None:
    """Returns the text without the items at these paths, or None if one shares its lines or has comments about it."""
    if _OTHER_BREAKS.search(source):
        return None
    lines = source.split("\n")
    dropped = set[int]()
    for value, paths in _group(node, gone):
        items = _read(value)
        left = len(items) - len(paths)
        if not left or (left == 1 and isinstance(value, ast.Tuple)):
            return None
        for at in paths:
            span = _find_lines(lines, *items[at])
            if span is None:
                return None
            dropped.update(span)
    return "\n".join(line for at, line in enumerate(lines) if at not in dropped)


def _group(node: ast.expr, gone: Collection[tuple[int, ...]]) -> Iterator[tuple[ast.expr, list[int]]]:
    """Yields the displays that lose items, with the indexes of these."""
    for inside, paths in groupby(sorted(gone, key=lambda path: (path[:-1], path)), key=lambda path: path[:-1]):
        value = node
        for at in inside:
            value = _read(value)[at][1]
        yield value, [path[-1] for path in paths]


def _read(node: ast.expr) -> Read:
    if isinstance(node, ast.Call):
        values = [*node.args, *(each.value for each in node.keywords)]
        return sorted(((each, each) for each in values), key=lambda item: (item[0].lineno, item[0].col_offset))
    if isinstance(node, ast.Dict):
        return [(key or value, value) for key, value in zip(node.keys, node.values, strict=True)]
    return [(each, each) for each in node.elts] if isinstance(node, ast.List | ast.Tuple | ast.Set) else []


def _find_lines(lines: Sequence[str], start: ast.expr, value: ast.expr) -> range | None:
    """Returns the lines that an item fills with its comma and the comment behind it, between lines of other code."""
    first, last = start.lineno - 1, (value.end_lineno or 0) - 1
    before, after = lines[first].encode()[: start.col_offset], lines[last].encode()[value.end_col_offset or 0 :]
    if before.strip() or not _AFTER.fullmatch(after.rstrip(b"\r")) or not 0 < first <= last < len(lines) - 1:
        return None
    beside = (lines[first - 1].strip(), lines[last + 1].strip())
    return None if any(not text or text.startswith("#") for text in beside) else range(first, last + 1)
