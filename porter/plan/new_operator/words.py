"""The names and default values that a schema can have in each of the languages that it is written in."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from porter.core.names import explain_word
from porter.plan.new_operator.functions import CONSTANTS, FUNCTIONS

_LANGUAGE_OF_FORMULAS = frozenset((*FUNCTIONS, *CONSTANTS, "E"))
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)
_INT64 = 2**63
_FITS: Mapping[str, Callable[[str], bool]] = {
    "float": lambda text: bool(_NUMBER.fullmatch(text)) and math.isfinite(float(text)),
    "int": lambda text: bool(_WHOLE.fullmatch(text)) and -_INT64 <= int(text) < _INT64,
    "bool": lambda text: text in ("True", "False"),
}


def explain_operator_name(name: str) -> str:
    """Why an operator cannot have this name; empty if it can."""
    if name.endswith("_"):
        return "the name of a functional form does not end with an underscore: the form in place does"
    return explain_word(name)


def explain_argument_name(name: str) -> str:
    """Why an argument cannot have this name; empty if it can."""
    if name in _LANGUAGE_OF_FORMULAS:
        return f"{name} is a function or a constant of expressions"
    return explain_word(name)


def fits(type_: str, default: str) -> bool:
    """Whether a default value is one of a number's type."""
    return _FITS[type_](default)
