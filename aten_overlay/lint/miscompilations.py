"""What Apple's compiler is known to get wrong: a table, and the kernels in which its source patterns occur.

Each row is a public report. What a source cannot tell has no pattern, and is listed in docs/lint.md alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from aten_overlay.lint.finding import SIMDGROUP, Finding
from aten_overlay.lint.rules import Body, bodies, find_divided_returns
from aten_overlay.metal.source.declarations import Unit
from aten_overlay.metal.source.reach import find_reached

# Tokens at which a pattern occurs.
Pattern = Callable[[Body, set[str]], Iterator[int]]


@dataclass(frozen=True)
class Miscompilation:
    """A report: what goes wrong, who says so (`source`), and how to avoid it. `compilers` are those it was seen
    with, as far as the report tells."""

    what: str
    source: str
    hint: str
    compilers: str = ""
    pattern: Pattern | None = None


def _one_simdgroup(body: Body, reached: set[str]) -> Iterator[int]:
    """The kernel's name, where it multiplies tiles and its threadgroups are declared as one simdgroup."""
    products = {"simdgroup_multiply", "simdgroup_multiply_accumulate"}
    if body.declared == SIMDGROUP and products & reached:
        yield body.kernel.opening - 1


def _barrier_of_one_simdgroup(body: Body, _reached: set[str]) -> Iterator[int]:
    """Where threads return before a barrier, in a threadgroup that is declared as one simdgroup."""
    if 0 < body.declared <= SIMDGROUP:
        yield from find_divided_returns(body)


def _copied_index(body: Body, reached: set[str]) -> Iterator[int]:
    """The kernel's name, where calls that the source writes out make many copies of a function that indexes so."""
    source = body.source
    texts: dict[str, list[str]] = {}
    for entry in body.unit.entries:
        declaration = entry.declaration
        for name in reached.intersection(entry.names or ()) if declaration.body >= 0 else ():
            if declaration is not body.kernel.declaration:
                texts.setdefault(name, []).extend(source.tokens[declaration.body : declaration.end])
    indexing = [name for name, text in texts.items() if _INDEXED.search(" ".join(text))]
    if not indexing:
        return
    copies = Counter[str]()
    calls = [(source.tokens[body.kernel.declaration.body : body.kernel.declaration.end], 1)]
    for text, times in calls:  # grows as calls are followed
        called = (word for word, after in pairwise(text) if word in texts and after == "(")
        for name, count in Counter(called).items():
            copies[name] += times * count
            if copies[name] < _MOST_COPIES and len(calls) < _MOST_FOLLOWED:
                calls.append((texts[name], times * count))
    if any(copies[name] >= _MOST_COPIES for name in indexing):
        yield body.kernel.opening - 1


def _reinterpreted_constant(body: Body, _reached: set[str]) -> Iterator[int]:
    """`as_type<half>(bfloat(1.0f))`, also with a cast as C has it."""
    tokens = body.source.tokens
    for i in range(body.kernel.declaration.body, body.kernel.declaration.end):
        if tokens[i] != "as_type" or "(" not in tokens[i : i + 5]:
            continue
        opening = tokens.index("(", i)
        inner = [t for t in tokens[opening + 1 : body.source.match[opening]] if t not in "()"]
        if inner[:1] == ["bfloat"] and len(inner) == 2 and inner[1][0].isdigit():
            yield i


# A local vector, or an array that is as short, and an index into it that is no number.
_INDEXED = re.compile(
    r"\b(?:(?:float|half|u?int|u?short)[234] (\w+)|(?:float|half|u?int|u?short) (\w+) \[ [234] \])"
    r" [;={,].*?\b(?:\1|\2) \[ (?!\d)"
)
_MOST_COPIES = 89  # the report's kernel was right with 88, and wrong with 96
_MOST_FOLLOWED = 1000

TABLE = (
    Miscompilation(
        "rows 4 to 7 of 8x8 tiles come out wrong where threadgroups are declared as exactly one simdgroup",
        "tracel-ai/cubecl#1636 and tracel-ai/cubek#645, September 2026",
        "Declare 64 threads and launch 32, or leave the attribute out.",
        pattern=_one_simdgroup,
    ),
    Miscompilation(
        "a barrier orders nothing where threadgroups are declared as one simdgroup and threads return before it",
        "KhronosGroup/MoltenVK#2711, April 2026, Apple's FB22265690",
        "Declare 33 threads or more, or let all threads get to the barrier.",
        pattern=_barrier_of_one_simdgroup,
    ),
    Miscompilation(
        "the bits of a constant that is converted to bfloat are not those of the bfloat",
        "tinygrad/tinygrad#17015, July 2026",
        "Write the constant's bits as an integer, or convert a value that is no constant.",
        pattern=_reinterpreted_constant,
    ),
    Miscompilation(
        "products of tensors with more than 8 rows are wrong",
        "ml-explore/mlx#3586 and #3593, May 2026",
        "Compile the library with another toolchain, or without the kernels for Metal 4.",
        compilers="metalfe-32023.883 (Xcode 26.5)",
    ),
    Miscompilation(
        "a run-time index into a local vector reads 0.0 in kernels with more than about 90 inlined copies of the code",
        "Genesis-Embodied-AI/quadrants#835",
        "Split the kernel, or keep the function from being inlined.",
        pattern=_copied_index,
    ),
)


def find_miscompiled(unit: Unit) -> Iterator[Finding]:
    """PTR294: a kernel with the pattern of a known miscompilation."""
    for body in bodies(unit):
        reached = find_reached(unit, body.instance)
        for row in TABLE:
            for token in row.pattern(body, reached) if row.pattern else ():
                what = f"Apple's compiler is known to get this wrong: {row.what} ({row.source})"
                yield Finding("PTR294", body.instance.host_name, what, body.place(token), row.hint)
