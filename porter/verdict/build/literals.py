"""The numbers at which a kernel may branch: in functors, in the functions they call, and in ATen's CPU kernels."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

from porter.core.errors import PorterError
from porter.core.layout import METAL_HEADERS
from porter.cpu.helpers import find_headers
from porter.cpu.kernels import find_registered_kernel
from porter.languages.brackets import find_closing_end
from porter.languages.definitions import find_definitions
from porter.languages.lexer import strip_comments
from porter.verdict.build.tree import Tree
from porter.verdict.result import VerifyTarget

MOST = 16
MOST_LOOPS = 128.0
_NUMBER = r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d{1,2})?(?=[fFhH]?\b|\B)(?!x)"
_LITERAL = re.compile(_NUMBER)
# A number that something is compared with, bounded by or called, through casts: `x > scalar_t(20)`, `min(x, 6.0f)`.
_COMPARED = (
    re.compile(rf"(?:\s[<>]=?|[=!]=)\s*(?:[\w:]+(?:<\w+>)?[({{]\s*)*-?\s*({_NUMBER})"),
    re.compile(rf"({_NUMBER})[fFhH]?\s*[)}}]*\s*(?:[<>]=?\s|[=!]=)"),
    re.compile(rf"\bconst(?:expr)?\s+\w+\s+\w+\s*(?:=\s*|[{{(]\s*)(?:[\w:]+[({{]\s*)*-?\s*({_NUMBER})[fFhH]?[\s)}}]*;"),
)
_BOUNDED = re.compile(r"\b(?:f?min|f?max|clamp)(?:imum|<\w+>)?\(")
_CALL = re.compile(r"\b(?!operator\b)(\w+)(?:<[\w:, ]+>)?\(")
# The name that a loop's counter is compared with.
_LOOP = re.compile(r"\bfor \([^;]*;[^;]*?\w <=? (\w+)\b[^;]*;")
_DEPTH = 3

# Gives the text of a function, `""` for one that is not among the sources.
_Find = Callable[[str], str]


def literals(tree: Tree, target: VerifyTarget) -> tuple[float, ...]:
    """Numbers but 0 and 1, those that something is compared with first; of the functions called, no others."""
    functors = [text for path in tree.kernel_files() for text in _functors(tree.read(path), target.kernels)]
    called = [text for functor in functors for text in _reach(functor, lambda name: _in_metal(tree, name))]
    kernels = [text for stub in target.stubs for text in _cpu_kernels(tree, stub)]
    plain = [number for text in functors for number in _LITERAL.findall(text)]
    compared = [number for text in (*functors, *kernels, *called) for number in _compared(text)]
    found = dict.fromkeys(float(each) for each in (*compared, *plain))
    return tuple(each for each in found if each not in (0, 1))[:MOST]


def largest_count(tree: Tree, target: VerifyTarget) -> float:
    """The largest number to test with: one that a loop can count to, if a kernel or a function that it calls loops up
    to the value of an argument of 64 bits.
    """
    functors = [text for path in tree.kernel_files() for text in _functors(tree.read(path), target.kernels)]
    called = (text for functor in functors for text in _reach(functor, lambda name: _in_metal(tree, name)))
    counts = (re.search(rf"\b(?:int64_t|long) {bound}\b", text) for text in called for bound in _LOOP.findall(text))
    return MOST_LOOPS if any(counts) else math.inf


def _functors(text: str, kernels: Sequence[str]) -> Iterator[str]:
    for name in kernels:
        start = f"struct {name}_functor"
        body = start in text and re.search(rf"^{re.escape(start)}\b.*?^\}};", text, re.M | re.S)
        if body:
            yield strip_comments(body[0])


def _compared(text: str) -> Iterator[str]:
    for pattern in _COMPARED:
        yield from pattern.findall(text)
    for call in _BOUNDED.finditer(text):
        yield from _LITERAL.findall(text[call.end() : find_closing_end(text, call.end() - 1)])


def _reach(text: str, find: _Find, seen: set[str] | None = None, depth: int = 0) -> Iterator[str]:
    """The texts of the functions that a text calls, and of those that these call."""
    seen = set() if seen is None else seen
    for name in dict.fromkeys(_CALL.findall(text)) if depth < _DEPTH else ():
        if name not in seen:
            seen.add(name)
            found = find(name)
            yield found
            yield from _reach(found, find, seen, depth + 1)


def _in_metal(tree: Tree, name: str) -> str:
    return _define(name, ((path, tree.read(path)) for path in (*tree.kernel_files(), *tree.files(METAL_HEADERS, ".h"))))


def _define(name: str, sources: Iterator[tuple[str, str]]) -> str:
    """All definitions of a function in the first source that has one."""
    for path, text in sources:
        # A plain search is many times faster, and in most sources finds nothing.
        if f"{name}(" in text and re.search(rf"(?<!return) (?<!= ){re.escape(name)}\(", text):
            found = find_definitions(path, text, name)
            if found:
                return strip_comments("\n".join(each.text for each in found))
    return ""


def _cpu_kernels(tree: Tree, stub: str) -> Iterator[str]:
    """The CPU kernel of a stub and what it calls; nothing where the fork has none that can be found."""
    checkout = tree.unedited()
    try:
        kernel, _ = find_registered_kernel(checkout, stub)
        headers = find_headers(checkout, kernel.path)
    except PorterError:
        return
    text = strip_comments(kernel.text)
    yield text
    paths = (kernel.path, *headers)
    yield from _reach(text, lambda name: _define(name, ((path, checkout.read(path)) for path in paths)))
