"""How close two results have to be, and where they are not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten_with_path, tree_leaves

# Relative and absolute: the device and the CPU may add in another order, and five steps carry the difference on. The
# 16-bit types get five or six units in the last place of 1.
TOLERANCES: Mapping[torch.dtype, tuple[float, float]] = {
    torch.float32: (1e-4, 1e-5),
    torch.float16: (1e-2, 6e-3),
    torch.bfloat16: (6e-2, 4e-2),
}


@dataclass(frozen=True)
class Difference:
    """A place where the device and the CPU differ, and how."""

    place: str
    told: str

    def __str__(self) -> str:
        return f"{self.place}: {self.told}"


def differences(got: Any, expected: Any, dtype: torch.dtype) -> Iterator[Difference]:
    """Every leaf of two nested results that differs by more than the tolerance of `dtype`."""
    left, left_shape = tree_flatten_with_path(got)
    right, right_shape = tree_flatten_with_path(expected)
    if left_shape != right_shape:
        yield Difference("result", f"{left_shape}, not {right_shape}")
        return
    for (path, mine), (_, theirs) in zip(left, right, strict=True):
        told = _difference(mine, theirs, dtype)
        if told:
            yield Difference("".join(map(str, path)), told)


def identical(got: Any, expected: Any) -> bool:
    """Whether every leaf has the same bits."""
    left, right = (tree_flatten_with_path(value)[0] for value in (got, expected))
    return len(left) == len(right) and all(_same(a, b) for (_, a), (_, b) in zip(left, right, strict=True))


def same_layout(got: Any, expected: Any) -> bool:
    """Whether every tensor has the same strides."""
    left, right = (tree_leaves(value) for value in (got, expected))
    pairs = [(a, b) for a, b in zip(left, right, strict=True) if isinstance(a, torch.Tensor)]
    return all(a.stride() == b.stride() for a, b in pairs)


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """A copy on the CPU that nothing changes later; dense, because sparse ones do not compare everywhere."""
    copied = tensor.detach().cpu()
    return (copied.to_dense() if copied.layout != torch.strided else copied).clone()


def _difference(mine: Any, theirs: Any, dtype: torch.dtype) -> str:
    if not isinstance(mine, torch.Tensor) or not isinstance(theirs, torch.Tensor):
        return "" if _same_value(mine, theirs, TOLERANCES.get(dtype, (0.0, 0.0))) else f"{mine!r}, not {theirs!r}"
    if (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
        return f"{mine.dtype} {tuple(mine.shape)}, not {theirs.dtype} {tuple(theirs.shape)}"
    relative, absolute = TOLERANCES.get(dtype, (0.0, 0.0))
    try:
        torch.testing.assert_close(mine, theirs, rtol=relative, atol=absolute, equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""


def _same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, torch.Tensor) and isinstance(theirs, torch.Tensor):
        return mine.dtype == theirs.dtype and mine.shape == theirs.shape and _equal(mine, theirs)
    return _same_value(mine, theirs, (0.0, 0.0))


def _same_value(mine: Any, theirs: Any, tolerance: tuple[float, float]) -> bool:
    if isinstance(mine, float) and isinstance(theirs, float):
        close = math.isclose(mine, theirs, rel_tol=tolerance[0], abs_tol=tolerance[1])
        return close or (math.isnan(mine) and math.isnan(theirs))
    return bool(mine == theirs)


def _equal(mine: torch.Tensor, theirs: torch.Tensor) -> bool:
    return (
        torch.equal(mine.nan_to_num(), theirs.nan_to_num()) if mine.is_floating_point() else torch.equal(mine, theirs)
    )
