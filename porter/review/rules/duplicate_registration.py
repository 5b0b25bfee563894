"""Each functor and type is registered once: the second makes a kernel of a name that is there."""

from __future__ import annotations

from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.metal_facts import list_instances
from porter.review.rule import Case, Rule

_FILE = "aten/src/ATen/native/mps/kernels/UnaryKernel.metal"
_LAST = "REGISTER_UNARY_OP(exp, float2, float2);\n"


def _check(change: Change) -> Iterator[Remark]:
    for file in change.metal:
        seen: dict[tuple[str, str, str], str] = {}
        for instance in list_instances(change, file.path):
            key = (instance.functor, instance.family, instance.input)
            if key in seen and file.is_added(instance.use.start):
                what = f"`{instance.functor}` is registered for {instance.input} twice"
                yield file.remark(instance.use.start, what, "Remove one of them.")
            seen.setdefault(key, instance.output)


RULE = Rule(
    "duplicate-registration",
    Severity.ERROR,
    "A functor is registered for a type twice.",
    _check,
    bad=(
        Case(edits=((_FILE, _LAST, _LAST + _LAST),)),
        Case(edits=((_FILE, _LAST, _LAST + "REGISTER_UNARY_OP(exp, half, float);\n"),)),
    ),
    good=(Case(edits=((_FILE, _LAST, _LAST + "REGISTER_UNARY_OP(exp, half2, half2);\n"),)),),
)
