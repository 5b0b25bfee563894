"""Reads damaged forks, or damaged Metal, until the time is up: whatever stands there, an answer or a coded error comes.

    python tools/fuzz.py [--seconds N] [--count N] [--seed N] [--metal] [--only NUMBER]

Each tree is the embedded fork with a few files changed in memory, by its number and the seed. It fails on an error
without a code, on more than 5 seconds of computing, and on more than 1 GB of memory. `--only` repeats one number.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import FrameType

from aten_overlay.errors import OverlayError
from aten_overlay.metal.source.declarations import parse
from aten_overlay.metal.source.generate import generate
from aten_overlay.metal.source.lexer import read
from aten_overlay.metal.source.targets import host
from porter.core.cache import digest
from porter.core.checkout import EMBEDDED_FORK, Checkout, Disk, Folder
from porter.core.errors import PorterError
from porter.core.layout import CPU_KERNELS, NATIVE, NATIVE_FUNCTIONS
from porter.plan.planner import plan_operator
from porter.workflows.explain import explain
from porter.workflows.status import Filters, operators
from shared.arguments import parser
from shared.damage import damage

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 5.0
MEMORY = 1 << 30
SEARCHED = ((NATIVE, ".cpp"), (NATIVE, ".h"), (CPU_KERNELS, ".cpp"))
OPERATORS = ("atan2", "erf", "lerp", "logit", "remainder", "sub", "exp", "eq", "neg", "floor_divide", "hypot", "log1p")


class Hang(BaseException):
    """The time of one tree is up. No handler of the code under test catches it."""


@dataclass(frozen=True)
class Failure:
    """A tree that was not read as it should be."""

    number: int
    changed: tuple[str, ...]
    what: str


def run(trees: Callable[[int], tuple[str, Callable[[], None]]], numbers: Iterator[int]) -> Iterator[Failure | str]:
    """What became of each tree: the digest of one that was read or refused, or a failure."""
    for number in numbers:
        named, work = trees(number)
        what = watched(work)
        yield Failure(number, (named,), what) if what else named


def watched(work: Callable[[], None]) -> str:
    """Runs a piece of work and tells what went wrong, if anything."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        work()
    except (PorterError, OverlayError):
        return ""
    except Hang:
        return f"more than {SECONDS:.0f} seconds\n{traceback.format_exc(-12)}"
    except MemoryError:
        return f"more than {MEMORY >> 30} GB\n{traceback.format_exc(-12)}"
    except Exception:
        return traceback.format_exc(-12)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def fork_files() -> Mapping[str, str]:
    """Every file of the embedded fork that planning may read."""
    paths = sorted(path for path in EMBEDDED_FORK.rglob("*") if path.is_file() and path.suffix != ".txt")
    return {str(path.relative_to(EMBEDDED_FORK)): _text(path) for path in paths if path.name != ".clang-format"}


def metal_files() -> Mapping[str, str]:
    """The Metal of the project, as if preprocessed."""
    folders = (EMBEDDED_FORK, ROOT / "tests" / "aten_overlay")
    paths = sorted(path for folder in folders for path in folder.rglob("*.metal"))
    return {str(path.relative_to(ROOT)): _text(path) for path in paths}


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def fork_tree(files: Mapping[str, str], seed: int, number: int) -> tuple[str, Callable[[], None]]:
    """A damaged fork, and what is asked of it."""
    chance = random.Random(f"{seed}:{number}")
    paths = sorted(files)
    changed: dict[str, str] = {}
    for path in chance.sample(paths, chance.choice((1, 1, 1, 2, 3))):
        changed[path] = damage(chance, files[path], Path(path).suffix, path == NATIVE_FUNCTIONS)
    op, again = chance.choice(OPERATORS), chance.choice(OPERATORS)
    named = digest(repr((sorted(changed.items()), op, again)).encode("utf-8", "surrogatepass"))

    def work() -> None:
        ask(in_memory({**files, **changed}, changed), op, again)

    return named, work


def ask(checkout: Checkout, op: str, again: str) -> None:
    """Status, a plan and an explanation; each is an answer or a coded error."""
    for step in (_status, _plan, _explain):
        try:
            step(checkout, op, again)
        except PorterError as error:
            str(error)


def in_memory(files: Mapping[str, str], changed: Mapping[str, str]) -> Checkout:
    """A checkout of which searches too see the damaged texts."""
    disk = Disk(texts=dict(files))
    for folder, ending in SEARCHED:
        held = [(p, t) for p, t in files.items() if p.rpartition("/")[0] == folder and p.endswith(ending)]
        data = tuple((path, text.encode("utf-8", "surrogatepass")) for path, text in held)
        disk.folders[folder, ending] = Folder(data)
    return Checkout(EMBEDDED_FORK, "damaged", {}, dict(changed), disk)


def _status(checkout: Checkout, op: str, again: str) -> None:
    for each in operators(checkout, Filters((op, again))):
        each.as_object()


def _plan(checkout: Checkout, op: str, _again: str) -> None:
    plan_operator(checkout, op).changes.diff()


def _explain(checkout: Checkout, _op: str, again: str) -> None:
    for stage in explain(checkout, again, record=False):
        stage.as_object()


def metal_source(files: Mapping[str, str], seed: int, number: int) -> tuple[str, Callable[[], None]]:
    """A damaged Metal source for the front end; no compiler runs."""
    chance = random.Random(f"metal {seed}:{number}")
    path = chance.choice(sorted(files))
    text = damage(chance, files[path], ".metal", False)

    def work() -> None:
        unit = parse(read(text))
        for names in ([i.host_name for i in unit.instances], [i.host_name for i in unit.instances[:1]]):
            try:
                generate(unit, dict.fromkeys(names), {}, host("0"), True)
            except OverlayError as error:
                str(error)

    return digest(text.encode("utf-8", "surrogatepass")), work


def _up(_number: int, _frame: FrameType | None) -> None:
    raise Hang


def _numbers(seconds: float, most: int | None, only: int | None) -> Iterator[int]:
    if only is not None:
        yield only
        return
    until = time.monotonic() + seconds
    for number in count():
        if time.monotonic() > until or (most is not None and number >= most):
            return
        yield number


def main(arguments: Sequence[str] | None = None) -> int:
    asked = parser(__doc__)
    asked.add_argument("--seconds", type=float, default=60.0)
    asked.add_argument("--count", type=int)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--only", type=int)
    asked.add_argument("--metal", action="store_true")
    given = asked.parse_args(arguments)
    files = metal_files() if given.metal else fork_files()
    make = metal_source if given.metal else fork_tree
    signal.signal(signal.SIGPROF, _up)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    seen: set[str] = set()
    failures = 0
    numbers = _numbers(given.seconds, given.count, given.only)
    with suppress(KeyboardInterrupt):  # the counts so far are printed
        for found in run(lambda number: make(files, given.seed, number), numbers):
            if isinstance(found, Failure):
                failures += 1
                print(f"--only {found.number} --seed {given.seed}:\n{found.what}", flush=True)
            else:
                seen.add(found)
    print(f"{len(seen)} distinct {'sources' if given.metal else 'trees'}, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
