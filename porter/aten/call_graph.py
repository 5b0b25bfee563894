"""The functions that an implementation calls, in its own file and in files whose headers it includes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from porter.core.checkout import Checkout
from porter.core.layout import OPERATIONS, spell_include
from porter.languages.directives import read_includes
from porter.languages.identifiers import list_words
from porter.languages.source import parse_source

_FOLDER = f"{spell_include(OPERATIONS)}/"


def read_reachable_text(checkout: Checkout, path: str, text: str) -> Iterator[str]:
    """A text of a file, and the text of every function that it calls, directly or not; all overloads of each."""
    pending, seen, places = [(path, text)], set[tuple[str, int]](), dict[str, list[str]]()
    while pending:
        file, body = pending.pop()
        yield body
        words = list_words(body)
        if file not in places:
            places[file] = _find_reachable_files(checkout, file)
        for reachable in places[file]:
            file_text = checkout.read(reachable)
            functions = parse_source(reachable, file_text).functions_by_name
            for function in (each for name in sorted(words & functions.keys()) for each in functions[name]):
                if (reachable, function.start) not in seen:
                    seen.add((reachable, function.start))
                    pending.append((reachable, file_text[function.start : function.end]))


@lru_cache(maxsize=256)
def _find_included(text: str) -> tuple[str, ...]:
    """The names of the operator headers that a text includes."""
    paths = (include.path for include in read_includes(text) if include.path.endswith(".h"))
    return tuple(path[len(_FOLDER) : -len(".h")] for path in paths if path.startswith(_FOLDER))


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
