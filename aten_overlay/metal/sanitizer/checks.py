"""The sanitizer's checks, and which of them this process asks for: the only reader of `$PORTER_SANITIZE` and
`$PORTER_ALLOW_BYTES`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aten_overlay.errors import OverlayError

VARIABLE = "PORTER_SANITIZE"
ALLOW_BYTES = "PORTER_ALLOW_BYTES"  # tensors may be views of bytes, of integers
ALL, NONE = "all", "none"


@dataclass(frozen=True)
class Check:
    """A check by name. `bit` is what the runtime knows it by (runtime/sanitizer.h).

    Verdicts make those `in_verdicts` by themselves: a fork's numbers may wrap before they are checked. `all` are those
    whose findings are faults: kernels may mean to make an infinity.
    """

    name: str
    bit: int
    finds: str
    in_verdicts: bool = True
    in_all: bool = True


CHECKS = (
    Check("races", 0, "two threads access a byte, one writes, and nothing orders them"),
    Check("uninitialized", 1, "a read of memory that nothing wrote, and results that no thread wrote"),
    Check("bounds", 2, "an access beyond what is bound, or beyond the tensor that it is"),
    Check("alignment", 3, "an access at an address that its type forbids"),
    Check("readonly", 4, "a write through an argument that is bound for reading"),
    Check("private", 5, "a private variable used before it has a value"),
    Check("endless", 6, "a thread that repeats atomic accesses without end"),
    Check("overflow", 7, "an integer too wide for its type on the way to an address", in_verdicts=False),
    Check("arithmetic", 10, "a use of an integer divided by 0, or of a float out of range for one", in_verdicts=False),
    Check("nan", 8, "an operation that makes NaN or infinity of finite numbers", in_verdicts=False, in_all=False),
    Check("lanes", 16, "a result that depends on what a shuffle read from an inactive lane"),
    Check("barriers", 17, "a barrier that only some threads reach, or several barriers at once"),
)
_WITH_TYPES, _TYPES = "bounds", 1 << 9
NAMES = tuple(check.name for check in CHECKS if check.in_all)
KNOWN = tuple(check.name for check in CHECKS)
IN_VERDICTS = tuple(check.name for check in CHECKS if check.in_verdicts)


def select(default: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The checks asked for, in the order of CHECKS; `default` where nothing is said. Raises PTR260."""
    text = (os.environ if environment is None else environment).get(VARIABLE)
    return tuple(default) if text is None else parse(text)


def parse(text: str) -> tuple[str, ...]:
    """The checks of a list such as `races,bounds`; `all` are all, `none` or nothing is none. Raises PTR260."""
    asked = [name.strip() for name in text.split(",") if name.strip()]
    for name in asked:
        if name not in (*KNOWN, ALL, NONE):
            names = ", ".join((*KNOWN, ALL, NONE))
            raise OverlayError("PTR260", f"the sanitizer has no check named `{name}`", hint=f"Its checks: {names}.")
    return tuple(name for name in KNOWN if (ALL in asked and name in NAMES) or name in asked)


def mask(names: Sequence[str]) -> int:
    """The bits of some checks. With bounds come the types of tensors, unless views of their bytes are allowed."""
    types = _TYPES if _WITH_TYPES in names and os.environ.get(ALLOW_BYTES, "") in ("", "0") else 0
    return sum(1 << check.bit for check in CHECKS if check.name in names) | types
