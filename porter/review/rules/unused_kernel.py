"""A functor that is registered and that no host code names: dead code, or a name that differs."""

from __future__ import annotations

from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.metal_facts import list_instances
from porter.review.rule import Case, Rule, host_case, metal_case

_FUNCTOR = """struct bloom_functor {
  template <typename T>
  inline T operator()(const T x) {
    return x;
  }
};
REGISTER_UNARY_OP(bloom, float, float);
"""


def _check(change: Change) -> Iterator[Remark]:
    for file in change.metal:
        seen = set[str]()
        for instance in list_instances(change, file.path):
            name = instance.functor
            if name in seen or not file.is_added(instance.use.start):
                continue
            seen.add(name)
            if not any(_names(text, name) for text in change.host_texts.values()):
                what = f"`{name}` is registered, and no host code names it"
                yield file.remark(instance.use.start, what, "Launch it, or leave it out.")


def _names(text: str, functor: str) -> bool:
    """Whether host code has a literal of a functor, or of its stem where a suffix is added to it."""
    if f'"{functor}"' in text:
        return True
    stem = functor
    while "_" in stem:
        stem = stem.rpartition("_")[0]
        if any(f'"{stem}{joint}' in text for joint in ("_{", '_"', '"')):
            return True
    return False


RULE = Rule(
    "unused-kernel",
    Severity.WARNING,
    "A change registers a functor that no host code names.",
    _check,
    bad=(metal_case(_FUNCTOR),),
    good=(
        Case({**metal_case(_FUNCTOR).files, **host_case('void f() {\n  lib.exec_unary_kernel(i, "bloom");\n}').files}),
    ),
)
