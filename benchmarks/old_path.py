"""Runs a fork's MPSGraph implementations over OpInfo samples, and prints how many agree with the CPU.

    python benchmarks/old_path.py FORK [OP ...] [--save FILE]

One line an operator and type: samples that agree, differ and are refused, and the first difference. Without operators:
every base name that `porter status` calls MPSGraph and an OpInfo calls.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from apart import apart

from porter.aten.native_functions import NativeFunctions
from porter.aten.stubs import StubCall, stubs_of
from porter.checkout import Checkout
from porter.errors import PorterError
from porter.overlay import host
from porter.overlay.build import build
from porter.overlay.tree import cache, materialise
from porter.overlay.verdict import VerifyTarget
from porter.status import as_rows

TYPES = ("float32", "float16", "int32", "bool")
SAMPLES = 12


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fork", type=Path)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    host.start()
    import_module("torch.testing._internal.common_methods_invocations")
    checkout = Checkout(options.fork.resolve(), "named")
    bases = options.ops or _graph_bases(checkout)
    found = []
    for base in bases:
        died = {"op": base, "type": "-", "why": "the process died"}
        for line in apart(partial(_judged, checkout, base), died):
            print(*line.values(), sep="\t", flush=True)
            found.append(line)
    totals = Counter[str]()
    for line in found:
        totals.update({key: line[key] for key in ("agree", "differ", "refused") if key in line})
    print(dict(totals), file=sys.stderr)
    if options.save:
        options.save.write_text(json.dumps(found, indent=1))
    return 0


def _graph_bases(checkout: Checkout) -> list[str]:
    from torch.testing._internal.common_methods_invocations import op_db

    called = {op.aten_name for op in op_db} | {op.name for op in op_db}
    functions = NativeFunctions.read(checkout).by_name
    rows = (row for row in as_rows(checkout) if row.written == "MPSGraph")
    return [base for base in dict.fromkeys(functions[row.name].base for row in rows) if base in called]


def _judged(checkout: Checkout, base: str) -> Iterator[dict[str, Any]]:
    from torch.testing._internal.common_methods_invocations import op_db

    print(base, file=sys.stderr, flush=True)
    try:
        tree = materialise(checkout.root, {}, cache())
        made = build(tree, [VerifyTarget(base, stubs=_stubs(checkout, base))], host.recipe(tree.root), cache())
        host.load(made.library, tree.root, (), "default", checked=False)
    except PorterError as error:
        yield {"op": base, "type": "-", "why": f"{error.code} {error.what}"[:300]}
        return
    for op in op_db:
        if base in (op.name, op.aten_name):
            for name in TYPES:
                yield _over_samples(op, name)


def _stubs(checkout: Checkout, base: str) -> tuple[str, ...]:
    """The stubs that the operator's shared lines call."""
    family = NativeFunctions.read(checkout).family(base)
    shared = [line for entry in family if (line := entry.line_for("MPS")) and {"CPU", "CUDA"} & set(line.keys)]
    return tuple(dict.fromkeys(call.stub.name for line in shared for call in _calls(checkout, line.kernel)))


def _calls(checkout: Checkout, kernel: str) -> tuple[StubCall, ...]:
    try:
        return stubs_of(checkout, kernel)
    except PorterError:
        return ()


def _over_samples(op: Any, name: str) -> dict[str, Any]:
    import torch

    dtype = getattr(torch, name)
    line: dict[str, Any] = {"op": op.formatted_name, "type": name, "agree": 0, "differ": 0, "refused": 0, "why": ""}
    if dtype not in op.supported_dtypes("cpu"):
        return {**line, "why": "the CPU has no such type"}
    fallbacks = sum(host.fallbacks().values())
    for i, sample in enumerate(op.sample_inputs("cpu", dtype)):
        if i == SAMPLES:
            break
        outcome, why = _one(op, sample)
        line[outcome] += 1
        line["why"] = line["why"] or why
    if sum(host.fallbacks().values()) > fallbacks:
        line["why"] += " (with CPU fallbacks)"
    return line


def _one(op: Any, sample: Any) -> tuple[str, str]:
    import torch

    try:
        want = op(sample.input, *sample.args, **sample.kwargs)
    except Exception as error:
        return "refused", f"the CPU: {str(error)[:120]}"
    try:
        moved = sample.transform(lambda v: v.to("mps") if isinstance(v, torch.Tensor) else v)
        got = op(moved.input, *moved.args, **moved.kwargs)
    except Exception as error:
        return "refused", str(error).strip().splitlines()[0][:200]
    try:
        torch.testing.assert_close(_home(got), _home(want), rtol=1e-2 if _half(sample) else 1e-4, atol=1e-3,
                                   equal_nan=True, check_device=False)  # fmt: skip
    except AssertionError as error:
        return "differ", " ".join(str(error).split())[:200]
    return "agree", ""


def _half(sample: Any) -> bool:
    import torch

    return isinstance(sample.input, torch.Tensor) and sample.input.dtype in (torch.float16, torch.bfloat16)


def _home(value: Any) -> Any:
    import torch
    from torch.utils import _pytree as pytree

    return pytree.tree_map(lambda v: v.cpu() if isinstance(v, torch.Tensor) else v, value)


if __name__ == "__main__":
    sys.exit(main())
