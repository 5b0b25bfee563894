"""Inputs that OpInfo samples leave out: memory layouts, mixed dtypes, empty and 0-d tensors, and edge values.

They are created on the CPU and copied to the device with the same storage, strides and offset.
"""

# mypy: disable-error-code="no-untyped-call, misc, no-any-return"

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput

Transform = Callable[[torch.Tensor], torch.Tensor]

OFFSET = 3


def mirror(value: Any, device: str) -> Any:
    """A copy on `device`. Tensors keep their strides (even 0) and storage offset; a `device` argument for the CPU
    becomes `device`; anything else is unchanged.

    CPU scalars marked with `stay_on_cpu` are not copied.
    """
    if isinstance(value, (list, tuple)):
        return type(value)(mirror(v, device) for v in value)
    if isinstance(value, dict):
        return {k: device if k == "device" and str(v) == "cpu" else mirror(v, device) for k, v in value.items()}
    if not isinstance(value, torch.Tensor) or getattr(value, "stays_on_cpu", False):
        return value
    return _mirror(value, device)


def _mirror(tensor: torch.Tensor, device: str) -> torch.Tensor:
    if tensor.is_conj() or tensor.is_neg() or tensor.layout != torch.strided:
        return tensor.detach().to(device, copy=True).requires_grad_(tensor.requires_grad)
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    flat = tensor.detach().as_strided((count,), (1,), 0).to(device, copy=True)
    view = flat.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    return view.requires_grad_(tensor.requires_grad)


def on_device(sample: SampleInput) -> SampleInput:
    """Moves a sample's tensors and `device` argument to the device. Raises TypeError for float64."""
    moved = sample.transform(_to_device)
    if str(moved.kwargs.get("device", "")).startswith("cpu"):
        moved.kwargs = {**moved.kwargs, "device": torch.device("mps")}
    return moved


def _to_device(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().to("mps").requires_grad_(value.requires_grad)


def copy_sample(sample: SampleInput) -> SampleInput:
    """Copies a sample and keeps its layout, because an operator may write to its arguments."""
    return sample.transform(lambda value: mirror(value, "cpu"))


def stay_on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """Marks a 0-d tensor as a CPU scalar operand."""
    tensor.stays_on_cpu = True  # type: ignore[attr-defined]
    return tensor


def transpose(t: torch.Tensor) -> torch.Tensor:
    return t.transpose(-1, -2).contiguous().transpose(-1, -2) if t.ndim > 1 else t


def take_every_second(t: torch.Tensor) -> torch.Tensor:
    return t.repeat_interleave(2, -1)[..., ::2] if t.ndim else t


def shift(t: torch.Tensor) -> torch.Tensor:
    storage = torch.cat([t.new_ones(OFFSET), t.flatten()])
    return storage[OFFSET:].view(t.shape)


def expand(t: torch.Tensor) -> torch.Tensor:
    return t[..., :1].expand(t.shape) if t.ndim and t.shape[-1] else t


def empty(t: torch.Tensor) -> torch.Tensor:
    return t[:0] if t.ndim else t


def scalar(t: torch.Tensor) -> torch.Tensor:
    return t.flatten()[0].clone() if t.numel() else t


LAYOUTS: dict[str, Transform] = {
    "transposed": transpose,
    "every second element": take_every_second,
    "storage offset": shift,
    "expanded": expand,
}
POINTWISE: dict[str, Transform] = {"empty": empty, "0-d": scalar}


def vary_layouts(sample: SampleInput, pointwise: bool) -> Iterator[tuple[str, SampleInput]]:
    """Yields the sample with other layouts for all tensors, then for one, with names for messages."""
    for name, change in LAYOUTS.items():
        yield name, sample.transform(_on_tensors(change))
        if len(list(_tensors(sample))) > 1:
            yield f"{name}, first tensor alone", sample.transform(_on_tensors(change, only=0))
            yield f"{name}, second tensor alone", sample.transform(_on_tensors(change, only=1))
    if pointwise and len({t.shape for t in _tensors(sample)}) == 1:
        for name, change in POINTWISE.items():
            yield name, sample.transform(_on_tensors(change))


def vary_operands(sample: SampleInput, others: list[torch.dtype]) -> Iterator[tuple[str, SampleInput]]:
    """The sample with its second tensor in other types, as a CPU scalar, as a 0-d tensor and broadcast."""
    if len(list(_tensors(sample))) != 2:
        return
    for dtype in others:
        yield f"with {_short(dtype)}", sample.transform(_on_tensors(lambda t, d=dtype: _cast(t, d), only=1))
        yield f"{_short(dtype)} first", sample.transform(_on_tensors(lambda t, d=dtype: _cast(t, d), only=0))
    yield "with a CPU scalar", sample.transform(_on_tensors(lambda t: stay_on_cpu(scalar(t)), only=1))
    yield "CPU scalar first", sample.transform(_on_tensors(lambda t: stay_on_cpu(scalar(t)), only=0))
    if all(t.dtype.is_floating_point for t in _tensors(sample)):  # beside integers its type would be the result's
        yield "with a float64 CPU scalar", sample.transform(_on_tensors(_wide_scalar, only=1))
    yield "with a 0-d tensor", sample.transform(_on_tensors(scalar, only=1))
    yield "second broadcast", sample.transform(_on_tensors(lambda t: t[:1] if t.ndim else t, only=1))
    yield "first broadcast", sample.transform(_on_tensors(lambda t: t[..., :1] if t.ndim else t, only=0))


def edge_values(dtype: torch.dtype) -> torch.Tensor:
    """The values at the edges of a type, 1-d: signed zeros, infinities, NaN, denormals, extremes, and beyond 2^24."""
    if dtype == torch.bool:
        return torch.tensor([False, True])
    if dtype.is_complex:
        part = edge_values(torch.float32)
        plain = torch.tensor([0.0, -0.0, 1.0, -2.5])
        real, imaginary = torch.meshgrid(plain, plain, indexing="ij")
        mixed = torch.complex(part, part.flip(0))
        return torch.cat([torch.complex(real, imaginary).flatten(), mixed]).to(dtype)
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        ends = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.25, 100.0, info.tiny, info.max, info.smallest_normal / 4, info.eps]
        both = [s * v for v in (*ends, float("inf")) for s in (1, -1)]
        return torch.tensor([*both, float("nan")], dtype=torch.float64).to(dtype)
    whole = torch.iinfo(dtype)
    wanted = [0, 1, 2, 3, 7, 100, 2**24 - 1, 2**24 + 1, 2**24 + 3, 2**31 - 1, 2**53 + 1, 2**62 + 1, whole.max]
    # Leaves out the lowest value: dividing it by -1 traps on the CPU.
    signs = (1, -1) if whole.min else (1,)
    return torch.tensor([s * v for v in wanted if v <= whole.max for s in signs], dtype=dtype)


def with_edge_values(sample: SampleInput, dtype: torch.dtype) -> SampleInput:
    """The sample with its tensors of this type replaced by every combination (two tensors) or every value (others)."""
    values = edge_values(dtype)
    count = sum(t.dtype == dtype for t in _tensors(sample))
    grid = [g.flatten() for g in torch.meshgrid(*[values] * count, indexing="ij")] if 1 <= count <= 2 else []
    turns = iter(range(count))

    def replace(t: torch.Tensor) -> torch.Tensor:
        if t.dtype != dtype:
            return scalar(t)
        turn = next(turns)
        return grid[turn].clone() if grid else values.roll(5 * turn).clone()

    return sample.transform(_each_tensor(replace))


def with_spread_values(
    sample: SampleInput, dtype: torch.dtype, domain: tuple[float | None, float | None] | None
) -> SampleInput:
    """The sample with its tensors of this type replaced by 4,096 values of every magnitude, inside the op's domain."""
    generator = torch.Generator().manual_seed(0)
    low, high = domain or (None, None)

    def values(t: torch.Tensor) -> torch.Tensor:
        if t.dtype != dtype:
            return scalar(t)
        plain = torch.empty(2048, dtype=torch.float64).uniform_(-8, 8, generator=generator)
        exponents = torch.empty(2048, dtype=torch.float64).uniform_(-12, 6, generator=generator)
        signs = torch.empty(2048, dtype=torch.float64).uniform_(-1, 1, generator=generator).sign()
        both = torch.cat([plain, signs * torch.exp2(exponents)])
        mixed = both[torch.randperm(4096, generator=generator)]
        return mixed.clamp(-math.inf if low is None else low, math.inf if high is None else high).to(dtype)

    return sample.transform(_each_tensor(values))


def remove_zeros(sample: SampleInput) -> SampleInput:
    """The sample with the second tensor positive: integer division and powers refuse the rest on the CPU."""
    return sample.transform(_on_tensors(lambda t: torch.where(t > 0, t, torch.ones_like(t)), only=1))


def _cast(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    with torch.no_grad():
        return t.detach().to(dtype)


def _wide_scalar(t: torch.Tensor) -> torch.Tensor:
    return stay_on_cpu(_cast(scalar(t), torch.float64))


def _tensors(sample: SampleInput) -> Iterator[torch.Tensor]:
    for value in (sample.input, *sample.args, *sample.kwargs.values()):
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (v for v in value if isinstance(v, torch.Tensor))


def _each_tensor(change: Transform) -> Callable[[Any], Any]:
    return lambda value: change(value) if isinstance(value, torch.Tensor) else value


def _on_tensors(change: Transform, only: int | None = None) -> Callable[[Any], Any]:
    """`change` for tensors, all or the n-th, for `SampleInput.transform`, which visits the arguments in order."""
    seen = iter(range(1_000_000))

    def visit(t: torch.Tensor) -> torch.Tensor:
        return change(t.detach()) if only in (None, next(seen)) else t.detach()

    return _each_tensor(visit)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
