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


_MOST_FILES = 256
_latest: dict[str, Source] = {}  # the text of a file that was lexed last: the next is mostly an edit of it


@lru_cache(maxsize=_MOST_FILES)
def parse_source(path: str, text: str) -> Source:
    """Lexes a file. The same text is only lexed once, and of another version only what differs."""
    before = _latest.pop(path, None)
    _latest[path] = found = before.edit(text) if before else Source.parse(path, text)
    if len(_latest) > _MOST_FILES:
        del _latest[next(iter(_latest))]
    return found


def read_reachable_text(checkout: Checkout, path: str, text: str) -> Iterator[str]:
    """A text of a file, and the text of every function that it calls, directly or not; all overloads of each."""
    pending, seen, places = [(path, text)], set[tuple[str, int]](), dict[str, list[str]]()
    while pending:
        file, body = pending.pop()
        yield body
        words = _list_words(body)
        if file not in places:
            places[file] = _find_reachable_files(checkout, file)
        for reachable in places[file]:
            file_text = checkout.read(reachable)
            functions = parse_source(reachable, file_text).functions_by_name
            for function in (each for name in sorted(words & functions.keys()) for each in functions[name]):
                if (reachable, function.start) not in seen:
                    seen.add((reachable, function.start))
                    pending.append((reachable, file_text[function.start : function.end]))


@lru_cache(maxsize=4096)
def _list_words(text: str) -> frozenset[str]:
    """The identifiers of a function, which many operators may call."""
    return frozenset(_WORD.findall(text))


@lru_cache(maxsize=_MOST_FILES)
def _find_included(text: str) -> tuple[str, ...]:
    """The names of the operator headers that a text includes."""
    return tuple(_INCLUDE.findall(text))


def _find_reachable_files(checkout: Checkout, path: str) -> list[str]:
    """A file, the operator headers that it includes, directly or not, and the files beside those headers."""
    known = frozenset(checkout.list(OPERATIONS, ".h", ".mm"))
    found, pending, named = [path], [path], set[str]()
    while pending:
        for name in _find_included(checkout.read(pending.pop())):
            if name in named:
                continue
            named.add(name)
            siblings = (f"{OPERATIONS}/{name}{suffix}" for suffix in (".h", ".mm"))
            new = [reachable for reachable in siblings if reachable != path and reachable in known]
            found += new
            pending += new
    return found
