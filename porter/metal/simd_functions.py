"""The simd functions of reductions.

Source: Metal Shading Language Specification, section 6.9 (SIMD-group functions).
"""

from __future__ import annotations

from collections.abc import Mapping

from porter.core.dtypes import DType, Kind
from porter.loops.expressions import ReductionKind

_SHARED: Mapping[ReductionKind, str] = {
    ReductionKind.SUM: "simd_sum", ReductionKind.MAX_NAN: "simd_max", ReductionKind.MIN_NAN: "simd_min",
    ReductionKind.ANY: "simd_any", ReductionKind.ALL: "simd_all",
}  # fmt: skip


def join_simdgroup(kind: ReductionKind, dtype: DType, name: str, _type: str) -> tuple[str, ...] | None:
    """How the lanes of a simdgroup combine what each has reduced; None where no simd function does."""
    if kind not in _SHARED or dtype.size > 4:  # simd functions take 32 bits
        return None
    joined = f"{_SHARED[kind]}({name})"
    keeps_nan = kind in (ReductionKind.MAX_NAN, ReductionKind.MIN_NAN) and dtype.kind is Kind.FLOATING
    return (f"{name} = {f'simd_any(isnan({name})) ? NAN : {joined}' if keeps_nan else joined};",)
