"""Where a new operator goes in PyTorch's test files: its OpInfo, its test on MPS, its line among decompositions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from porter.core.edits import Edit
from porter.core.layout import EXPECTED_DECOMPOSITIONS, OPINFOS, TEST_MPS
from porter.languages.python_calls import find_expression

_OP_DB = re.compile(r"^op_db\b[^=\n]*= *(?P<open>\[)\n", re.M)
_ENTRY = re.compile(r"^    \w*Info(?P<open>\()\s*(['\"])(?P<name>[^'\"\n]+)\2", re.M)
_OP_DB_COMMENT = re.compile(r"(?:^#[^\n]*\n)*\Z", re.M)
_LAST = re.compile(r"^(?:#[^\n]*\n)*(?:instantiate_device_type_tests\(|if __name__ ==)", re.M)


def insert_opinfo(text: str, op: str, functions: str, entry: str) -> Iterator[Edit]:
    """The functions before `op_db`, and the entry, if any, behind the last one whose name comes before."""
    start = _OP_DB.search(text)
    if start is None:
        return
    comment = _OP_DB_COMMENT.search(text, 0, start.start())
    at = comment.start() if comment else start.start()
    yield Edit(OPINFOS, at, at, f"{functions}\n\n")
    if not entry:
        return
    end = find_expression(OPINFOS, text, start.start("open"), start.start("open")).end
    entries = list(_ENTRY.finditer(text, start.end(), end))
    before = [each for each in entries if each["name"] <= op]
    place = start.end()
    if before:
        nearest = max(each["name"] for each in before)
        last = next(each for each in reversed(before) if each["name"] == nearest)
        stop = find_expression(OPINFOS, text, last.start(), last.start("open")).end
        place = text.index("\n", stop) + 1
    yield Edit(OPINFOS, place, place, entry)


def insert_test(text: str, test: str) -> Iterator[Edit]:
    """A test case before what makes tests for devices, at the end of the file."""
    found = _LAST.search(text)
    at = found.start() if found else len(text)
    yield Edit(TEST_MPS, at, at, f"{test}\n\n")


def insert_decompositions(text: str, names: Sequence[str]) -> Iterator[Edit]:
    """The lines in the list of operators without a decomposition, which is sorted."""
    at = 0
    for line in text.splitlines(keepends=True):
        if line.rstrip() > f"aten::{names[0]}":
            break
        at += len(line)
    yield Edit(EXPECTED_DECOMPOSITIONS, at, at, "".join(f"aten::{name}\n" for name in names))
