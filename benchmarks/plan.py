"""How long planning takes, as ratios to importing torch and its OpInfos in the same run.

A plain libcst parse of the OpInfo file of the fork is another measure. CPU seconds depend less on other load.
Modules are compiled before: the first command that is not measured writes their bytecode.

python benchmarks/plan.py --checkout DIR [OP]

Ends with an error, and what the command said, where one of them fails: a failure takes no time worth comparing.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from porter.core.layout import OPINFOS

PARSE = "import libcst, pathlib, sys; libcst.parse_module(pathlib.Path(sys.argv[1]).read_text()); print('parsed')"
IMPORT = "import torch.testing._internal.common_methods_invocations; print('imported')"
# 1 says that a plan leaves something on MPSGraph, which is for a person to judge and took its time all the same.
PLANNED = (0, 1)


@dataclass(frozen=True)
class Spent:
    """Seconds of a process and those that it started: on the clock, and of CPUs."""

    wall: float
    cpu: float


def seconds(command: list[str], codes: Collection[int] = (0,)) -> Spent:
    """The time of a process, from its start. Exits where it fails, or prints nothing."""
    start, before = time.perf_counter(), _children()
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environ)
    took = time.perf_counter() - start
    if done.returncode not in codes or not done.stdout or "Traceback (most recent call last)" in done.stderr:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr or 'it printed nothing'}")
    return Spent(took, _children() - before)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("op", nargs="?", default="atan2")
    options = parser.parse_args()
    base = seconds([sys.executable, "-c", PARSE, str(options.checkout / OPINFOS)])
    where = ["--checkout", str(options.checkout)]
    porter = [sys.executable, "-m", "porter"]
    seconds([*porter, "migrate", options.op, "--no-verify", *where], PLANNED)
    imported = seconds([sys.executable, "-c", IMPORT])
    for name, spent in (("parse", base), ("import", imported)):
        print(f"{name}: {spent.wall:.2f} s, {spent.cpu:.2f} s of CPU")
    for arguments, codes in (
        (["status", *where], (0,)),
        (["explain", options.op, "--no-record", *where], (0,)),
        (["migrate", options.op, "--no-verify", *where], PLANNED),
        (["migrate", "--all", "--no-verify", *where], PLANNED),
    ):
        took = seconds([*porter, *arguments], codes)
        ratios = f"{took.wall / imported.wall:6.2f} of the import, {took.wall / base.wall:6.2f} of the parse"
        print(f"{' '.join(arguments[:-2]):<36} {ratios} ({took.wall:.2f} s, {took.cpu:.2f} s of CPU)")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"peak memory of any child: {peak} MB")


if __name__ == "__main__":
    main()
