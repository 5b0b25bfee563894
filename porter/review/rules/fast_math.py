"""`metal::fast` trades accuracy for speed: reviewers refuse it where results are compared with the CPU's."""

from __future__ import annotations

from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Rule, metal_case


def _check(change: Change) -> Iterator[Remark]:
    for file in change.metal:
        code = file.unit.code
        for at, token in file.added_tokens():
            if token.text == "fast" and at + 2 < len(code) and code[at + 1].text == "::":
                name = code[at + 2].text
                yield file.remark(token.start, f"`fast::{name}` is less accurate than the CPU's {name}",
                                  f"Write `precise::{name}`.", "fast", "precise")  # fmt: skip


RULE = Rule(
    "fast-math",
    Severity.WARNING,
    "A kernel calls a function of `metal::fast`, which is less accurate than the CPU's.",
    _check,
    bad=(
        metal_case("float f(float x) { return metal::fast::exp(x); }\n"),
        metal_case("float f(float x) { return fast::log(x); }\n"),
    ),
    good=(metal_case("float f(float x) { return precise::exp(x); }\nfloat fast(float x) { return x; }\n"),),
)
