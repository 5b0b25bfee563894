"""What the branches of host code have in common, written once: before them, and behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from porter.languages.identifiers import contains_identifier
from porter.languages.liveness import list_declared

_Statement = tuple[str, ...]  # a line, or those of a block


@dataclass(frozen=True)
class Hoisted:
    """The lines before all branches, those of each, and those behind them."""

    before: tuple[str, ...]
    branches: tuple[tuple[str, ...], ...]
    behind: tuple[str, ...]


def hoist(branches: Sequence[Sequence[str]]) -> Hoisted:
    """Moves the statements that all branches have out of them, if they need nothing of what stays there.

    Only statements of one line move before the branches, of those that a branch has before its first block; only blocks
    move behind them, of those that it has after the block of its launch.
    """
    texts = [list(_split(lines)) for lines in branches]
    heads = [list(takewhile(_is_line, each)) for each in texts]
    before = _keep_independent(heads)
    tails = [_find_tail(each) for each in texts]
    inside = [[each for each in text if each not in before] for text in texts]
    made = {name for text in inside for each in text for name in list_declared("\n".join(each))}
    behind = [each for each in tails[0] if all(each in tail for tail in tails[1:]) and not _uses(each, made)]
    left = (tuple(line for each in text if each not in behind for line in each) for text in inside)
    return Hoisted(tuple(line for (line,) in before), tuple(left), tuple(line for each in behind for line in each))


def _split(lines: Sequence[str]) -> Iterator[_Statement]:
    """The statements of some code, each with the comments before it."""
    held: list[str] = []
    depth = 0
    for line in lines:
        held.append(line)
        depth += line.count("{") - line.count("}")
        if depth == 0 and not line.startswith("//"):
            yield tuple(held)
            held = []
    if held:
        yield tuple(held)


def _is_line(statement: _Statement) -> bool:
    return len(statement) == 1 and statement[0].endswith(";")


def _find_tail(statements: Sequence[_Statement]) -> list[_Statement]:
    """The blocks that some code ends with, behind that of its launch."""
    blocks = list(takewhile(lambda each: not _is_line(each), reversed(statements)))
    return blocks[::-1][1:]


def _keep_independent(heads: Sequence[Sequence[_Statement]]) -> list[_Statement]:
    """The statements that are in all heads and use no variable that another statement of a head declares."""
    shared = [each for each in heads[0] if all(each in head for head in heads[1:])]
    while True:
        others = (each for head in heads for each in head if each not in shared)
        made = {name for (line,) in others for name in list_declared(line)}
        kept = [each for each in shared if not _uses(each, made)]
        if kept == shared:
            return kept
        shared = kept


def _uses(statement: _Statement, names: set[str]) -> bool:
    return any(contains_identifier(line, name) for line in statement for name in names)
