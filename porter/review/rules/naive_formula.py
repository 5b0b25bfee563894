"""Formulas that are right on paper and lose values in floating point: a hypot that overflows, a floor of a quotient."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Rule, metal_case

# A table of formulas: their texts without spaces, what goes wrong, and what to write.
_OPERAND = r"(?:(?:static_cast<\w+>|float|om_t|opmath_t<T>)\()?(\w+(?:\.\w+)?)\)?"
_FORMULAS = (
    (
        re.compile(rf"\bsqrt\({_OPERAND}\*{_OPERAND}\+{_OPERAND}\*{_OPERAND}\)"),
        ((1, 2), (3, 4)),
        "the squares overflow and underflow where the result does not, and an infinity beside a NaN is lost",
        "Scale by the larger operand, and look for infinities first.",
    ),
    (
        re.compile(rf"\bfloor\({_OPERAND}/{_OPERAND}\)"),
        (),
        "the quotient rounds before floor does: a result off by one, and a sign of zero that is lost",
        "Correct the quotient by the remainder, as c10::metal::floor_divide and the CPU do.",
    ),
    (
        re.compile(rf"\blog\(1(?:\.0?f?)?\+{_OPERAND}\)"),
        (),
        "1 + x rounds a small x away",
        "Write `c10::metal::log1p`.",
    ),
    (
        re.compile(rf"\bexp\({_OPERAND}\)-1(?:\.0?f?)?\b"),
        (),
        "the difference cancels for a small x",
        "Write `c10::metal::expm1`.",
    ),
)


def _check(change: Change) -> Iterator[Remark]:
    for file in change.metal:
        tokens = [token for _, token in file.added_tokens()]
        joined, starts = "", dict[int, int]()
        for token in tokens:
            joined += " " if joined[-1:].isalnum() and token.text[0].isalnum() else ""
            starts[len(joined)] = token.start
            joined += token.text
        for pattern, same, what, hint in _FORMULAS:
            for match in pattern.finditer(joined):
                if match.start() in starts and all(match[a] == match[b] for a, b in same):
                    yield file.remark(starts[match.start()], f"`{match[0]}`: {what}", hint)


RULE = Rule(
    "naive-formula",
    Severity.WARNING,
    "A formula of a kernel loses values: a naive hypot, floor of a quotient, log(1 + x) or exp(x) - 1.",
    _check,
    bad=(
        metal_case("float f(float a, float b) { return precise::sqrt(a * a + b * b); }\n"),
        metal_case("float f(float a, float b) { return floor(a / b); }\n"),
        metal_case("float f(float x) { return precise::log(1.0f + x); }\n"),
        metal_case("float f(float x) { return precise::exp(x) - 1; }\n"),
    ),
    good=(
        metal_case("float f(float a, float b) { return precise::sqrt(a * b + b * b); }\n"),
        metal_case("float f(float a, float b) { return floor(a) / b + precise::log(2.0f + a); }\n"),
    ),
)
