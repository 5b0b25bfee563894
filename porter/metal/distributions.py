"""The table of random distributions, `distributions.yaml`: what a stub that draws numbers computes of random words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from porter.aten.stubs import Stub
from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.core.yaml_text import choose_loader

_TABLE = Path(__file__).with_name("distributions.yaml")
_DRAW = "c10::metal::philox4::rand("
_WRONG_ROUND = re.compile(r"\brc1\.y\s*\^\s*ctr\.y\b")  # of the lower word of a product
_WIDE = (dtypes.FLOAT, dtypes.BFLOAT, dtypes.LONG)
_KINDS = {
    "floating": (Kind.FLOATING,),
    "all": (Kind.FLOATING, Kind.INTEGRAL),
    "all_and_bool": (Kind.FLOATING, Kind.INTEGRAL, Kind.BOOL),
}


@dataclass(frozen=True)
class Distribution:
    """A row of the table. `operand` is the parameter that is a tensor, if one is."""

    types: str
    value: str
    params: tuple[str, ...] = ()
    operand: str = ""
    whole: bool = False
    result: str = "float"

    @property
    def dtypes(self) -> tuple[DType, ...]:
        if self.types == "wide":
            return _WIDE
        return tuple(each for each in dtypes.ALL if each.kind in _KINDS[self.types])

    @property
    def param(self) -> str:
        """The type of the parameters in Metal."""
        return dtypes.LONG.metal if self.whole else dtypes.FLOAT.metal


def with_own_words(text: str, header: str) -> str:
    """Kernels whose random words `draw_words` draws, unless the fork's header of Philox draws them right."""
    return text if header and not _WRONG_ROUND.search(header) else text.replace(_DRAW, "draw_words(")


def draws_numbers(stub: Stub) -> bool:
    """Whether a stub takes a generator of random numbers."""
    return any("Generator" in type_ for type_, _ in stub.signature)


@lru_cache(maxsize=1)
def distributions() -> dict[str, Distribution]:
    """Returns every row by stub."""
    text = _TABLE.read_text()
    rows = yaml.load(text, choose_loader(text))
    return {stub: Distribution(**{**row, "params": tuple(row.get("params", ()))}) for stub, row in rows.items()}
