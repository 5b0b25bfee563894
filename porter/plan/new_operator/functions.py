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
    """A function: in C++, as a method of tensors, for a number in Python. `positive` ones are not defined below 0."""

    cpp: str
    method: str
    number: str = ""
    arity: int = 1
    positive: bool = False


def _same(*names: str, positive: bool = False) -> dict[str, Function]:
    return {name: Function(f"std::{name}", name, f"math.{name}({{0}})", positive=positive) for name in names}


FUNCTIONS: Mapping[str, Function] = {
    **_same("exp", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "erf"),
    **_same("erfc", "ceil", "floor", "trunc"),
    **_same("log", "log2", "log10", "log1p", "sqrt", "acosh", "lgamma", positive=True),
    "exp2": Function("std::exp2", "exp2", "2.0 ** ({0})"),
    "abs": Function("std::abs", "abs", "abs({0})"),
    "atan2": Function("std::atan2", "atan2", "math.atan2({0}, {1})", 2),
    "hypot": Function("std::hypot", "hypot", "math.hypot({0}, {1})", 2),
    "pow": Function("std::pow", "pow", "math.pow({0}, {1})", 2, positive=True),
}

# Functions that derivatives have beside those above.
OF_DERIVATIVES: Mapping[str, Function] = {"sign": Function("", "sgn")}
