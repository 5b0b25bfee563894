"""Results of public Metal kernels against numpy's and torch's, in float64.

    python tools/corpora_results.py FOLDER [--include DIR]... [--only GLOB] [--quick]

FOLDER is searched for the `.metal` files of MLX and ggml. Each kernel runs twice: as it would by default, and with the
order of its lanes shuffled. Prints a row for each: whether its threadgroups ran in lockstep, and the largest difference
from what is expected, relative to the largest value expected, of both runs. `--quick` compiles for one call. With
$PORTER_SANITIZE the sanitizer watches every launch, and what it finds is a kernel's error. Ends with
1 where a result is wrong or a kernel of a file that was found did not compile or run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path

import numpy as np

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import DEFAULT, QUICK, Options, function_constants
from aten_overlay.metal.launch import Library
from aten_overlay.metal.sanitizer.checks import select
from references.case import Array, Case, find_error
from references.mlx import elementwise
from references.mlx_rows import rows
from references.products import products
from shared.arguments import parser
from shared.metal_batch import compile_many


@dataclass(frozen=True)
class Result:
    """How far a kernel's two runs were off; `error` is why it did not run."""

    case: Case
    lockstep: bool = False
    default: float = float("inf")
    shuffled: float = float("inf")
    error: str = ""

    @property
    def right(self) -> bool:
        """Whether both runs were right."""
        return not self.error and max(self.default, self.shuffled) <= self.case.tolerance


def main() -> int:
    given = parser(__doc__)
    given.add_argument("folder", type=Path, help="searched for .metal files")
    given.add_argument("--include", type=Path, action="append", default=[], help="a folder of headers")
    given.add_argument("--only", default="*", help="kernels to take, by a pattern of their name")
    given.add_argument("--quick", action="store_true", help="compile for one call")
    options = given.parse_args()
    how = Options(include=tuple(options.include), optimization=QUICK if options.quick else DEFAULT.optimization)
    how = replace(how, sanitize=select())
    cases = [c for c in (*elementwise(), *rows(), *products()) if fnmatch(c.kernel, options.only)]
    results = []
    print(f"{'kernel':70} {'lockstep':8} {'default':>9} {'shuffled':>9} {'limit':>7}", flush=True)
    for result in find_results(options.folder, cases, how):
        results.append(result)
        print(_row(result), flush=True)
    print(f"{sum(r.right for r in results)} of {len(results)} kernels right")
    return int(not all(r.right for r in results))


def find_results(folder: Path, cases: Sequence[Case], options: Options) -> Iterator[Result]:
    """The result of each case whose file is there."""
    for (file, constants), grouped in groupby(cases, lambda c: (c.file, c.constants)):
        path = next(folder.rglob(file), None)
        if path is not None:
            how = replace(options, include=(path.parent, *options.include), constants=constants)
            yield from _run_all(path, list(grouped), how)


def _run_all(path: Path, cases: Sequence[Case], options: Options) -> Iterator[Result]:
    try:
        known = {c.name: c.index for c in function_constants(path, options)}
        constants = tuple((known.get(str(k), k), v) for k, v in options.constants)
        found = dict(compile_many(path, [c.kernel for c in cases], replace(options, constants=constants)))
    except OverlayError as error:
        yield from (Result(c, error=str(error).splitlines()[0]) for c in cases)
        return
    for case in cases:
        library = found[case.kernel]
        if isinstance(library, OverlayError):
            yield Result(case, error=str(library).splitlines()[0])
        else:
            yield _run(case, Library(library))


def _run(case: Case, library: Library) -> Result:
    try:
        default, shuffled = (find_error(_call(case, library, seed), case) for seed in (None, 1))
    except OverlayError as error:
        return Result(case, error=str(error).splitlines()[0])
    return Result(case, library.runs_in_lockstep(case.kernel), default, shuffled)


def _call(case: Case, library: Library, shuffle: int | None) -> Array:
    """What the kernel writes into memory that was full of NaN, or of ones."""
    out = np.empty_like(case.buffers[case.output])
    out.view(np.uint8).fill(0xFF)
    buffers = [out if n == case.output else b for n, b in enumerate(case.buffers)]
    library.run(case.kernel, buffers, case.grid, case.group, threadgroup_bytes=case.shared, shuffle=shuffle)
    return out


def _row(result: Result) -> str:
    case = result.case
    if result.error:
        return f"{case.kernel:70} {result.error}"
    lockstep = "yes" if result.lockstep else "-"
    verdict = "" if result.right else " WRONG"
    return f"{case.kernel:70} {lockstep:8} {result.default:9.1e} {result.shuffled:9.1e} {case.tolerance:7.0e}{verdict}"


if __name__ == "__main__":
    sys.exit(main())
