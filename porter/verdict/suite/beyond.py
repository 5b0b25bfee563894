"""Results in types that the CPU has no kernel for, compared with those of a wider type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from porter.verdict.suite import compare

WIDER: Mapping[torch.dtype, torch.dtype] = {
    torch.complex32: torch.complex64,
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
}
# Of the result, what one rounding of a computation in 32 bits may be off by, and of the operands, for cancellation.
_ULP, _CANCELLED = 1.0, 2.0**-22


def convert(wide: torch.dtype, dtype: torch.dtype) -> Callable[[Any], Any]:
    """Converts tensors of a type to another one, and nothing else."""
    return lambda value: value.to(dtype) if isinstance(value, torch.Tensor) and value.dtype == wide else value


def excess(
    got: torch.Tensor, exact: torch.Tensor, inputs: Sequence[torch.Tensor], theirs: torch.Tensor | None = None
) -> str:
    """Where a result is off by more than one unit of its type, or is of another one than the wide `exact` rounds to.

    Only what is a normal number of the type counts: all of a complex number is one. Bools and integers
    have to be equal. What is within one unit of `theirs`, which the CPU computes in 32 bits, is as good as that:
    functions that magnify the rounding of large arguments are exact in neither.
    """
    if not got.is_floating_point() and not got.is_complex():
        return _describe(got != exact.to(got.dtype), got, exact, inputs, "differ")
    info = torch.finfo(got.dtype)
    mine = _double(got)
    size = exact.abs()
    counted = (size >= info.smallest_normal) & (size <= info.max / 2)
    largest = torch.stack([_double(each).abs().expand(size.shape).nan_to_num() for each in inputs]).amax(0)
    spacing = torch.exp2(torch.floor(torch.log2(torch.where(counted, size, 1.0)))) * info.eps
    off = (mine - exact).abs().nan_to_num(nan=torch.inf)
    over = counted & (off > _ULP * spacing + _CANCELLED * largest)
    if theirs is not None:
        both_nan = mine.isnan() & theirs.isnan()
        over &= ~(both_nan | ((mine - _double(theirs)).abs() <= _ULP * spacing))
    return _describe(over, mine, exact, inputs, "are off by more than one ULP")


def _describe(
    wrong: torch.Tensor, got: torch.Tensor, exact: torch.Tensor, inputs: Sequence[torch.Tensor], how: str
) -> str:
    """Returns how many elements are wrong and the first of them, or "" if none is."""
    if not bool(wrong.any()):
        return ""
    at = int(wrong.flatten().nonzero()[0])
    place = compare.describe_operands(list(inputs), at)
    values = f"{got.flatten()[at].item()} for {exact.flatten()[at].item()}"
    return f"{int(wrong.sum())} of {wrong.numel()} {how}, first at {place}: {values}"


def _double(value: torch.Tensor) -> torch.Tensor:
    return value.to(torch.complex128 if value.is_complex() else torch.float64)
