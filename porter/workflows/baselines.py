"""The fork before a port that the checkout has: what porter's journal kept, a commit, or another folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from porter.aten.operator import Operator
from porter.core import journal
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import ATEN, METAL_HEADERS, NATIVE_FUNCTIONS, OPINFO_DEFINITIONS, OPINFOS, TEST_LISTS

_FOLDERS = (ATEN, METAL_HEADERS, OPINFO_DEFINITIONS)
_FILES = (OPINFOS, *TEST_LISTS)


@dataclass(frozen=True)
class Baseline:
    """The `fork` before, and the `texts` that the checkout has now of the files that differ ("" for no file)."""

    fork: Checkout
    texts: Mapping[str, str]
    origin: str


def find_baseline(checkout: Checkout, op: str, named: str | None) -> Baseline | None:
    """The fork before the port of an operator; None if nothing tells what that was.

    `named` is a folder or a commit; else it is what porter's journal kept before it wrote the port, or the last commit
    if that has no port. Raises PTR433 if there was no port between `named` and now, and PTR063 for no such commit.
    """
    if named is not None:
        baseline = _read_named(checkout, named)
        if not _is_ported(baseline, checkout, op):
            what = f"{op} was no other in {named} than it is now"
            raise PorterError("PTR433", what, hint="Name a fork or a commit in which MPS had its old code, or none.")
        return baseline
    kept = (
        _make_baseline(checkout, {path: _decode(data) for path, data in contents.items()}, "porter's journal")
        for contents in journal.read_earlier(checkout.root)
    )
    return next((each for each in kept if _is_ported(each, checkout, op)), None)


def _is_ported(baseline: Baseline, checkout: Checkout, op: str) -> bool:
    """Whether a row of an operator had other code on MPS, or none, and has native code now."""
    try:
        before, now = Operator.read(baseline.fork, op), Operator.read(checkout, op)
    except PorterError:
        return False
    graphs = {row.function.name for row in before.served if row.builds_graph}
    native = {row.function.name for row in before.served} - graphs
    return any(not row.builds_graph and row.function.name not in native for row in now.served)


def _read_named(checkout: Checkout, named: str) -> Baseline:
    folder = Path(named)
    if not (folder / NATIVE_FUNCTIONS).is_file():
        raise PorterError("PTR433", f"{named} is no fork", hint="Name a folder.")
    other = Checkout(folder, "--baseline")
    earlier: dict[str, str | None] = {}
    for path in sorted({*_list_files(folder), *_list_files(checkout.root)}):
        there, here = other.exists(path), checkout.exists(path)
        if not (there and here and _is_same(folder / path, checkout.root / path)):
            earlier[path] = other.read(path) if there else None
    return _make_baseline(checkout, earlier, named)


def _list_files(root: Path) -> Iterator[str]:
    for folder in _FOLDERS:
        for base, _, names in os.walk(root / folder):
            yield from (Path(base, name).relative_to(root).as_posix() for name in names)
    yield from (path for path in _FILES if (root / path).is_file())


def _is_same(one: Path, other: Path) -> bool:
    return one.stat().st_size == other.stat().st_size and one.read_bytes() == other.read_bytes()


def _make_baseline(checkout: Checkout, earlier: Mapping[str, str | None], origin: str) -> Baseline:
    texts = {path: checkout.read(path) if checkout.exists(path) else "" for path in earlier}
    differing = {path: text for path, text in earlier.items() if (text or "") != texts[path]}
    return Baseline(checkout.as_before(differing), {path: texts[path] for path in differing}, origin)


def _decode(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")
