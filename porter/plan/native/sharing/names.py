"""The name of a function that several call, of what their names have in common, as the fork's files name such ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import reduce

_MARKS = ("mps", "impl", "template")  # of what a function is, not of what it computes
_DIRECTIONS = ("forward", "backward", "out")
_ENDINGS = ("_mps_impl", "_mps_template")
_WORD = re.compile(r"\d+d(?![a-z0-9])|[a-zA-Z0-9]+?(?=\d+d(?![a-z0-9])|_|$)")


def list_shared_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names for what these functions call, the best first."""
    heads = [_list_words(name) for name in names]
    shared = reduce(_keep_common, heads)
    if not any(re.search(r"[a-z]{2}", word) for word in shared if word not in _DIRECTIONS):
        own = dict.fromkeys(_join([word for word in head if not _is_incidental(word, shared)]) for head in heads)
        shared = [*own, *shared]
    base = _join(shared)
    return tuple(f"{base}{ending}" for ending in _ENDINGS) if re.match("[a-z]", base) else ()


def _list_words(name: str) -> list[str]:
    words = [word for word in _WORD.findall(name) if word not in _MARKS]
    return [*(word for word in words if word not in _DIRECTIONS), *(word for word in _DIRECTIONS if word in words)]


def _is_incidental(word: str, shared: Sequence[str]) -> bool:
    """Whether a word does not tell a function from others: all of them have it, or it counts dimensions."""
    return word in shared or re.fullmatch(r"\d+d", word) is not None


def _keep_common(one: list[str], other: list[str]) -> list[str]:
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return [word for block in blocks for word in one[block.a : block.a + block.size]]


def _join(words: Sequence[str]) -> str:
    """Words as one name, in which a number of dimensions follows its word at once."""
    return re.sub(r"_(?=\d+d(?:_|$))", "", "_".join(words))
