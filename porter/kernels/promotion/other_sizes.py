"""Calls of a stage with other sizes than its script gives: one tensor's alone, or those of several together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class OtherCall:
    """Arguments of a call, and which of them have what other sizes."""

    what: str
    arguments: tuple[Any, ...]

    @property
    def shapes(self) -> tuple[tuple[int, ...] | None, ...]:
        """The shape of each argument; None for a number."""
        return tuple(tuple(each.shape) if isinstance(each, Tensor) else None for each in self.arguments)


def without_values(call: OtherCall) -> OtherCall | None:
    """The call with zeros for its integers, which may be places in a tensor that is shorter now; None without any."""
    zeros = [_zero(each) for each in call.arguments]
    same = all(one is other for one, other in zip(zeros, call.arguments, strict=True))
    return None if same else OtherCall(call.what, tuple(zeros))


def _zero(value: Any) -> Any:
    is_integer = isinstance(value, Tensor) and not value.is_floating_point() and value.dtype != torch.bool
    return torch.zeros_like(value) if is_integer else value


_Slot = tuple[int, int]  # the place of an argument, and a dimension of it


def vary_alone(names: Sequence[str], arguments: Sequence[Any]) -> Iterator[OtherCall]:
    """Each dimension of each tensor one shorter and one longer, of one element and empty; each with other ranks."""
    for at, dim in _list_slots(arguments):
        size = arguments[at].shape[dim]
        for other in dict.fromkeys((size - 1, size + 1, 1, 0)):
            if other >= 0 and other != size:
                what = f"{names[at]} with {other} for {size} in dimension {dim}"
                yield OtherCall(what, _resize(arguments, {(at, dim): other}))
    for at, tensor in enumerate(arguments):
        if isinstance(tensor, Tensor):
            more = torch.stack((tensor, tensor.flatten().roll(1).reshape(tensor.shape)))  # which differ
            yield OtherCall(f"{names[at]} with a dimension more", with_argument(arguments, at, more))
            yield OtherCall(f"{names[at]} with one more of one element", with_argument(arguments, at, tensor[None]))
            if tensor.dim() and tensor.shape[0]:
                yield OtherCall(f"{names[at]} with a dimension less", with_argument(arguments, at, tensor[0].clone()))


def vary_together(names: Sequence[str], arguments: Sequence[Any]) -> Iterator[OtherCall]:
    """Longer together: two dimensions, where one is a multiple of the other or equal, and all dimensions of a size."""
    slots = _list_slots(arguments)
    sizes = {slot: arguments[slot[0]].shape[slot[1]] for slot in slots}
    for one, other in combinations(slots, 2):
        least, most = sorted((one, other), key=lambda slot: sizes[slot])
        if sizes[least] and sizes[most] % sizes[least] == 0:
            longer = {least: sizes[least] + 1, most: sizes[most] + sizes[most] // sizes[least]}
            what = " and ".join(f"{names[at]} longer in dimension {dim}" for at, dim in (one, other))
            yield OtherCall(what, _resize(arguments, longer))
    for size in dict.fromkeys(sizes.values()):
        alike = [slot for slot in slots if sizes[slot] == size]
        for changed in (size + 1, 0):
            if changed != size:
                yield OtherCall(f"{changed} for every {size}", _resize(arguments, dict.fromkeys(alike, changed)))


def _list_slots(arguments: Sequence[Any]) -> list[_Slot]:
    return [(at, dim) for at, each in enumerate(arguments) if isinstance(each, Tensor) for dim in range(each.dim())]


def with_argument(arguments: Sequence[Any], at: int, value: Any) -> tuple[Any, ...]:
    """The arguments with another value in one place."""
    return (*arguments[:at], value, *arguments[at + 1 :])


def _resize(arguments: Sequence[Any], sizes: dict[_Slot, int]) -> tuple[Any, ...]:
    """The arguments with elements left out at the end of dimensions, or with those from the beginning once more."""
    resized = list(arguments)
    for (at, dim), size in sizes.items():
        tensor = resized[at]
        if tensor.shape[dim]:
            index = torch.arange(size, device=tensor.device) % tensor.shape[dim]
            resized[at] = tensor.index_select(dim, index)
        else:
            resized[at] = tensor.new_zeros([*tensor.shape[:dim], size, *tensor.shape[dim + 1 :]])
    return tuple(resized)
