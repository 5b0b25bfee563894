"""Public Metal code, as it stands: how many of its kernels compile, and how many run once on generated arguments.

    python tools/corpora.py FOLDER [--include DIR]... [--define NAME[=VALUE]]... [--link FILE]... [--sample N]
        [--only GLOB] [--skip GLOB] [--seconds N]

FOLDER is searched for `.metal` files, which may include headers of their own folders, of the `--include` folders and
of folders near them that hold what they include, and call functions of the `--link` files, as the files of one Xcode
target may. Each file gets a process of its own, and so does what follows a crash. Prints a row for each file, then
each kernel that failed with the first error. `--sample N` takes every Nth kernel of a file. Function constants get
the first of a few sets of values with which the kernel compiles, and a call the first of a few sets of arguments with
which it ends: results are not looked at. A kernel whose calls fail is compiled once more, with every optimization.
Times are of compiling. Ends with 1 where a kernel failed.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import DEFAULT, QUICK, Options, function_constants, host_names
from aten_overlay.metal.headers import find_include_folders
from aten_overlay.metal.launch import Library, Sampler, Texture
from shared.arguments import parser
from shared.isolation import run_isolated
from shared.metal_batch import UNIT, compile_many
from shared.sparse import Sparse

# Values tried of function constants: of numbers, and of those that are bool.
CONSTANTS = ((1, False), (4, False), (32, True), (0, False))
SECONDS = 300.0
UNIT_OF_OPTIMIZED = 4  # kernels: such a unit takes several times as long
MOST_SHARED = 32768


@dataclass(frozen=True)
class Arguments:
    """How a kernel is called: each eight bytes that it reads are `value`; None stands for an address: there
    is more memory, whose pointers point to itself."""

    value: int | None
    threads: int


# Tried in turn until one suits the kernel: many rely on sizes that fit their threads.
ARGUMENTS = (
    Arguments(1, 64), Arguments(256, 64), Arguments(1, 32), Arguments(1, 1), Arguments(0, 32), Arguments(1, 1024),
    Arguments(4 << 32 | 4, 64), Arguments(None, 64),
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What became of a kernel: `error` is "" where it compiled and ran. `name` is "" for the file itself."""

    name: str
    compiled: bool
    called: bool
    error: str = ""


Compiled = tuple[Outcome, Path | None]


@dataclass(frozen=True)
class Summary:
    """A file's kernels, and the milliseconds of compiling one, on the average: elapsed, and of all cores."""

    path: Path
    outcomes: tuple[Outcome, ...]
    elapsed: float
    worked: float


def main() -> int:
    given = parser(__doc__)
    given.add_argument("folder", type=Path, help="searched for .metal files")
    given.add_argument("--include", type=Path, action="append", default=[], help="a folder of headers")
    given.add_argument("--define", action="append", default=[], help="a macro: NAME, or NAME=VALUE")
    given.add_argument("--link", type=Path, action="append", default=[], help="a file whose functions others call")
    given.add_argument("--sample", type=int, default=1, help="take every Nth kernel")
    given.add_argument("--only", default="*", help="files to take, by a pattern of their path")
    given.add_argument("--skip", default="", help="files to leave out, likewise")
    given.add_argument("--seconds", type=float, default=SECONDS, help="the longest wait for one unit or call")
    options = given.parse_args()
    found = sorted(options.folder.rglob("*.metal"))
    chosen = [
        p
        for p in found
        if fnmatch(str(p), f"*{options.only}*") and not (options.skip and fnmatch(str(p), f"*{options.skip}*"))
    ]
    summaries = []
    print(f"{'file':44} {'kernels':>8} {'compiled':>9} {'called':>7} {'ms each':>8} {'CPU ms':>7}", flush=True)
    for path in chosen:
        include = (path.parent, *options.include, *find_include_folders(path))
        defines = tuple(options.define)
        how = Options(include=include, defines=defines, optimization=QUICK)
        summaries.append(try_file(path, how, options.sample, options.seconds, tuple(options.link)))
        print(_row(path.name, summaries[-1]), flush=True)
    outcomes = [o for s in summaries for o in s.outcomes]
    print(_row("total", _add(summaries)))
    for text, count in Counter(o.error for o in outcomes if o.error).most_common():
        named = next(o.name for o in outcomes if o.error == text)
        print(f"  {count} x {text.strip()} ({named})")
    return int(any(o.error for o in outcomes))


def _row(name: str, summary: Summary) -> str:
    kernels = [o for o in summary.outcomes if o.name]
    compiled, called = sum(o.compiled for o in kernels), sum(o.called for o in kernels)
    times = f"{summary.elapsed:8.0f} {summary.worked:7.0f}"
    return f"{name[:44]:44} {len(kernels):8} {compiled:9} {called:7} {times}"


def _add(summaries: Sequence[Summary]) -> Summary:
    counts = [sum(bool(o.name) for o in s.outcomes) for s in summaries]
    elapsed = sum(s.elapsed * n for s, n in zip(summaries, counts, strict=True)) / max(sum(counts), 1)
    worked = sum(s.worked * n for s, n in zip(summaries, counts, strict=True)) / max(sum(counts), 1)
    return Summary(Path(), tuple(o for s in summaries for o in s.outcomes), elapsed, worked)


def try_file(path: Path, options: Options, sample: int, seconds: float, link: Sequence[Path] = ()) -> Summary:
    """Compiles and calls the kernels of one file, in a process that may crash."""
    start, before = time.perf_counter(), _worked()
    crashed: Compiled = (Outcome("", False, False, "crashed while compiling, or took too long"), None)
    compiled = list(run_isolated(partial(_compile_all, path, options, sample, link), crashed, seconds))
    elapsed, worked = ((n * 1000 / max(len(compiled), 1)) for n in (time.perf_counter() - start, _worked() - before))
    outcomes = _call_each(compiled, seconds)
    failed = frozenset(o.name for o in outcomes if o.compiled and not o.called)
    if failed:
        # What a kernel does without need, such as to read through a null pointer, may be gone once it is optimized.
        optimized = replace(options, optimization=DEFAULT.optimization)
        compiled = list(run_isolated(partial(_compile_all, path, optimized, sample, link, failed), crashed, seconds))
        again = {o.name: o for o in _call_each(compiled, seconds)}
        unknown = f"{again[''].error} with every optimization" if "" in again else ""
        outcomes = [again.get(o.name) or _explain(o, unknown if o.name in failed else "") for o in outcomes]
    return Summary(path, tuple(outcomes), elapsed, worked)


def _explain(outcome: Outcome, more: str) -> Outcome:
    """The outcome, with what else is known of why it failed."""
    return replace(outcome, error=f"{outcome.error}; {more}") if more else outcome


def _call_each(compiled: Sequence[Compiled], seconds: float) -> list[Outcome]:
    """What becomes of each kernel when it is called with one set of arguments after the other."""
    outcomes = [o for o, library in compiled if library is None]
    waiting = [(o, library) for o, library in compiled if library is not None]
    for arguments in ARGUMENTS:
        results = list(_call_in_processes(waiting, arguments, seconds))
        outcomes += [o for o in results if o.called]
        failed = {o.name: o for o in results if not o.called}
        waiting = [(failed[o.name], library) for o, library in waiting if o.name in failed]
    return [*outcomes, *(o for o, _ in waiting)]


def _worked() -> float:
    """The seconds that ended children of this process took of all cores."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _call_in_processes(waiting: Sequence[tuple[Outcome, Path]], given: Arguments, seconds: float) -> Iterator[Outcome]:
    """What becomes of each kernel; what follows one that crashes is called in another process."""
    while waiting:
        lost = Outcome("", True, False, "crashed when called, or did not end")
        results = list(run_isolated(partial(_call_all, waiting, given), lost, seconds))
        if not results[-1].name:
            results[-1] = replace(results[-1], name=waiting[len(results) - 1][0].name)
        yield from results
        waiting = waiting[len(results) :]


def _join(path: Path, link: Sequence[Path]) -> Path | str:
    """The source of a file, after those whose functions it calls."""
    others = [other.resolve() for other in link if other.resolve() != path.resolve()]
    return "".join(f'#include "{each}"\n' for each in (*others, path.resolve())) if others else path


def _compile_all(
    path: Path, options: Options, sample: int, link: Sequence[Path] = (), only: frozenset[str] = frozenset()
) -> Iterator[Compiled]:
    """Compiles every `sample`th kernel of a file, of those in `only` where it is given."""
    source = _join(path, link)
    try:
        names = [n for n in host_names(path, options)[::sample] if not only or n in only]
        constants = function_constants(source, options)
        unit = UNIT if options.optimization == QUICK else UNIT_OF_OPTIMIZED
    except OverlayError as error:
        yield Outcome("", False, False, str(error)), None
        return
    errors: dict[str, str] = {}
    for number, truth in CONSTANTS if constants else CONSTANTS[:1]:
        values = tuple((c.index, truth if c.type == "bool" else number) for c in constants)
        for name, result in compile_many(source, names, replace(options, constants=values), unit):
            if isinstance(result, Path):
                errors.pop(name, None)
                yield Outcome(name, True, False), result
            else:
                errors.setdefault(name, str(result).splitlines()[0])
        names = [n for n in names if n in errors]
        if not names:
            break
    for name, text in errors.items():
        yield Outcome(name, False, False, text), None


def _call_all(waiting: Sequence[tuple[Outcome, Path]], given: Arguments) -> Iterator[Outcome]:
    buffers = [Sparse() for _ in range(31)]
    value = given.value
    if value is None:
        value = (target := Sparse(low=True)).address
        target.fill(value)
    for outcome, path in waiting:
        try:
            _call(Library(path), outcome.name, [b.fill(value) for b in buffers], given.threads)
            yield replace(outcome, called=True, error="")
        except OverlayError as error:
            yield replace(outcome, error=str(error).splitlines()[0])


def _call(library: Library, name: str, buffers: Sequence[Any], most: int) -> None:
    """Runs a kernel over one threadgroup."""
    shared = max(MOST_SHARED - library.threadgroup_bytes(name), 0)
    parts = library.threadgroup_arguments(name)
    sizes = [shared // max(len(parts), 1) // 16 * 16 if i in parts else 0 for i in range(max(parts, default=-1) + 1)]
    threads = min(most, library.thread_limit(name))
    textures = [Texture(np.zeros((4, 8, 8, 4), np.float32), layered=True)] * _count(library.texture_arguments(name))
    samplers = [Sampler()] * _count(library.sampler_arguments(name))
    library.run(
        name, buffers, [threads], [threads], threadgroup_bytes=sizes, textures=textures, samplers=samplers, threads=1,
        shuffle=0,
    )  # fmt: skip


def _count(indices: Sequence[int]) -> int:
    """How many resources have to be bound so that these are."""
    return max(indices, default=-1) + 1


if __name__ == "__main__":
    sys.exit(main())
