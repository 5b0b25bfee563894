"""Inputs that a kernel should be tried with, made from one example of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import torch

from porter.kernels.call import DEVICE, Value

FLOATING = (torch.float32, torch.float16, torch.bfloat16)
# What an example is multiplied with to get large values; squares of half's have to fit too.
_LARGE = {torch.float32: 1e4, torch.bfloat16: 1e4, torch.float16: 64.0}
Change = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class Case:
    """Inputs on the CPU and what is special about them. `place` moves each to the device, in its own layout."""

    name: str
    inputs: tuple[Value, ...]
    place: Change


def to_device(tensor: torch.Tensor) -> torch.Tensor:
    """A dense copy on the device."""
    return tensor.contiguous().to(DEVICE)


def cases(inputs: Sequence[Value], dtypes: Collection[torch.dtype], fixed: Collection[int]) -> Iterator[Case]:
    """The example itself, in each of `dtypes`, in other layouts, with other lengths, and with large values.

    Dimensions of one length change together; lengths that are in `fixed` stay.
    """
    example = tuple(v.detach().cpu() if isinstance(v, torch.Tensor) else v for v in inputs)
    yield Case("as given", example, to_device)
    for dtype in dtypes:
        converted = _change_floating(example, lambda t, dtype=dtype: t.to(dtype))  # type: ignore[misc]
        yield Case(str(dtype).removeprefix("torch."), converted, to_device)
    for name, place in _LAYOUTS:
        yield Case(name, example, place)
    for length in _lengths(example, fixed):
        for other in _other_lengths(length):
            resized = tuple(_resize(v, length, other) if isinstance(v, torch.Tensor) else v for v in example)
            yield Case(f"{length} -> {other}", resized, to_device)
    for dtype in dtypes:
        large = _change_floating(example, lambda t, dtype=dtype: (t * _LARGE.get(dtype, 1)).to(dtype))  # type: ignore[misc]
        yield Case(f"large {str(dtype).removeprefix('torch.')}", large, to_device)


def _change_floating(inputs: Sequence[Value], change: Change) -> tuple[Value, ...]:
    return tuple(change(v) if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in inputs)


def _lengths(inputs: Sequence[Value], fixed: Collection[int]) -> list[int]:
    found = dict.fromkeys(n for v in inputs if isinstance(v, torch.Tensor) for n in v.shape)
    return [n for n in found if n > 0 and n not in fixed]


def _other_lengths(length: int) -> tuple[int, ...]:
    """None, one, one more, and one that no power of two divides."""
    return tuple(dict.fromkeys(n for n in (0, 1, length + 1, 2 * length + 35 - length % 2) if n != length))


def _resize(tensor: torch.Tensor, length: int, other: int) -> torch.Tensor:
    """`tensor` with dimensions of `length` repeated or cut to `other`."""
    for dimension, size in enumerate(tensor.shape):
        if size == length:
            tensor = tensor.index_select(dimension, torch.arange(other) % max(size, 1))
    return tensor


def _transposed(tensor: torch.Tensor) -> torch.Tensor:
    """The last dimension varies slowest."""
    return to_device(tensor.movedim(-1, 0)).movedim(0, -1) if tensor.dim() > 1 else _stepped(tensor)


def _stepped(tensor: torch.Tensor) -> torch.Tensor:
    """Every second element of the last dimension, the first left out."""
    if tensor.dim() == 0:
        return to_device(tensor)
    wide = torch.zeros(*tensor.shape[:-1], 2 * tensor.shape[-1] + 1, dtype=tensor.dtype)
    wide[..., 1::2] = tensor
    return to_device(wide)[..., 1::2]


def _offset(tensor: torch.Tensor) -> torch.Tensor:
    """Dense, but not at the start of its memory."""
    whole = torch.cat((torch.zeros(3, dtype=tensor.dtype), tensor.reshape(-1)))
    return to_device(whole)[3:].view(tensor.shape)


_LAYOUTS = (("transposed", _transposed), ("every second element", _stepped), ("storage offset", _offset))
