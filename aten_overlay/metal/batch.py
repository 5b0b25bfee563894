"""Compiles many kernels of one source: several to a unit, several units at once, and each kernel's error its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import DEFAULT, Options, compile_kernels

UNIT = 16  # kernels: a larger one saves no more of the fixed cost of a unit than it loses when one kernel is wrong

Result = tuple[str, Path | OverlayError]


def compile_many(
    source: Path | str, names: Sequence[str], options: Options = DEFAULT, unit: int = UNIT
) -> Iterator[Result]:
    """Each name with the library that holds its kernel, or with why that does not compile; in the order of `names`."""
    parts = [names[i : i + unit] for i in range(0, len(names), unit)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for results in pool.map(lambda part: list(_compile(source, part, options)), parts):
            yield from results


def _compile(source: Path | str, names: Sequence[str], options: Options) -> Iterator[Result]:
    """Compiles a unit; where that fails, its halves."""
    try:
        path = compile_kernels(source, names, options)
    except OverlayError as error:
        if len(names) == 1:
            yield names[0], error
            return
        half = len(names) // 2
        yield from _compile(source, names[:half], options)
        yield from _compile(source, names[half:], options)
    else:
        yield from ((name, path) for name in names)
