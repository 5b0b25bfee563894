"""Conditions on an operator's arguments, spelled as in the fork's code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from porter.mpsgraph.graph import Value

Arguments = Mapping[str, Value]
_COMPARED = re.compile(r"(?P<name>.+?) (?P<sign>==|<|>) (?P<value>.+)")


@dataclass(frozen=True)
class Undecided(Exception):
    """The arguments do not decide the condition."""

    text: str


def holds(text: str, arguments: Arguments) -> bool:
    """Whether a condition holds for these arguments: `eps.has_value()`, `alpha == 1.0`, `mode == "floor"`, `training`.

    Raises Undecided for any other condition.
    """
    if text in arguments:
        return bool(arguments[text])
    name = text.removesuffix(".has_value()")
    if name in arguments and name != text:
        return arguments[name] is not None
    match = _COMPARED.fullmatch(text)
    if not match or match["name"] not in arguments:
        raise Undecided(text)
    return _compare(arguments[match["name"]], match["sign"], match["value"])


def _compare(value: Value, sign: str, other: str) -> bool:
    if other.startswith('"'):
        return value == other.strip('"')
    try:
        number = float(other)
    except ValueError as error:
        raise Undecided(other) from error
    if not isinstance(value, (int, float)):
        return False
    return {"==": value == number, "<": value < number, ">": value > number}[sign]
