"""Host files that a plan may break though its operator does without them.

They are those that the plan edits, and those that name a function which the plan takes away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from porter.core.layout import MPS, OPERATIONS
from porter.languages.identifiers import contains_identifier
from porter.verdict.build.sources import list_defined
from porter.verdict.build.tree import Tree

_CODE = (".mm", ".cpp")


def find_bystanders(tree: Tree, built: Iterable[str]) -> tuple[str, ...]:
    """The host files of a plan's tree beyond those that are built which may not compile because of the plan."""
    known, gone = set(built), find_gone(tree)
    others = (path for path in _list_code(tree) if path not in known)
    return tuple(path for path in others if path in tree.texts or _mentions(tree.read(path), gone))


def find_gone(tree: Tree) -> frozenset[str]:
    """The functions that a plan takes away: no edited file defines them any more, or no row names them."""
    before = {path: tree.before(path) for path in tree.texts if tree.in_checkout(path)}
    return frozenset(_list_defined(before)) - frozenset(_list_defined(tree.texts))


def _list_code(tree: Tree) -> list[str]:
    return [*tree.files(MPS, *_CODE), *tree.files(OPERATIONS, *_CODE)]


def _mentions(text: str, names: Iterable[str]) -> bool:
    return any(contains_identifier(text, name) for name in names)


def _list_defined(texts: Mapping[str, str]) -> Iterator[str]:
    for path, text in texts.items():
        yield from list_defined(path, text)
