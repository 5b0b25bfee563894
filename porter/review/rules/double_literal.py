"""Kernels compute in float at most: a literal without a suffix says double."""

from __future__ import annotations

from collections.abc import Iterator

from porter.languages.lexer import TokenKind
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Rule, metal_case


def _check(change: Change) -> Iterator[Remark]:
    for file in change.metal:
        for _, token in file.added_tokens():
            text = token.text.lower()
            decimal = token.kind is TokenKind.NUMBER and not text.startswith("0x") and not {".", "e"}.isdisjoint(text)
            if decimal and text[-1] not in "fhl":
                what = f"`{token.text}` is a double literal"
                yield file.remark(token.start, what, f"Write `{token.text}f`.", token.text, f"{token.text}f")


RULE = Rule(
    "double-literal",
    Severity.WARNING,
    "A literal of a kernel has no `f`, and says double, which Metal lacks.",
    _check,
    bad=(metal_case("constant float e = 0.5;\n"), metal_case("float f(float x) { return x * 1e-5; }\n")),
    good=(metal_case("constant float e = 0.5f;\nconstant half h = 1.0h;\nconstant int i = 0x1e5;\n"),),
)
