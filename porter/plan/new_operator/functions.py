"""The functions that an expression may call, in the words of C++, torch and ATen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CONSTANTS: Mapping[str, tuple[str, str]] = {
    "pi": ("c10::pi<opmath_t>", "torch.pi"),
    "e": ("c10::e<opmath_t>", "math.e"),
}


@dataclass(frozen=True)
class Function:
    """A function of numbers: in C++, and as a method of tensors. `positive` ones are not defined below 0."""

    cpp: str
    method: str
    arity: int = 1
    positive: bool = False


def _same(*names: str, positive: bool = False) -> dict[str, Function]:
    return {name: Function(f"std::{name}", name, positive=positive) for name in names}


FUNCTIONS: Mapping[str, Function] = {
    **_same(
        "exp", "exp2", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "erf"
    ),
    **_same("erfc", "ceil", "floor", "trunc"),
    **_same("log", "log2", "log10", "log1p", "sqrt", "acosh", "lgamma", positive=True),
    "abs": Function("std::abs", "abs"),
    "atan2": Function("std::atan2", "atan2", 2),
    "hypot": Function("std::hypot", "hypot", 2),
    "pow": Function("std::pow", "pow", 2, positive=True),
}

# Functions that derivatives have beside those above.
OF_DERIVATIVES: Mapping[str, Function] = {"sign": Function("", "sgn")}
