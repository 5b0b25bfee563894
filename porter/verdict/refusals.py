"""Classifies why a call failed on the mps device, from the message of its error.

Errors of aten_overlay reach Python through the fork's C++, which keeps only their message; it starts with their code.
"""

from __future__ import annotations

from enum import Enum, auto

from porter.core.errors import code_in


class Refusal(Enum):
    """A class of errors with a code. Errors of the fork's own checks have none."""

    NOT_MODELED = auto()  # the stand-in for Apple cannot run it
    VALIDATION = auto()  # Metal's API validation would refuse it on a Mac
    UNDEFINED = auto()  # no graph can compute it
    OTHER = auto()


_BY_CODE = {
    "PTR120": Refusal.NOT_MODELED,
    "PTR123": Refusal.NOT_MODELED,
    "PTR124": Refusal.VALIDATION,
    "PTR125": Refusal.VALIDATION,
    "PTR126": Refusal.VALIDATION,
    "PTR127": Refusal.UNDEFINED,
    **{f"PTR13{digit}": Refusal.NOT_MODELED for digit in range(10)},
}


def refusal_in(text: str) -> Refusal | None:
    """The class of the error in a message; None if it has no code."""
    code = code_in(text)
    return _BY_CODE.get(code, Refusal.OTHER) if code else None
