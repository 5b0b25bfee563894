"""Deletes the host files of which a port leaves nothing but includes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.languages.lexer import lex
from porter.languages.source import parse_source

_EMPTY_NAMESPACE = re.compile(r"(?:inline )?namespace (?:\w+ (?::: \w+ )*)?\{ \} ?")


def delete_empty_files(checkout: Checkout, files: Iterable[str]) -> Iterator[Edit]:
    """The edits that leave no text in those of some host files that define nothing: such a file is deleted."""
    for file in sorted(set(files)):
        text = checkout.read(file)
        if file.endswith(".mm") and text and defines_nothing(file, text):
            yield Edit(file, 0, len(text), "")


def defines_nothing(file: str, text: str) -> bool:
    """Whether a file has nothing but comments, directives that include no code, and namespaces without anything."""
    if any(token.text == ";" for token in lex(text)):  # stops early in most files
        return False
    source = parse_source(file, text)
    if not all(include.path.endswith(".h") for include in source.includes()):
        return False
    code, before = " ".join(token.text for token in source.code), ""
    while code != before:
        code, before = _EMPTY_NAMESPACE.sub("", code), code
    return not code
