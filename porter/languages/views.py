"""Arguments that only view a temporary: it lives until a call returns, but no longer than a declaration.

Source: c10/util/ArrayRef.h, c10/util/OptionalArrayRef.h, c10/core/Scalar.h (`OptionalScalarRef`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from porter.languages.brackets import split_at_commas
from porter.languages.patterns import match_code

_VIEW = re.compile(r"\b(?:(?:Optional)?(?:Int|SymInt)?ArrayRef|(?:I?Optional)?TensorList(?:Ref)?|OptionalScalarRef)\b")
_MAKER = r"(?:c10::|at::)*(?:(?:Optional)?(?:Int|SymInt)?ArrayRef|makeArrayRef)(?:<\w+>)?"
_ONE_HELD = re.compile(rf"({_MAKER}\()\{{(\*\w+)\}}\)")  # one element, that lives where an optional does
_BRACES = re.compile(rf"(?:{_MAKER}\()?\{{([^{{}}]*)\}}\)?$")
_NUMBER = re.compile(rf"{_MAKER}\((-?\d+)\)$")
_MEMBER = r"\*?\w+(?:(?:\.|->)(?:sizes|strides|value|get|data|size)\(\))*"
_EMPTY = r"(?:IntArrayRef)?\{\}"
_MADE = re.compile(rf"{_MAKER}\({_MEMBER}(?:, (?:{_MEMBER}|\d+))?\)|{_MEMBER}(?:\.value_or\({_EMPTY}\))?")
_CHOICE = re.compile(r"[^?:]+\? (?P<first>[^?]+) : (?P<second>[^?:]+(?:::\w+)?)$")


@dataclass(frozen=True)
class Owned:
    """How a parameter is declared so that what it views lives on; `is_given` where it is no optional then."""

    type: str
    value: str
    is_given: bool = False


def own_viewed(type_: str, argument: str) -> Owned | None:
    """The declaration of a parameter of some type for an argument; None if what that views may end with it."""
    if not _VIEW.search(type_):
        return Owned(type_, argument)
    held = _ONE_HELD.sub(r"\1\2)", argument)
    if scalar := match_code(held, "OptionalScalarRef($$value)"):
        return Owned("const Scalar", f"Scalar({scalar['value']})", is_given=True)
    if elements := _BRACES.match(held) or _NUMBER.match(held):
        count = len(split_at_commas(elements[1], "<>()[]{}")) if elements[1].strip() else 0
        return Owned(f"const std::array<{_name_element(type_)}, {count}>", f"{{{elements[1].strip()}}}", is_given=True)
    choice = _CHOICE.fullmatch(held)
    parts = (choice["first"], choice["second"]) if choice else (held,)
    return Owned(type_, held) if all(each == "std::nullopt" or _MADE.fullmatch(each) for each in parts) else None


def _name_element(type_: str) -> str:
    return "Tensor" if "Tensor" in type_ else "SymInt" if "SymInt" in type_ else "int64_t"
