"""Each step of arithmetic in half rounds: a functor of several computes in `opmath_t` (PyTorch 195585)."""

from __future__ import annotations

from collections.abc import Iterator

from porter.languages.lexer import Token, TokenKind
from porter.metal.lint_checks import parameters
from porter.review.change import Change, ChangedFile, Remark
from porter.review.finding import Severity
from porter.review.metal_facts import find_functors, list_instances
from porter.review.rule import Rule, metal_case

_WIDENING = frozenset({"float", "float2", "opmath_t", "om_t", "static_cast", "OpMathType", "accum_t", "acc_t"})
_INTEGRAL = frozenset({"is_scalar_integral_v", "is_integral_v", "is_integral"})
_ARITHMETIC = frozenset("+-*/")
_STEPS = 2


def _check(change: Change) -> Iterator[Remark]:
    for file in change.metal:
        halves = {
            i.functor for i in list_instances(change, file.path) if i.input in ("half", "bfloat") and not i.opmath
        }
        for functor in find_functors(file):
            if functor.name not in halves:
                continue
            for function in functor.calls:
                token = _find_steps(file, function.start, function.body_start, function.body_end,
                                    {p.name for p in parameters(file.unit, function) if p.name})  # fmt: skip
                if token and file.touches(functor.start, functor.end):
                    yield file.remark(
                        token.start,
                        f"`{functor.name}_functor` computes in half: each step rounds to 11 or 8 digits",
                        "Compute in `opmath_t<T>` and cast the result, or register it with the OPMATH macro.",
                    )


def _find_steps(file: ChangedFile, start: int, body: int, end: int, operands: set[str]) -> Token | None:
    """The second operator of arithmetic on parameters in a function that widens nothing."""
    words = {token.text for token in file.unit.within(start, end)}
    if words & (_WIDENING | _INTEGRAL):
        return None
    tokens = file.unit.within(body, end)
    steps = [
        token
        for at, token in enumerate(tokens[1:-1], 1)
        if token.text in _ARITHMETIC
        and (tokens[at - 1].kind is not TokenKind.PUNCTUATION or tokens[at - 1].text in ")]")
    ]
    named = any(token.text in operands for token in tokens)
    return steps[_STEPS - 1] if named and len(steps) >= _STEPS else None


_BAD = """struct blend_functor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    return a + a * b;
  }
};
REGISTER_BINARY_OP(blend, half, half);
"""
RULE = Rule(
    "half-arithmetic",
    Severity.ERROR,
    "A functor that is registered for half computes in several steps without `opmath_t`.",
    _check,
    bad=(metal_case(_BAD),),
    good=(
        metal_case(_BAD.replace("a + a * b", "static_cast<T>(float(a) + float(a) * float(b))")),
        metal_case(_BAD.replace("a + a * b", "a * b")),
        metal_case(_BAD.replace("REGISTER_BINARY_OP", "REGISTER_OPMATH_BINARY_OP")),
        metal_case(_BAD.replace("half, half", "float, float")),
    ),
)
