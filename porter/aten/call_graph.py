"""The functions that an implementation calls, in its own file and in files whose headers it includes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from porter.core.checkout import Checkout
from porter.core.layout import OPERATIONS, spell_include
from porter.languages.source import Source

_INCLUDE = re.compile(rf"^#include <{spell_include(OPERATIONS)}/(\w+)\.h>", re.M)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")


@lru_cache(maxsize=256)
def parse_source(path: str, text: str) -> Source:
    """Lexes a file. The same text is only lexed once."""
    return Source.parse(path, text)


def read_reachable_text(checkout: Checkout, path: str, text: str) -> Iterator[str]:
    """Yields part of a file's text, then the text of every function it calls, directly or not, with all overloads."""
    pending, seen = [(path, text)], set[tuple[str, int]]()
    while pending:
        file, body = pending.pop()
        yield body
        words = set(_WORD.findall(body))
        for reachable in _find_reachable_files(checkout, file):
            file_text = checkout.read(reachable)
            functions = parse_source(reachable, file_text).functions_by_name
            for function in (each for name in sorted(words & functions.keys()) for each in functions[name]):
                if (reachable, function.start) not in seen:
                    seen.add((reachable, function.start))
                    pending.append((reachable, file_text[function.start : function.end]))


def _find_reachable_files(checkout: Checkout, path: str) -> list[str]:
    """Returns a file, the operator headers it includes, directly or not, and the `.mm` files of those headers."""
    found, pending = [path], [path]
    while pending:
        for name in _INCLUDE.findall(checkout.read(pending.pop())):
            siblings = (f"{OPERATIONS}/{name}{suffix}" for suffix in (".h", ".mm"))
            new = [reachable for reachable in siblings if reachable not in found and checkout.exists(reachable)]
            found += new
            pending += new
    return found
