"""Inputs that OpInfo samples leave out: memory layouts, mixed dtypes, empty and 0-d tensors, and edge values.

They are created on the CPU and copied to the device with the same storage, strides and offset.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count, islice
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils import _pytree as pytree

from porter.core.dtypes import name_torch
from porter.verdict.suite.layouts import APART, BEHIND, LAYOUTS, POINTWISE, scalar, take_every_second
from porter.verdict.suite.leaves import change_tensors, compute, list_passed, list_tensors, replace_argument

COMBINATIONS = 8192
SINGLE_VALUES = 16
LITERALS = 2
MOST_RESULTS = 1 << 20  # elements
_INDICES = (torch.int64, torch.int32)
_ON_CPU = re.compile(r"\bto be on (?:the )?cpu\b", re.I)
_SIGNED = (torch.int64, torch.int32, torch.int16, torch.int8)


def mirror(value: Any, device: str) -> Any:
    """A copy on `device`. Tensors keep their strides (even 0) and storage offset; a `device` argument for the CPU
    becomes `device`; anything else is unchanged.

    CPU scalars marked with `stay_on_cpu` are not copied.
    """
    if isinstance(value, (list, tuple)):
        return type(value)(mirror(v, device) for v in value)
    if isinstance(value, dict):
        return {k: device if k == "device" and str(v) == "cpu" else mirror(v, device) for k, v in value.items()}
    if not isinstance(value, torch.Tensor) or _stays_on_cpu(value):
        return value
    if value.is_conj() or value.is_neg() or value.layout != torch.strided:
        return value.detach().to(device, copy=True).requires_grad_(value.requires_grad)
    count = value.untyped_storage().nbytes() // value.element_size()
    flat = value.detach().as_strided((count,), (1,), 0).to(device, copy=True)
    view = flat.as_strided(value.size(), value.stride(), value.storage_offset())
    return view.requires_grad_(value.requires_grad)


def on_device(sample: SampleInput) -> SampleInput:
    """Moves a sample's tensors and `device` argument to the device. Raises TypeError for float64."""
    moved = change_tensors(sample, lambda tensor: tensor.detach().to("mps").requires_grad_(tensor.requires_grad))
    if str(moved.kwargs.get("device", "")).startswith("cpu"):
        moved.kwargs = {**moved.kwargs, "device": torch.device("mps")}
    return moved


def copy_sample(sample: SampleInput) -> SampleInput:
    """Copies a sample and keeps its layout, because an operator may write to its arguments."""
    return change_tensors(sample, lambda tensor: mirror(tensor, "cpu"))


def find_written(before: SampleInput, after: SampleInput) -> dict[int, torch.Tensor]:
    """The tensors that a call wrote to, by their places among all leaves of the arguments."""
    pairs = zip(*(pytree.tree_leaves(((each.input, *each.args), each.kwargs)) for each in (before, after)), strict=True)
    return {i: new for i, (old, new) in enumerate(pairs) if isinstance(new, torch.Tensor) and _differs(old, new)}


def _differs(old: torch.Tensor, new: torch.Tensor) -> bool:
    if old.shape != new.shape or old.layout != torch.strided or new.layout != torch.strided:
        return False
    same = (old == new) | ((old != old) & (new != new))
    return not bool(same.all())


def has_written_beside(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether the memory that a tensor is part of has changed where the tensor has no element.

    One that has another place in memory, or memory of another size, is a result of its own.
    """
    kept = (before.shape, before.stride(), before.storage_offset(), before.untyped_storage().nbytes())
    if kept != (after.shape, after.stride(), after.storage_offset(), after.untyped_storage().nbytes()):
        return False
    is_beside = torch.ones(kept[-1] // before.element_size(), dtype=torch.bool)
    is_beside.as_strided(*kept[:3]).fill_(False)
    old, new = (each.detach().as_strided((len(is_beside),), (1,), 0).cpu()[is_beside] for each in (before, after))
    return _differs(old, new)


def list_shared(results: Any, arguments: Any) -> set[tuple[int, int]]:
    """Which results are in the memory of which arguments, by their places among the tensors of each."""
    mine, theirs = (list(map(_find_memory, list_tensors(value))) for value in (results, arguments))
    return {
        (at, to) for at, one in enumerate(mine) for to, other in enumerate(theirs) if one is not None and one == other
    }


def _find_memory(tensor: torch.Tensor) -> int | None:
    """Where the memory of a tensor begins; None if it has none of its own, or no elements."""
    has_memory = tensor.layout is torch.strided and tensor.numel() > 0
    return tensor.untyped_storage().data_ptr() if has_memory else None


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether several elements are one in memory."""
    return any(size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def stay_on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """Marks a 0-d tensor as a CPU scalar operand."""
    tensor.stays_on_cpu = True  # type: ignore[attr-defined]
    return tensor


def keep_on_cpu(op: Callable[..., Any], samples: Iterable[SampleInput]) -> list[SampleInput]:
    """The samples, with tensors of integers beside an input marked to stay on the CPU if ATen takes them there alone.

    ATen is asked on the meta device, which runs no code of the fork: once for samples that differ in sizes and numbers
    alone, as some operators take longer to answer than to compute.
    """
    answers: dict[str, bool] = {}
    kept = []
    for sample in samples:
        values = (*sample.args, *sample.kwargs.values())
        indices = [each for each in values if isinstance(each, torch.Tensor) and each.dtype in _INDICES]
        kind = _describe_kind(sample) if indices else ""
        if indices and kind not in answers:
            answers[kind] = _takes_on_cpu(op, sample)
        for tensor in indices if answers.get(kind) else ():
            stay_on_cpu(tensor)
        kept.append(sample)
    return kept


def _describe_kind(sample: SampleInput) -> str:
    """What tells whether ATen takes tensors on the CPU: their types, their ranks, whether they are empty, and flags."""
    leaves, spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
    return f"{list(map(_describe_value, leaves))} {spec}"


def _describe_value(value: Any) -> object:
    if isinstance(value, torch.Tensor):
        return value.dtype, value.ndim, value.numel() == 0
    return value if isinstance(value, (bool, str)) else type(value)


def _takes_on_cpu(op: Callable[..., Any], sample: SampleInput) -> bool:
    meta = _change_each(sample, lambda t: t.detach().to("meta"))
    try:
        compute(op, meta)
    except Exception as error:
        return bool(_ON_CPU.search(str(error)))
    return False


def _stays_on_cpu(tensor: torch.Tensor) -> bool:
    return getattr(tensor, "stays_on_cpu", False)


def vary_layouts(sample: SampleInput, pointwise: bool) -> Iterator[tuple[str, SampleInput]]:
    """Yields the sample with other layouts for all tensors, then for one, with names for messages."""
    for name, change in LAYOUTS.items():
        yield name, _change(sample, change)
        if len(list(_tensors(sample))) > 1:
            yield f"{name}, first tensor alone", _change(sample, change, only=0)
            yield f"{name}, second tensor alone", _change(sample, change, only=1)
    if pointwise and len({t.shape for t in _tensors(sample)}) == 1:
        for name, change in POINTWISE.items():
            yield name, _change(sample, change)


def vary_vectors(sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with tensors that start behind other elements, or have every second element of rows, all of them or
    one, as `vary_layouts` has them: neither may be read as vectors.
    """
    varied = vary_layouts(sample, pointwise=False)
    yield from (labeled for labeled in varied if labeled[0].startswith((BEHIND, APART)))


def vary_operands(sample: SampleInput, others: list[torch.dtype]) -> Iterator[tuple[str, SampleInput]]:
    """The sample with its second tensor in other types, as a CPU scalar, a number, a 0-d tensor, and broadcast."""
    if len(list(_tensors(sample))) != 2:
        return
    for dtype in others:
        yield f"with {name_torch(dtype)}", _change(sample, partial(_cast, dtype=dtype), only=1)
        yield f"{name_torch(dtype)} first", _change(sample, partial(_cast, dtype=dtype), only=0)
    yield "with a CPU scalar", _change(sample, lambda t: stay_on_cpu(scalar(t)), only=1)
    yield "CPU scalar first", _change(sample, lambda t: stay_on_cpu(scalar(t)), only=0)
    if all(t.dtype.is_floating_point for t in _tensors(sample)):  # beside integers its type would be the result's
        yield "with a float64 CPU scalar", _change(sample, _wide_scalar, only=1)
    yield "with a number", _change(sample, _take_number, only=1)
    yield "a number first", _change(sample, _take_number, only=0)
    yield "with a 0-d tensor", _change(sample, scalar, only=1)
    yield "second broadcast", _change(sample, lambda t: t[:1] if t.ndim else t, only=1)
    yield "first broadcast", _change(sample, lambda t: t[..., :1] if t.ndim else t, only=0)


def with_edge_values(
    sample: SampleInput, dtype: torch.dtype, literals: Iterable[float] = (), most: float = math.inf
) -> SampleInput:
    """The sample with its tensors of this type replaced by combinations of edge values: all of them, or thousands.

    None is larger than `most`.
    """
    values = _bound(edge_values(dtype, literals), most)
    count = sum(t.dtype == dtype for t in _tensors(sample))
    if count == 1 and not sample.args and not sample.kwargs and dtype in _SIGNED and most == math.inf:
        values = torch.cat([values, values.new_tensor([torch.iinfo(dtype).min])])
    turns = iter(_combinations(values, count))

    def replace(t: torch.Tensor) -> torch.Tensor:
        return next(turns).clone() if t.dtype == dtype else scalar(t)

    return _change_each(sample, replace)


def bound_results(op: Callable[..., Any], sample: SampleInput) -> SampleInput:
    """The sample with fewer values if its results, such as an outer product, had millions of elements.

    ATen is asked on the meta device, which runs no code of the fork.
    """
    while any(len(t) > 1 for t in _tensors(sample) if t.ndim) and count_results(op, sample) > MOST_RESULTS:
        sample = _change(sample, lambda t: t[::2].clone() if t.ndim else t)
    return sample


def call_on_meta(op: Callable[..., Any], sample: SampleInput) -> Any:
    """What ATen says of the results, without computing them: a factory makes its result on the meta device as well."""
    meta = _change_each(sample, lambda t: t.detach().to("meta"))
    kwargs = {name: "meta" if name == "device" else value for name, value in meta.kwargs.items()}
    with torch.device("meta"):
        return op(meta.input, *meta.args, **kwargs)


def count_results(op: Callable[..., Any], sample: SampleInput) -> int:
    """The elements of the results, or 0 where only values decide."""
    try:
        results = call_on_meta(op, sample)
    except Exception:  # of any kind: the operator, or what it calls, has no meta function
        return 0
    return sum(each.numel() for each in list_tensors(results))


def _bound(values: torch.Tensor, most: float) -> torch.Tensor:
    """The values that are not larger than `most`, and that bound for the others and for NaN, which count nothing."""
    if most == math.inf or values.dtype == torch.bool:
        return values
    if values.dtype.is_complex:  # in each part
        return torch.complex(_bound(values.real, most), _bound(values.imag, most))
    if values.dtype.is_floating_point:
        return values.nan_to_num(nan=most).clamp(-most, most)
    info = torch.iinfo(values.dtype)
    return values.clamp(max(info.min, -int(most)), min(info.max, int(most)))


def take_single_values(sample: SampleInput) -> list[SampleInput]:
    """Samples whose tensors beside the first have one element each, for operators that take a value for many.

    The values are those of the sample's columns, which are of one length: each differs from the one before.
    """
    first, *others = _tensors(sample)
    if not others or any(t.ndim != 1 or t.shape != first.shape for t in others):
        return []
    rows = torch.linspace(0, len(first) - 1, SINGLE_VALUES).long().tolist()
    return [_take_value(sample, i) for i in rows]


def _take_value(sample: SampleInput, at: int) -> SampleInput:
    seen = count()
    return _change_each(sample, lambda t: t[at : at + 1].clone() if next(seen) else t)


def _combinations(values: torch.Tensor, count: int) -> list[torch.Tensor]:
    """A column for each of `count` operands: together every combination of values, or as many as are affordable."""
    if not count:
        return []
    total = len(values) ** count
    if total <= COMBINATIONS:
        return [g.flatten() for g in torch.meshgrid(*[values] * count, indexing="ij")]
    generator = torch.Generator().manual_seed(0)
    return [values[torch.randint(len(values), (COMBINATIONS,), generator=generator)] for _ in range(count)]


def with_other_scalars(sample: SampleInput, literals: Iterable[float] = ()) -> Iterator[tuple[str, SampleInput]]:
    """The sample with each of its numbers, and what may be one, at values that kernels treat apart: some that many do,
    and the first few of `literals`, with what is one ULP of float32 beside each.
    """
    beside = [each for literal in islice(literals, LITERALS) for each in values_beside(literal, torch.float32)]
    for place, value in list_passed(sample):
        for other in list_other_scalars(value, beside):
            yield f"with {other} for {value}", replace_argument(sample, place, other)


def list_other_scalars(value: Any, literals: Iterable[float] = ()) -> tuple[Any, ...]:
    """Numbers that kernels treat apart, in the place of a number or None; none for anything else."""
    if value is None or isinstance(value, float):
        every = dict.fromkeys((None, 0.0, 0.25, 0.5, 1.0, -1.0, *literals))
        return tuple(each for each in every if each != value)
    if isinstance(value, int) and not isinstance(value, bool):
        return tuple(each for each in (0, 1, -1) if each != value)
    return ()


def with_spread_values(
    sample: SampleInput,
    dtype: torch.dtype,
    domain: tuple[float | None, float | None] | None,
    literals: Iterable[float] = (),
    most: float = math.inf,
) -> SampleInput:
    """The sample with its tensors of this type replaced by 4,096 values of every magnitude, inside the op's domain.

    None is larger than `most`.
    """
    generator = torch.Generator().manual_seed(0)
    low, high = domain or (None, None)

    def values(t: torch.Tensor) -> torch.Tensor:
        if t.dtype != dtype:
            return scalar(t)
        parts = [_bound(_magnitudes(dtype, literals, generator), most) for _ in range(2 if dtype.is_complex else 1)]
        if dtype.is_complex:
            return torch.complex(*parts).to(dtype)
        return parts[0].clamp(-math.inf if low is None else low, math.inf if high is None else high).to(dtype)

    return _change_each(sample, values)


def _magnitudes(dtype: torch.dtype, literals: Iterable[float], generator: torch.Generator) -> torch.Tensor:
    """Float64 values: plain ones, powers of two around 1, those of the whole range (denormals too), near literals."""
    info = torch.finfo(dtype)
    room = math.log2(info.max)

    def uniform(low: float, high: float) -> torch.Tensor:
        return torch.empty(1024, dtype=torch.float64).uniform_(low, high, generator=generator)

    signs = uniform(-1, 1).sign()
    whole = signs * torch.exp2(uniform(math.log2(info.smallest_normal * info.eps), room).clamp(max=room))
    middles = torch.tensor([1.0, -1.0, 0.5, *literals], dtype=torch.float64)
    near = middles[torch.arange(1024) % len(middles)] + signs * torch.exp2(uniform(math.log2(info.eps), -2))
    every = torch.cat([uniform(-8, 8), signs * torch.exp2(uniform(-12, 6)), whole, near])
    return every[torch.randperm(4096, generator=generator)]


def round_integers(value: Any) -> Any:
    """An integer tensor in double precision, but for what is lost in 32 bits; anything else as it is."""
    if not isinstance(value, torch.Tensor) or value.is_floating_point() or value.is_complex():
        return value
    return value.to(torch.float32).to(torch.float64)


def list_neighbors(sample: SampleInput) -> list[SampleInput]:
    """Samples whose floating and complex tensors are a few units in the last place below and above this one's."""
    return [sample.transform(partial(_step, steps=steps)) for steps in (-4, -3, -2, -1, 1, 2, 3, 4)]


def _step(value: Any, steps: int) -> Any:
    if isinstance(value, torch.Tensor) and value.is_complex():
        return torch.complex(*(_step(part.detach().contiguous(), steps) for part in (value.real, value.imag)))
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        end = torch.full_like(value, math.copysign(math.inf, steps))
        for _ in range(abs(steps)):
            value = torch.nextafter(value, end)
    return value


def make_strided(value: Any) -> Any:
    """A tensor as a strided view, which the CPU computes with other loops; anything else as it is."""
    return take_every_second(value) if isinstance(value, torch.Tensor) else value


def replace_zeros(sample: SampleInput) -> SampleInput:
    """The sample without zeros in the second tensor: integer division refuses them on the CPU."""
    return _change(sample, lambda t: torch.where(t == 0, torch.ones_like(t), t), only=1)


def remove_zeros(sample: SampleInput) -> SampleInput:
    """The sample with the second tensor positive: integer powers refuse the rest on the CPU."""
    return _change(sample, lambda t: torch.where(t > 0, t, torch.ones_like(t)), only=1)


def _cast(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    with torch.no_grad():
        return t.detach().to(dtype)


def _wide_scalar(t: torch.Tensor) -> torch.Tensor:
    return stay_on_cpu(_cast(scalar(t), torch.float64))


def _take_number(t: torch.Tensor) -> Any:
    return scalar(t).item() if t.numel() else t


def _tensors(sample: SampleInput) -> Iterator[torch.Tensor]:
    for value in (sample.input, *sample.args, *sample.kwargs.values()):
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (v for v in value if isinstance(v, torch.Tensor))


def _change_each(sample: SampleInput, change: Callable[[torch.Tensor], Any]) -> SampleInput:
    """The sample with its tensors changed, but for those that stay on the CPU."""
    return change_tensors(sample, lambda t: t if _stays_on_cpu(t) else change(t))


def _change(sample: SampleInput, change: Callable[[torch.Tensor], Any], only: int | None = None) -> SampleInput:
    """The sample with its tensors changed, all or the n-th of those that do not stay on the CPU."""
    seen = count()
    return _change_each(sample, lambda t: change(t.detach()) if only in (None, next(seen)) else t.detach())


# Powers of two beyond which a float type (16-bit, 32-bit, 64-bit) skips integers, and those where integers end.
_COARSE = (8, 11, 24, 53)
_ENDS = (7, 15, 16, 31, 32, 62)
_BASES = (2.0, math.e, 10.0)


def edge_values(dtype: torch.dtype, literals: Iterable[float] = ()) -> torch.Tensor:
    """The values at the edges of a type, 1-d: signed zeros, infinities, NaN, denormals, extremes, and where the type
    gets coarse; `literals` (numbers that a kernel's text compares with), and what is one ULP beside each.
    """
    if dtype == torch.bool:
        return torch.tensor([False, True])
    if dtype.is_complex:
        return _complex(dtype, literals)
    if dtype.is_floating_point:
        return _floating(dtype, literals)
    whole = torch.iinfo(dtype)
    around = [2**power + step for power in (*_COARSE, *_ENDS) for step in (-1, 0, 1)]
    near = [int(literal) + step for literal in literals if abs(literal) < 2**62 for step in (-1, 0, 1)]
    small = [0, 1, 2, 3, 7, 100, *sorted({abs(each) for each in near})]
    wanted = dict.fromkeys([*small, *sorted(around), 2**24 + 3, whole.max - 1, whole.max])
    # The lowest value is left out: dividing it by -1 traps on the CPU that answers for the reference.
    signs = (1, -1) if whole.min else (1,)
    return torch.tensor([s * v for v in wanted if v <= whole.max for s in signs], dtype=dtype)


def _floating(dtype: torch.dtype, literals: Iterable[float]) -> torch.Tensor:
    info = torch.finfo(dtype)
    least = info.smallest_normal * info.eps
    small = [info.smallest_normal, info.smallest_normal - least, info.smallest_normal / 4, least, info.eps]
    # From 1 / eps on there are no fractions; beyond the square roots of the ends, squares leave the type.
    large = [1 / info.eps, 0.5 / info.eps - 0.5, math.sqrt(info.max) * 1.5, info.max]
    ends = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.25, 100.0, *small, *large, *_range_of_powers(info)]
    near = [v for literal in literals for v in values_beside(literal, dtype)]
    ends += [v for v in (*values_beside(1.0, dtype), *near) if v not in ends]
    both = [s * v for v in (*ends, math.inf) for s in (1, -1)]
    return torch.tensor([*both, math.nan], dtype=torch.float64).to(dtype)


def _range_of_powers(info: torch.finfo) -> Iterator[float]:
    """Exponents, of the usual bases, whose powers are the last finite one, and one in the middle of the denormals."""
    for base in _BASES:
        yield math.log(info.max, base) * (1 - info.eps)
        yield -math.log(info.smallest_normal * math.sqrt(info.eps), base)


def values_beside(value: float, dtype: torch.dtype) -> Iterator[float]:
    """A value in a type, and its neighbors."""
    here = torch.tensor(value, dtype=dtype)
    yield from (float(each) for each in (here, *(torch.nextafter(here, here.new_tensor(e)) for e in (-1e4, 1e4))))


def _complex(dtype: torch.dtype, literals: Iterable[float]) -> torch.Tensor:
    """Both sides of the axes, on which the branch cuts lie, at every size; infinities beside what is finite and each
    other; absolute values that are literals, and what is beside them.
    """
    info = torch.finfo(torch.float32)
    small = info.smallest_normal
    ends = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.25, 100.0, small, info.max, small / 4, info.eps, math.inf]
    part = torch.tensor([*(s * v for v in ends for s in (1, -1)), math.nan])
    axis = torch.tensor([s * v for v in (0.0, 1e-5, 0.5, 1.0, 2.5, math.inf) for s in (1, -1)])
    real, imaginary = torch.meshgrid(axis, axis, indexing="ij")
    sizes = torch.tensor([v for literal in literals for v in values_beside(literal, torch.float32)])
    sides = [torch.complex(sizes, torch.zeros_like(sizes)), torch.complex(sizes * 0.6, sizes * -0.8)]
    return torch.cat([torch.complex(real, imaginary).flatten(), torch.complex(part, part.flip(0)), *sides]).to(dtype)
