"""Runs a fork's MPSGraph implementations over OpInfo samples, and prints how they compare with the CPU.

    python tools/old_path.py FORK [OP ...] [--samples N] [--seconds N] [--save FILE]
    python tools/old_path.py FORK --read FILE

One line an operator with an MPSGraph row that an OpInfo reaches, and type: graphs run; samples that agree, agree as far
as values are defined, agree but for precision, differ and are refused; their classes, with the evidence for the first;
and the OpInfos. OP may have wildcards; without any, every OpInfo runs. `--read` prints the table of a saved run again.
The samples, N of each type, are spread over those that an OpInfo has. Metal's API validation is off, as on a Mac,
unless MTL_DEBUG_LAYER says otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from fnmatch import fnmatch
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from parity import table as old_path_table
from parity.differences import Evidence
from parity.outcomes import CRASHED, OpInfoResult
from porter.core import cache
from porter.core.checkout import Checkout
from porter.core.layout import TEST_MPS
from porter.verdict.backends import host
from porter.verdict.build.tree import materialise
from shared.arguments import fork_parser
from shared.isolation import run_isolated
from shared.whole_fork import build_whole, find_coverage, find_unserved_rows, load_whole

TYPES = ("float32", "float16", "int32", "bool")


def main() -> int:
    parser = fork_parser(__doc__)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--read", type=Path)
    options = parser.parse_args()
    checkout = Checkout(options.fork.resolve(), "named")
    os.environ.setdefault("MTL_DEBUG_LAYER", "0")
    host.start()
    import_module("torch.testing._internal.common_methods_invocations")
    evidence = Evidence.read(checkout)
    held = find_coverage(checkout, materialise(checkout.root, {}, cache.root()))
    if options.read:
        found = [OpInfoResult.from_json(json.loads(text)) for text in options.read.read_text().splitlines()]
    else:
        found = list(_run(checkout, options))
        print("rows that are not served:", *find_unserved_rows(checkout, held), file=sys.stderr)
    if not found:
        sys.exit("no OpInfo of these operators reaches an MPSGraph row")
    old_path_table.write(checkout, found, evidence, held.absent, sys.stdout)
    return 0


def _ops(wanted: tuple[str, ...]) -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    names = [(op, (op.name, op.aten_name, op.formatted_name)) for op in op_db]
    return [op for op, named in names if not wanted or any(fnmatch(n, each) for n in named for each in wanted)]


def _run(checkout: Checkout, options: argparse.Namespace) -> Iterator[OpInfoResult]:
    """The lines as they come; saved, each is there at once."""
    import torch

    from aten_overlay.apple.mpsgraph import semantics
    from parity.old_path import compare_opinfo  # they import torch, which the host has to start before
    from porter.verdict.suite.lists import low_precision

    torch.set_num_threads(1)  # a pool of threads does not live on in a forked process
    file = TEST_MPS
    if not checkout.exists(file):
        print(f"{file} is missing: results of low precision count as different", file=sys.stderr)
    precision = low_precision(checkout.read(file)) if checkout.exists(file) else {}
    load_whole(build_whole(checkout))
    semantics.list_selectors()  # read once for all processes to come
    with options.save.open("w") if options.save else nullcontext() as saved:
        for op in _ops(tuple(options.ops)):
            why = (CRASHED, f"its process died, or gave no line in {options.seconds:g} s", 1)
            died = OpInfoResult(op.formatted_name, (op.name, op.aten_name), "-", {CRASHED: 1}, (why,))
            for line in run_isolated(
                partial(compare_opinfo, op, TYPES, options.samples, precision), died, options.seconds
            ):
                print(line.op, line.kind, dict(line.counts), file=sys.stderr, flush=True)
                if saved:
                    print(json.dumps(asdict(line)), file=saved, flush=True)
                yield line


if __name__ == "__main__":
    sys.exit(main())
