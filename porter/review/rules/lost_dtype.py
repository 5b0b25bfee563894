"""A type for which a functor had a kernel, and has none after the change, though host code names it still."""

from __future__ import annotations

from collections.abc import Iterator

from porter.core.layout import KERNELS
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.metal_facts import list_registered
from porter.review.rule import Case, Rule


def _check(change: Change) -> Iterator[Remark]:
    if not any(file.is_metal for file in change.files):
        return
    now = {(i.functor, i.input) for i in list_registered(change)}
    before = {(i.functor, i.input) for i in list_registered(Change(change.before, change.before, ()))}
    kept = {functor for functor, _ in now}
    for file in change.files:
        if not file.is_metal:
            continue
        for functor in sorted(kept):
            lost = sorted(kind for name, kind in before - now if name == functor and functor in file.before)
            if lost and any(functor in line for line in file.removed):
                line = next((n for n, text in enumerate(file.after.splitlines(), 1) if f"({functor}" in text), 0)
                what = f"`{functor}` has no kernel for {', '.join(lost)} any more"
                yield Remark(file.path, line, what, "Keep the type, or say in the text that MPS loses it.")


_FILE = f"{KERNELS}/UnaryKernel.metal"
RULE = Rule(
    "lost-dtype",
    Severity.ERROR,
    "A functor loses a type that it had a kernel for.",
    _check,
    bad=(Case(edits=((_FILE, "REGISTER_UNARY_OP(exp, bool, float);\n", ""),)),),
    good=(Case(edits=((_FILE, "REGISTER_UNARY_OP(exp, half, half);\n", "REGISTER_UNARY_OP(exp, half,  half);\n"),)),),
)
