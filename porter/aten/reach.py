"""What an implementation reaches: the functions it calls, in its file and in those whose headers that file includes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from porter.core.checkout import Checkout
from porter.core.layout import OPERATIONS, included_as
from porter.languages.source import Source

_INCLUDE = re.compile(rf"^#include <{included_as(OPERATIONS)}/(\w+)\.h>", re.M)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")


@lru_cache(maxsize=256)
def parsed(path: str, text: str) -> Source:
    """A lexed file; the same text is lexed once."""
    return Source.parse(path, text)


def reached_text(checkout: Checkout, path: str, text: str) -> Iterator[str]:
    """A text of a file, and the text of every function that it calls, directly or not; all overloads of each."""
    pending, seen, places = [(path, text)], set[tuple[str, int]](), dict[str, list[str]]()
    while pending:
        at, told = pending.pop()
        yield told
        words = set(_WORD.findall(told))
        if at not in places:
            places[at] = _places(checkout, at)
        for place in places[at]:
            held = checkout.read(place)
            functions = parsed(place, held).functions_by_name
            for function in (each for name in sorted(words & functions.keys()) for each in functions[name]):
                if (place, function.start) not in seen:
                    seen.add((place, function.start))
                    pending.append((place, held[function.start : function.end]))


def _places(checkout: Checkout, path: str) -> list[str]:
    """A file, the operator headers that it includes, directly or not, and the files beside those headers."""
    found, pending, named = [path], [path], set[str]()
    while pending:
        for name in _INCLUDE.findall(checkout.read(pending.pop())):
            if name in named:
                continue
            named.add(name)
            beside = (f"{OPERATIONS}/{name}{suffix}" for suffix in (".h", ".mm"))
            new = [place for place in beside if place != path and checkout.exists(place)]
            found += new
            pending += new
    return found
