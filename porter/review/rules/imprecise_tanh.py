"""Without `precise::`, tanh of a large number is NaN on some GPUs (PyTorch 186278), and the same exponent overflows."""

from __future__ import annotations

from collections.abc import Iterator

from porter.metal.lint_checks import find_qualifier
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Rule, metal_case


def _check(change: Change) -> Iterator[Remark]:
    for file in change.metal:
        code = file.unit.code
        for at, token in file.added_tokens():
            called = token.text == "tanh" and at + 1 < len(code) and code[at + 1].text == "("
            if called and find_qualifier(code, at) in ("metal::", "::metal::", ""):
                if at and code[at - 1].text not in ("::", "(", "=", "return", "*", "+", "-", "/", ",", "?", ":"):
                    continue  # a declaration
                yield file.remark(
                    token.start, "`tanh` without `precise::` is NaN for large numbers", "Write `precise::tanh`."
                )


RULE = Rule(
    "imprecise-tanh",
    Severity.ERROR,
    "A kernel calls `tanh` without `precise::`, which is NaN for large numbers.",
    _check,
    bad=(
        metal_case("float f(float x) { return tanh(x); }\n"),
        metal_case("float f(float x) { return 0.5f * metal::tanh(x); }\n"),
    ),
    good=(metal_case("float f(float x) { return precise::tanh(x) + metal::precise::tanh(x); }\n"),),
)
