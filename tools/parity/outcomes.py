"""The outcomes of samples on the old path, as values that can be saved and read without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

AGREE, UNDEFINED, PRECISION, DIFFER, REFUSED = "agree", "undefined", "precision", "differ", "refused"
UNCOMPARED, CRASHED = "uncompared", "died"
GRADIENT = " gradient"
UNWRITTEN = "never written"
LATE = "computing in floats and converting at the end gives this result"
NAN_LOST = "agrees with operations that propagate NaN"
OTHER_TYPE = "the values agree in another dtype"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one sample, and why it does not agree. `values`: shapes and dtypes agree, so values were compared.

    `UNDEFINED` agrees as far as values are defined; random numbers and the order of equal elements are not.
    `UNCOMPARED` has no reference: the CPU raises an error, or there is nothing to compare.
    """

    verdict: str
    why: str = ""
    values: bool = True


@dataclass(frozen=True)
class OpInfoResult:
    """The outcomes of an OpInfo for one kind of sample: a torch dtype, perhaps with `GRADIENT`.

    `names` are the operators it is named for. `counts` has samples by verdict, `reasons` those that do not agree by
    (verdict, why). `graphs` is the number of graphs run, `reached` the operators called, `fallbacks` those of them
    that ran on the CPU.
    """

    op: str
    names: tuple[str, ...]
    kind: str
    counts: dict[str, int]
    reasons: tuple[tuple[str, str, int], ...] = ()
    graphs: int = 0
    reached: tuple[str, ...] = ()
    fallbacks: tuple[str, ...] = ()

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> OpInfoResult:
        """The inverse of `dataclasses.asdict`, from JSON."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        fields["reasons"] = tuple(tuple(reason) for reason in values["reasons"])
        return OpInfoResult(**fields)
