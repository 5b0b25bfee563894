"""The table of MPSGraph operations, `selectors.yaml`: selector, element type of the result, MSL form, torch form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

_TABLE = Path(__file__).with_name("selectors.yaml")
# Source: MSL specification chapter 6.5; what has overloads for integers (abs, clamp, max, min) is in 6.4.
_REAL = re.compile(r"precise::|c10::metal::erf|::metal::(ceil|floor|isfinite|isinf|isnan|rint|sign|signbit|trunc)\(")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Selector:
    """One operation. `result` is the index of the argument whose element type the result has, None for bool.

    `sends` are the operations that a category of PyTorch's own sends instead, for floating types and for others.
    """

    op: str
    selector: str
    result: int | None
    msl: str
    torch: str
    sends: tuple[str, ...] = ()

    @property
    def is_real(self) -> bool:
        """Whether its MSL form is a function of real numbers, to which an integer would be rounded."""
        return bool(_REAL.search(self.msl))


@lru_cache(maxsize=1)
def by_op() -> dict[str, Selector]:
    """The rows by operation."""
    rows = yaml.load(_TABLE.read_text(), Loader=_Loader)
    return {
        op: Selector(op, selector, None if result == "bool" else int(result), msl, torch, tuple(*sends))
        for op, (selector, result, msl, torch, *sends) in rows.items()
    }


@lru_cache(maxsize=1)
def by_selector() -> dict[str, Selector]:
    """The rows by selector, without the trailing `name:`."""
    return {row.selector: row for row in by_op().values()}
