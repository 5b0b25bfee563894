"""Trains every module of torch.nn and every optimizer of torch.optim on the device and on the CPU, and compares.

    python tools/zoo.py [-k NAME] [--cases N] [--dtype TYPE...] [--write]

Prints a table of those that NAME, a regular expression, matches. --write writes docs/zoo.md, which has all of them.
Exit code 1 if something differs or fails on the device, or nothing matches.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import aten_overlay
from shared.arguments import parser

PAGE = Path(__file__).resolve().parents[1] / "docs" / "zoo.md"
TYPES = ("float32", "float16", "bfloat16")
CASES = 2


def main() -> int:
    options = parser(__doc__)
    options.add_argument("-k", dest="name", default="", help="a regular expression that names match as a whole")
    options.add_argument("--cases", type=int, default=CASES, help="at most so many sets of arguments each")
    options.add_argument("--dtype", nargs="+", choices=TYPES, default=TYPES)
    options.add_argument("--write", action="store_true", help="write docs/zoo.md")
    arguments = options.parse_args()
    if arguments.write and (arguments.name or tuple(arguments.dtype) != TYPES or arguments.cases != CASES):
        options.error("--write takes no other option: the page has everything")
    aten_overlay.start()
    return _run(arguments.name, arguments.dtype, arguments.cases, arguments.write)


def _run(name: str, types: Sequence[str], most: int, write: bool) -> int:
    import torch

    from training import modules, optimizers, report
    from training.case import Case
    from training.trial import Outcome, try_case

    torch.set_num_threads(1)
    dtypes = [getattr(torch, each) for each in types]
    wanted = re.compile(name or ".*")

    def outcomes() -> Iterator[Outcome]:
        for dtype in dtypes:
            cases: list[Case] = [*modules.cases(dtype, most), *optimizers.cases(dtype, most)]
            for case in cases:
                if wanted.fullmatch(case.name):
                    yield try_case(case)

    found = []
    for outcome in outcomes():
        found.append(outcome)
        if outcome.kind in report.BAD:
            print(f"{outcome.case.name}, {outcome.case.variant}, {outcome.case.dtype}: {outcome.told[0]}", flush=True)
    if write:
        abstract = {**modules.ABSTRACT, **optimizers.ABSTRACT}
        names = {"modules": modules.names(), "optimizers": optimizers.names()}
        PAGE.write_text(report.page(found, dtypes, abstract, names, most))
    else:
        named = sorted({outcome.case.name for outcome in found})
        print(report.table(report.rows(named, found), dtypes, "name"), end="")
    print(report.totals(found))
    return int(not found or any(outcome.kind in report.BAD for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
