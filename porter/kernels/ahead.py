"""Compiles all kernels that a script calls for CUDA devices, without running any."""

from __future__ import annotations

from collections.abc import Iterator

from porter.kernels.cuda import compiling_ahead
from porter.kernels.script import Case, Script


def compile_script(script: Script) -> int:
    """Compiles what the cases of a script and its benchmark call, in both tiers. How many sources these were."""
    with compiling_ahead() as sources:
        for case in _list_cases(script):
            values = script.values(case)
            for stage in script.stages:
                for function in filter(None, (stage.simple, stage.run)):
                    results = stage.results(function, values)
                values |= results
    return len(sources)


def _list_cases(script: Script) -> Iterator[Case]:
    yield from script.cases("cpu")
    for size in script.benchmark:
        for dtype in script.dtypes[:2]:
            yield Case(size, dtype, device="cpu")
