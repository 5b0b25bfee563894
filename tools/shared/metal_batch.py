"""Compiles many kernels of one source: several to a unit, several units at once, and each kernel's error its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import QUICK, Options, compile_text, preprocess

UNIT = 64  # kernels: a larger one saves little more of what a unit costs by itself, and loses more when one is wrong

SOON = Options(optimization=QUICK)
Result = tuple[str, Path | OverlayError]


def compile_many(
    source: Path | str, names: Sequence[str], options: Options = SOON, unit: int = UNIT
) -> Iterator[Result]:
    """Each name with the library that holds its kernel, or with why that does not compile; in the order of `names`.

    Raises PTR100 (no compiler) or PTR101 (preprocessing fails).
    """
    text = preprocess(source, options)
    cores = os.cpu_count() or 1
    unit = max(min(unit, -(-len(names) // cores)), 1)
    parts = [names[i : i + unit] for i in range(0, len(names), unit)]
    with ThreadPoolExecutor(cores) as pool:
        for results in pool.map(lambda part: list(_compile(text, part, options)), parts):
            yield from results


def _compile(text: str, names: Sequence[str], options: Options) -> Iterator[Result]:
    """Compiles a unit; where that fails, its halves."""
    try:
        path = compile_text(text, names, options)
    except OverlayError as error:
        if len(names) == 1:
            yield names[0], error
            return
        half = len(names) // 2
        yield from _compile(text, names[:half], options)
        yield from _compile(text, names[half:], options)
    else:
        yield from ((name, path) for name in names)
