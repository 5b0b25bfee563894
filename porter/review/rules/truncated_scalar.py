"""A Scalar that may be fractional is not read as an integer (170077)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.languages.lexer import TokenKind
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.host_facts import find_words_in
from porter.review.rule import Rule, host_case

_READING = re.compile(r"\bconst\s+(?:c10::|at::)?Scalar\s*&\s*(\w+)")
_INTEGERS = frozenset({"int", "int32_t", "int64_t", "long", "uint32_t", "short"})
_ASKING = ("isIntegral", "isFloatingPoint", "isFloatingType", "isIntegralType", "kLong", "AT_DISPATCH")


def _check(change: Change) -> Iterator[Remark]:
    for file in change.host:
        for function in file.functions():
            scalars = set(_READING.findall(function.params))
            text = file.text_of(function)
            if not scalars or any(word in text for word in _ASKING):
                continue
            tokens = find_words_in(file, function.body_start, function.body_end)
            for at, token in enumerate(tokens[:-3]):
                if token.kind is not TokenKind.IDENTIFIER or token.text not in scalars or tokens[at + 1].text != ".":
                    continue
                reads = tokens[at + 2].text
                is_cut = reads in ("toInt", "toLong") or (reads == "to" and tokens[at + 4].text in _INTEGERS)
                if is_cut and file.is_added(token.start):
                    what = f"`{token.text}` is read as an integer: a fraction is cut off"
                    yield file.remark(token.start, what, "Read it in the type that the kernel computes in.")


_BAD = """static void planted(const Tensor& self, const Scalar& exponent) {
  const auto power = exponent.to<int>();
}
"""
RULE = Rule(
    "truncated-scalar",
    Severity.WARNING,
    "Host code reads a Scalar as an integer without asking whether it is one.",
    _check,
    bad=(host_case(_BAD), host_case(_BAD.replace("to<int>()", "toLong()"))),
    good=(
        host_case(_BAD.replace("to<int>", "to<float>")),
        host_case(_BAD.replace("  const", "  if (exponent.isIntegral(false))\n    const")),
    ),
)
