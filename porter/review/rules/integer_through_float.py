"""float has 24 digits: integers above 2^24 that go through it come out as others (PyTorch 154171, 190052)."""

from __future__ import annotations

from collections.abc import Iterator

from porter.languages.source import Function
from porter.review.change import Change, ChangedFile, Remark
from porter.review.finding import Severity
from porter.review.metal_facts import find_functors, list_instances
from porter.review.rule import Rule, metal_case

_WIDE = frozenset({"int", "long", "uint", "ulong"})
_FLOATING = frozenset({"is_scalar_floating_point_v", "is_floating_point_v"})
_INTEGRAL = frozenset({"is_scalar_integral_v", "is_integral_v"})


def _check(change: Change) -> Iterator[Remark]:
    for file in change.metal:
        wide = {i.functor for i in list_instances(change, file.path) if i.input in _WIDE and i.output == i.input}
        for functor in find_functors(file):
            if functor.name not in wide or not file.touches(functor.start, functor.end):
                continue
            takes_integers = [call for call in functor.calls if _takes(file, call, _INTEGRAL)]
            general = [
                call for call in functor.calls if not _takes(file, call, _FLOATING | _INTEGRAL | {"is_complex_v"})
            ]
            for call in takes_integers or general:
                cast = _find_cast(file, call)
                if cast is not None:
                    what = f"`{functor.name}_functor` computes integers in float, which is wrong above 2^24"
                    yield file.remark(cast, what, "Give integers an overload that computes in their own type.")


def _takes(file: ChangedFile, call: Function, traits: frozenset[str] | set[str]) -> bool:
    return any(token.text in traits for token in file.unit.within(call.start, call.body_start))


def _find_cast(file: ChangedFile, call: Function) -> int | None:
    """Where a function casts what it computes with to float: `float(x)`, `static_cast<float>(x)`."""
    tokens = file.unit.within(call.body_start, call.body_end)
    if any(token.text in ("is_integral_v", "is_scalar_integral_v", "constexpr") for token in tokens):
        return None
    for at, token in enumerate(tokens[:-1]):
        after, before = tokens[at + 1].text, tokens[at - 1].text if at else ""
        if token.text == "float" and (after == "(" or (before == "<" and after == ">")):
            return token.start
    return None


_BAD = """struct modulo_functor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    return static_cast<T>(fmod(static_cast<float>(a), static_cast<float>(b)));
  }
};
REGISTER_BINARY_OP(modulo, long, long);
"""
_GOOD = """struct modulo_functor {
  template <typename T>
  inline enable_if_t<is_scalar_integral_v<T>, T> operator()(const T a, const T b) {
    return a % b;
  }
  template <typename T>
  inline enable_if_t<is_scalar_floating_point_v<T>, T> operator()(const T a, const T b) {
    return static_cast<T>(fmod(static_cast<float>(a), static_cast<float>(b)));
  }
};
REGISTER_BINARY_OP(modulo, long, long);
"""
RULE = Rule(
    "integer-through-float",
    Severity.ERROR,
    "A functor that is registered for 32-bit or 64-bit integers computes them in float.",
    _check,
    bad=(metal_case(_BAD), metal_case(_GOOD.replace("a % b", "T(fmod(float(a), float(b)))"))),
    good=(metal_case(_GOOD), metal_case(_BAD.replace("long, long", "float, float"))),
)
