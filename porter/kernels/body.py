"""Reads the body of a kernel: the words in it, and subscripts with several indices."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

_SKIPPED = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*|(?<=\.\.\.)[A-Za-z_]\w*")
_MEMBER_OR_WORD = re.compile(r"[A-Za-z_]\w*")
_OPENING, _CLOSING = "([{", ")]}"


@lru_cache(maxsize=256)
def words(text: str) -> frozenset[str]:
    """Every identifier outside comments and literals."""
    return frozenset(_MEMBER_OR_WORD.findall(blank_comments(text)))


def blank_comments(text: str) -> str:
    """`text` with blanks instead of comments and literals, line by line the same."""
    return _SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def is_declared(text: str, word: str) -> bool:
    """Whether `text` seems to declare `word` itself, or to call it."""
    code = blank_comments(text)
    value = rf"(?:\b(?!return\b|else\b|case\b)[A-Za-z_]\w*|>)\s+{word}\s*[=;,)\[{{]"
    pointer = rf"[\w>]\s*[*&]+\s*{word}\s*=(?!=)"
    return re.search(rf"{value}|{pointer}|\b{word}\s*\(|#\s*define\s+{word}\b", code) is not None


def subscripts(text: str, names: Collection[str]) -> Iterator[tuple[str, int, int, int]]:
    """Each `name[...]` of `names`: the name, where its bracket opens and closes, and how many indices it holds."""
    code = blank_comments(text)
    for found in re.finditer(r"(?<![\w.])([A-Za-z_]\w*)\s*\[", code):
        if found[1] in names:
            close, count = _measure(code, found.end() - 1)
            yield found[1], found.end() - 1, close, count


def _measure(code: str, opening: int) -> tuple[int, int]:
    """Where the bracket at `opening` closes, and how many indices stand between; the end of the text if nowhere."""
    depth, count = 0, 1
    for at in range(opening, len(code)):
        if code[at] in _OPENING:
            depth += 1
        elif code[at] in _CLOSING:
            depth -= 1
            if depth == 0:
                return at, count
        elif code[at] == "," and depth == 1:
            count += 1
    return len(code), count


def call_subscripts(text: str, names: Collection[str]) -> str:
    """`text` with `A(i, j)` for `A[i, j]`, which Metal's C++ takes for one index."""
    edited = list(text)
    for _, opening, close, count in subscripts(text, names):
        if count > 1 and close < len(text):
            edited[opening], edited[close] = "(", ")"
    return "".join(edited)


def replace_placeholder(text: str, word: str, metal: str) -> str:
    """`text` with `metal` for `word`, also where the word is part of a vector type: `TYPE4`."""
    return re.sub(rf"\b{re.escape(word)}(?=[234]?\b)", metal, text)
