"""Kernels that add to floating-point numbers atomically: their sums depend on the order in which threads run.

PyTorch wants the host code of such a kernel to call `alertNotDeterministic` (docs of
torch.use_deterministic_algorithms).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from porter.languages.brackets import find_closing_end
from porter.languages.identifiers import contains_identifier
from porter.languages.lexer import strip_comments
from porter.verdict.build.tree import Tree
from porter.verdict.result import VerifyTarget

_FUNCTION = re.compile(r"\b(?!(?:if|for|while|switch|return)\b)(\w+(?:##\w+)*)\s*\(")
_OPENED = re.compile(r"\s*(?:const\s*)?\{")
_HELPER = re.compile(
    r"\bAtomicType(?:_t)?\s*<(?!\s*(?:int|uint|long|ulong|short|char|uchar|bool)\s*>)[^;]*\batomic_add\b"
)
_ADDS = re.compile(r"\batomic_(?:fetch_add|compare_exchange_weak)_explicit\s*\(")
_FLOAT = re.compile(r"\batomic(?:_float\b|\s*<\s*(?!(?:int|uint|long|ulong|bool)\b)\w+\s*>)")


def find_adding_kernels(tree: Tree, target: VerifyTarget) -> tuple[str, ...]:
    """The kernels of a target whose functions add to floating-point numbers atomically, or call one that does."""
    texts = [strip_comments(tree.read(path)) for path in tree.kernel_files()]
    found = [(text, _find_adding(dict(_list_functions(text)))) for text in texts if "atomic" in text]
    return tuple(name for name in target.kernels if any(_names(name, adding, text) for text, adding in found))


def _names(kernel: str, adding: frozenset[str], text: str) -> bool:
    """Whether a kernel is among functions that add, or is one that a macro of the text may make of such a function."""
    is_pasted = any("##" in name for name in adding)
    return kernel in adding or (is_pasted and contains_identifier(text, kernel))


def _find_adding(bodies: Mapping[str, str]) -> frozenset[str]:
    """The names of functions whose bodies add to floats atomically, and of those that call them."""
    adding = {name for name, body in bodies.items() if _adds(body)}
    while True:
        calling = {name for name, body in bodies.items() if adding & set(_FUNCTION.findall(body))} - adding
        if not calling:
            return frozenset(adding)
        adding |= calling


def _adds(body: str) -> bool:
    return bool(_HELPER.search(body) or (_ADDS.search(body) and _FLOAT.search(body)))


def _list_functions(text: str) -> Iterator[tuple[str, str]]:
    """The name of each function that a text defines, and its parameters with its body."""
    for match in _FUNCTION.finditer(text):
        closed = find_closing_end(text, match.end() - 1)
        opened = _OPENED.match(text, closed)
        if opened:
            yield match[1], text[match.end() : find_closing_end(text, opened.end() - 1)]
