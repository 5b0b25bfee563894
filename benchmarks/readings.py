"""Reads old implementations twice, from the source and by running them, and prints whether the readings agree.

    python benchmarks/readings.py FORK OP ...

One line an operator and type: agree, differ (with both), or why one reading is missing.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from apart import apart

from porter.aten.meta import type_rules
from porter.aten.native_functions import NativeFunctions
from porter.checkout import Checkout
from porter.dtypes import BY_METAL
from porter.errors import PorterError
from porter.mpsgraph.printing import spelled
from porter.objcpp.evaluator import read_graph
from porter.overlay import host
from porter.overlay.build import build
from porter.overlay.record import recorded
from porter.overlay.tree import cache, materialise
from porter.overlay.verdict import VerifyTarget
from porter.rows import mps_row

TYPES = ("float", "half", "int", "bool")


def main() -> int:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    host.start()
    import_module("torch.testing._internal.common_methods_invocations")
    checkout = Checkout(Path(sys.argv[1]).resolve(), "named")
    totals = Counter[str]()
    for base in sys.argv[2:]:
        died = (base, "-", "not built", "the process died")
        lines = apart(partial(_both, checkout, base), died)
        for line in lines:
            print(*line, sep="\t", flush=True)
            totals[line[2]] += 1
    print(dict(totals), file=sys.stderr)
    return 0


def _both(checkout: Checkout, base: str) -> Iterator[tuple[str, str, str, str]]:
    from torch.testing._internal.common_methods_invocations import op_db

    try:
        tree = materialise(checkout.root, {}, cache())
        host.load(
            build(tree, [VerifyTarget(base)], host.recipe(tree.root), cache()).library, tree.root, (), "default", False
        )
    except PorterError as error:
        yield base, "-", "not built", f"{error.code} {error.what}"[:160]
        return
    op = next((o for o in op_db if base in (o.name, o.aten_name)), None)
    for name in TYPES if op else ():
        source = _told(partial(_read, checkout, base, name))
        run = _told(partial(_run, checkout, base, op, name))
        if source == run:
            yield base, name, "agree", source
        else:
            only = "PTR" in source[:3] or "PTR" in run[:3]
            yield base, name, "one reading" if only else "differ", f"source: {source} | run: {run}"


def _told(read: Any) -> str:
    try:
        return spelled(read())
    except PorterError as error:
        return f"{error.code} {error.what}"
    except (RuntimeError, TypeError) as error:
        return f"PTR the call: {str(error).splitlines()[0]}"


def _row(checkout: Checkout, base: str) -> Any:
    functions = NativeFunctions.read(checkout)
    rows = [row for entry in functions.family(base) if (row := mps_row(checkout, entry)) and row.implementation]
    if not rows:
        raise PorterError("PTR015", f"{base} has no MPS implementation")
    return max(rows, key=lambda row: sum(a.is_tensor for a in row.entry.inputs))


def _read(checkout: Checkout, base: str, name: str) -> Any:
    row = _row(checkout, base)
    family = NativeFunctions.read(checkout).family(base)
    name_of = next((e.name for e in family if e.delegate == row.entry.name), row.entry.name.removesuffix(".out"))
    shared = row.entry.line_for("CPU")
    rule = type_rules(checkout, name_of, shared.kernel if shared else None)[0]
    graph = read_graph(checkout, row.implementation, row.entry.arguments, lambda dtype: rule.result(dtype) or dtype)
    cases = graph.of(BY_METAL[name])
    if not cases:
        raise PorterError("PTR036", "the source has no case for this type")
    return cases[0].expr


def _run(checkout: Checkout, base: str, op: Any, name: str) -> Any:
    import torch

    row = _row(checkout, base)
    names = [a.name for a in row.entry.inputs if a.is_tensor]
    dtype = getattr(torch, BY_METAL[name].torch)
    shape = (2, 3)
    tensors = [torch.ones(shape, dtype=dtype).mul(i + 1).to(dtype).to("mps") for i in range(len(names))]
    return recorded(lambda: op(*tensors), dict(zip(names, tensors, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
