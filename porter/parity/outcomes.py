"""What samples of the old path show: values that are kept, and read without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

AGREE, UNDEFINED, PRECISION, DIFFER, REFUSED = "agree", "undefined", "precision", "differ", "refused"
UNCOMPARED, CRASHED = "uncompared", "died"
GRADIENT = " gradient"
UNWRITTEN = "never written"
LATE = "floats that are converted at the end give it"
NAN_LOST = "with operations that keep NaN it agrees"
OTHER_TYPE = "the values agree in another type"


@dataclass(frozen=True)
class Outcome:
    """What one sample showed, and why where it is not agreement; `values` where shapes and types agree at least.

    `UNDEFINED` agrees as far as the operator says what its values are: random numbers, the order of equal elements.
    `UNCOMPARED` is a sample without a reference: the CPU refuses it, or there is nothing to compare.
    """

    verdict: str
    why: str = ""
    values: bool = True


@dataclass(frozen=True)
class OpInfoResult:
    """An OpInfo, the operators it is named after, and a kind of sample: a torch type, or one with `GRADIENT`.

    `counts` are of samples by verdict, `reasons` of those that do not agree by (verdict, why). `graphs` is how many
    graphs were run, `reached` the operators on the way, `fallbacks` those of them that ran on the CPU instead.
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
