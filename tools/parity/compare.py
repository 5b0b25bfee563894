"""Compares results of the old path with the CPU's: values, indices of equal elements, and unwritten memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from parity.outcomes import AGREE, DIFFER, OTHER_TYPE, Outcome
from porter.core.dtypes import ALL, Kind

Tolerance = Mapping[str, float | None]
PLAIN: Tolerance = {"rtol": None, "atol": None}  # torch.testing's own
FRESH_BYTE = 0xCB  # PORTER_FRESH_BYTE of device/memory.h
_DOUBLE: Mapping[torch.dtype, torch.dtype] = {
    getattr(torch, dtype.torch): getattr(torch, dtype.wide.torch)
    for dtype in ALL
    if dtype.kind in (Kind.FLOATING, Kind.COMPLEX)
}
_SINGLE = {_DOUBLE[single]: single for single in (torch.float32, torch.complex64)}
HALVES = tuple(getattr(torch, dtype.torch) for dtype in ALL if dtype.is_reduced)
# A difference is small up to this part of the largest magnitude in the result.
BOUNDS = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float32: 1e-4, torch.complex64: 1e-4, torch.complex32: 1e-2}


def compare_results(got: Any, want: Any, wide: Tolerance) -> Outcome:
    """Compares results with the tolerances of the fork's own tests; returns the worst outcome."""
    mine, theirs = pytree.tree_leaves(got), pytree.tree_leaves(want)
    if len(mine) != len(theirs):
        return Outcome(DIFFER, f"{len(mine)} results, the CPU gives {len(theirs)}", values=False)
    outcomes = [_compare_leaf(a, b, wide) for a, b in zip(mine, theirs, strict=True)]
    order = (DIFFER, AGREE)
    return min(outcomes, key=lambda o: (o.values, order.index(o.verdict)), default=Outcome(AGREE))


def _compare_leaf(got: Any, want: Any, wide: Tolerance) -> Outcome:
    if not (isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor)):
        return Outcome(AGREE) if type(got) is type(want) and _equal(got, want) else _compare_numbers(got, want)
    if got.dtype != want.dtype or got.shape != want.shape:
        message = f"{got.dtype} {tuple(got.shape)}, the CPU gives {want.dtype} {tuple(want.shape)}".replace(
            "torch.", ""
        )
        alike = got.shape == want.shape and _compare_leaf(*_in_one_type(got, want), wide).verdict == AGREE
        return Outcome(DIFFER, f"{OTHER_TYPE}: {message}" if alike else message, values=False)
    try:
        torch.testing.assert_close(
            got, want, equal_nan=True, check_device=False, check_stride=False, rtol=wide["rtol"], atol=wide["atol"]
        )
    except AssertionError as error:
        return Outcome(DIFFER, " ".join(str(error).split())[:200])
    return Outcome(AGREE)


def _in_one_type(got: torch.Tensor, want: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both in the CPU's dtype, or in the device's if that is the narrower float."""
    if _SINGLE.get(want.dtype) is got.dtype:
        return got, want.to(got.dtype)
    return got.to(want.dtype), want


def _compare_numbers(got: Any, want: Any) -> Outcome:
    close = isinstance(got, float) and isinstance(want, float) and math.isclose(got, want, rel_tol=1e-4)
    return Outcome(AGREE if close else DIFFER, "" if close else f"{got!r}, the CPU gives {want!r}"[:160])


def to_double(value: Any) -> Any:
    """Converts a real or complex float tensor or dtype to double precision; returns anything else unchanged."""
    if isinstance(value, torch.dtype):
        return _DOUBLE.get(value, value)
    if not isinstance(value, torch.Tensor) or value.dtype not in _DOUBLE:
        return value
    return value.detach().to(_DOUBLE[value.dtype]).requires_grad_(value.requires_grad)


def to_double_types(value: Any) -> Any:
    """As `to_double`, but also converts integer dtypes."""
    return torch.float64 if isinstance(value, torch.dtype) and not value.is_complex else to_double(value)


def to_single(value: Any) -> Any:
    """Converts a half-precision tensor or dtype to single precision; returns anything else unchanged."""
    if isinstance(value, torch.dtype):
        return torch.float32 if value in HALVES else value
    if not isinstance(value, torch.Tensor) or value.dtype not in HALVES:
        return value
    return value.detach().float().requires_grad_(value.requires_grad)


def is_near(got: Any, want: Any) -> bool:
    """Whether results of equal dtypes and shapes are close, and finite in the same places."""
    pairs = zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=True)
    return all(_is_leaf_near(a, b) for a, b in pairs if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor))


def _is_leaf_near(got: torch.Tensor, want: torch.Tensor) -> bool:
    finite = want.isfinite()
    if not torch.equal(got.isfinite(), finite):
        return False
    a, b = (each[finite].to(torch.complex128 if each.is_complex() else torch.float64) for each in (got, want))
    bound = BOUNDS.get(want.dtype, 0.0)
    return not a.numel() or float((a - b).abs().max()) <= bound * float(b.abs().max())


def lie_between(want: Any, others: Sequence[Any]) -> bool:
    """Whether every element lies between those of the others, which have the same dtypes and shapes."""
    return all(_lies_between(*leaves) for leaves in zip(*map(pytree.tree_leaves, (want, *others)), strict=True))


def _lies_between(want: Any, *others: Any) -> bool:
    tensors = [each for each in (want, *others) if isinstance(each, torch.Tensor) and not each.is_complex()]
    if len(tensors) != 1 + len(others) or len({(each.dtype, each.shape) for each in tensors}) != 1:
        return False
    stacked = torch.stack(tensors[1:])
    inside = (stacked.amin(0) <= want) & (want <= stacked.amax(0))
    return bool((inside | (want.isnan() & stacked.isnan().all(0))).all())


def round_like(exact: Any, want: Any) -> Any:
    """Converts results to the dtypes of `want`."""

    def narrow(value: Any, like: Any) -> Any:
        both = isinstance(value, torch.Tensor) and isinstance(like, torch.Tensor)
        return value.detach().to(like.dtype) if both and value.dtype is not like.dtype else value

    pairs = zip(pytree.tree_leaves(exact), pytree.tree_leaves(want), strict=False)
    return [narrow(value, like) for value, like in pairs]


def is_unwritten(got: Any, want: Any, untouched: Sequence[bool]) -> bool:
    """Whether results differ only where nothing wrote to the allocated memory."""
    pairs = zip(pytree.tree_leaves(got), pytree.tree_leaves(want), untouched, strict=True)
    tensors = [(a, b, new) for a, b, new in pairs if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)]
    wrong = [(a[~torch.isclose(a, b, equal_nan=True)], new) for a, b, new in tensors if not a.is_complex()]
    left = [(each.reshape(-1).contiguous().view(torch.uint8), new) for each, new in wrong if each.numel()]
    return bool(left) and all(new and bool((each == FRESH_BYTE).all()) for each, new in left)


def pick_equal_elements(source: Any, got: Any, want: Any) -> bool:
    """Whether results differ only in indices that pick equal elements of the source along a dimension."""
    pairs = list(zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=False))
    if not all(isinstance(t, torch.Tensor) for pair in pairs for t in (source, *pair)):
        return False
    differing = [(a, b) for a, b in pairs if not _equal(a, b)]
    return bool(differing) and all(_picks_equal(source, a, b) for a, b in differing)


def _picks_equal(source: torch.Tensor, got: torch.Tensor, want: torch.Tensor) -> bool:
    if got.dtype is not torch.int64 or want.dtype is not torch.int64 or got.shape != want.shape:
        return False
    return any(
        _equal(torch.take_along_dim(source, got, dimension), torch.take_along_dim(source, want, dimension))
        and _has_repeats(got, dimension) == _has_repeats(want, dimension)
        for dimension in _find_dimensions(source, got)
        if got.numel() and int(got.min()) >= 0 and int(got.max()) < source.shape[dimension]
    )


def _has_repeats(places: torch.Tensor, dimension: int) -> bool:
    """Whether an index occurs twice along a dimension."""
    return bool((places.sort(dimension).values.diff(dim=dimension) == 0).any())


def _find_dimensions(source: torch.Tensor, places: torch.Tensor) -> list[int]:
    """The dimensions of the source that the indices may be along: all others have equal sizes."""
    if places.ndim != source.ndim or not source.ndim:
        return []
    differing = [d for d in range(source.ndim) if places.shape[d] != source.shape[d]]
    return list(range(source.ndim)) if not differing else differing if len(differing) == 1 else []


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a.shape == b.shape and bool((torch.eq(a, b) | (torch.isnan(a) & torch.isnan(b))).all())
    return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))
