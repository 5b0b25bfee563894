"""Results written to tensors in other memory layouts, and over arguments, by the rows that take them, as
`median.dim_values`.

Of several results each has another layout. Host code that takes one for all writes to places that are not its own, and
so does a kernel that fills memory from its start; what is beside the elements of a result has to stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.consistency import OVER_A_PART
from porter.verdict.suite.layouts import OFFSET
from porter.verdict.suite.leaves import Place, compute
from porter.verdict.suite.opinfos import OpInfos, is_pointwise, take_spread
from porter.verdict.suite.overloads import (
    WRITTEN_OVER,
    Call,
    Overload,
    call_overload,
    name_row,
    record_calls,
    writes_results,
)
from porter.verdict.suite.samples import copy_sample
from porter.verdict.suite.variations.choice import choose_vectors, varies_in
from porter.verdict.suite.variations.variation import Operators, Variation

_FILLING = 7  # what results hold before, so that one which nobody writes to differs
_MOST_ELEMENTS = 4096
_MOST_CALLS = 2  # of each row
Layout = Callable[[torch.Tensor], torch.Tensor]
Written = tuple[Call, Overload, list[torch.Tensor]]  # a call, the row that writes its results, and these


def place_with_offset(result: torch.Tensor) -> torch.Tensor:
    """Dense memory that does not begin with the first element, nor end with the last."""
    return _fill(result.numel() + 2 * OFFSET, result)[OFFSET : OFFSET + result.numel()].view(result.shape)


def place_reversed(result: torch.Tensor) -> torch.Tensor:
    """The last dimension outermost in memory."""
    dims = tuple(range(result.ndim))[::-1]
    return _fill(result.numel(), result).view(result.permute(dims).shape).permute(dims)


def place_apart(result: torch.Tensor) -> torch.Tensor:
    """Every second element of memory, after the first few."""
    shape = (*result.shape, 2)
    return _fill(2 * result.numel() + OFFSET, result)[OFFSET:].view(shape)[..., 0]


def place_channels_last(result: torch.Tensor) -> torch.Tensor:
    """Channels last, where a tensor has as many dimensions as an image or a volume; else as `place_reversed`."""
    layouts = {4: torch.channels_last, 5: torch.channels_last_3d}
    if result.ndim not in layouts:
        return place_reversed(result)
    return torch.full_like(result, _FILLING, memory_format=layouts[result.ndim])


PLACES: Mapping[str, Layout] = {
    "with an offset": place_with_offset,
    "reversed": place_reversed,
    "apart": place_apart,
    "channels last": place_channels_last,
}


def list_outs(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Calls of the rows under test that write to tensors which they are given, where the CPU computes that.

    In a run with bounds checks, which is slow, those alone that show results taken for aligned.
    """
    slopes = op.supports_autograd and dtype.is_floating_point
    if not opinfos.context.checks_memory:
        yield from _list_placed(opinfos, op, dtype, slopes)
    if varies_in(opinfos, op, dtype) and not is_pointwise(op):
        vectors = choose_vectors(opinfos, op, dtype, requires_grad=slopes)
        for written in dict(_list_written(opinfos, op, vectors)).values():
            yield from keep_computed(call_overload, shift_outs(*written))


def _list_placed(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, slopes: bool) -> Iterator[Varied]:
    samples = take_spread(opinfos.reaching_samples(op, dtype, requires_grad=slopes))
    chosen: dict[str, list[Written]] = {}
    shared: dict[str, tuple[int, SampleInput, list[torch.Tensor]]] = {}
    for row, written in _list_written(opinfos, op, samples):
        for label, sample in share_memory(*written):
            size = sum(map(torch.numel, written[2]))
            if size <= _MOST_ELEMENTS and (label not in shared or shared[label][0] < size):
                shared[label] = size, sample, written[2]
        ranks = [len(first.shape) for _, _, (first, *_) in chosen.get(row, [])]
        if sum(map(torch.numel, written[2])) <= _MOST_ELEMENTS and written[2][0].ndim not in ranks:
            chosen.setdefault(row, []).append(written)
    for calls in chosen.values():
        largest = sorted(calls, key=lambda one: -one[2][0].ndim)[:_MOST_CALLS]
        yield from keep_computed(call_overload, [varied for one in largest for varied in vary_outs(*one)])
    computed = keep_computed(call_overload, [(label, sample) for label, (_, sample, _) in shared.items()])
    yield from ((label, sample) for label, sample in computed if _gives(sample, shared[label][2]))


def _list_written(opinfos: OpInfos, op: OpInfo, samples: Iterable[SampleInput]) -> Iterator[tuple[str, Written]]:
    """The names of rows that write what a call returns, each with the call and the results."""
    for call in record_calls(op, samples, opinfos.context.bases):
        for overload in find_outs(call.overload, opinfos.context.rows):
            results = _compute(call)
            if results:
                yield name_row(overload), (call, overload, results)


def find_outs(overload: Overload, rows: Collection[str] = ()) -> Iterator[Overload]:
    """The overloads that write what this one returns to tensors, of the rows with these names if there are any."""
    packet = overload.overloadpacket
    for other in (getattr(packet, name) for name in packet.overloads()):
        if writes_results(other, overload) and (not rows or name_row(other) in rows):
            yield other


def vary_outs(call: Call, overload: Overload, results: Sequence[torch.Tensor]) -> Iterator[Varied]:
    """Yields samples for `call_overload` that write to other tensors, with names for messages: each result in each
    layout, and results of other shapes, which are to be resized.
    """
    names = [each.name for each in overload._schema.arguments if each.is_out]
    places, tried = list(PLACES.items()), []
    for turn in range(len(places)):
        chosen = [places[(turn + at) % len(places)] for at in range(len(results))]
        told = ", ".join(f"{name} {label}" for name, (label, _) in zip(names, chosen, strict=True))
        outs = [place(result) for result, (_, place) in zip(results, chosen, strict=True)]
        layouts = [(out.stride(), out.storage_offset()) for out in outs]
        if layouts not in tried:
            tried.append(layouts)
            yield f"{name_row(overload)}: {told}", _make_sample(call, overload, names, outs)
    larger = [result.new_full([size + 1 for size in result.shape] or [2], _FILLING) for result in results]
    for told, outs in (("of no elements", [result.new_empty(0) for result in results]), ("of other shapes", larger)):
        yield f"{name_row(overload)}: results {told}", _make_sample(call, overload, names, outs)


def shift_outs(call: Call, overload: Overload, results: Sequence[torch.Tensor]) -> Iterator[Varied]:
    """Yields samples in which one of the results begins behind other elements, dense as the others: a kernel that
    writes vectors asks where each begins.
    """
    names = [each.name for each in overload._schema.arguments if each.is_out]
    for shifted in range(len(results)):
        places = [place_with_offset if at == shifted else torch.empty_like for at in range(len(results))]
        outs = [place(result) for place, result in zip(places, results, strict=True)]
        yield f"{name_row(overload)}: {names[shifted]} alone with an offset", _make_sample(call, overload, names, outs)


def share_memory(call: Call, overload: Overload, results: Sequence[torch.Tensor]) -> Iterator[Varied]:
    """Yields samples in which a result is written to the memory of an argument of its type, for each such argument: all
    of it, or its first element where the result has one. A kernel that writes before all threads have read reads what
    it wrote. Other results have their own.
    """
    names = [each.name for each in overload._schema.arguments if each.is_out]
    places: list[tuple[Place, Any]] = [*enumerate(call.args), *call.kwargs.items()]
    for place, value in places:
        if not isinstance(value, torch.Tensor) or not value.numel():
            continue
        held = [at for at, result in enumerate(results) if _holds(value, result)]
        equal = [at for at in held if results[at].shape == value.shape]
        smaller = [at for at in held if results[at].shape != value.shape]
        for over in (*equal[:1], *smaller[:1]):
            others = {names[at]: torch.empty_like(result) for at, result in enumerate(results) if at != over}
            sample = copy_sample(call.make_sample(overload, **others))
            shape = tuple(results[over].shape)
            sample.kwargs[WRITTEN_OVER] = {names[over]: (place, shape)}
            whose = OVER_A_PART if over in smaller else " over "
            yield f"{name_row(overload)}: {names[over]}{whose}argument {place}", sample


def _holds(tensor: torch.Tensor, result: torch.Tensor) -> bool:
    """Whether a tensor has the shape and type of a result, or is dense and has more elements than a result of one:
    ATen promises nothing for results that overlap a part of an argument.
    """
    if (tensor.dtype, tensor.layout) != (result.dtype, result.layout):
        return False
    return tensor.shape == result.shape or (tensor.is_contiguous() and result.numel() == 1 < tensor.numel())


def _gives(sample: SampleInput, results: Sequence[torch.Tensor]) -> bool:
    """Whether the CPU gives these results: of a matrix that is multiplied in place it gives others."""
    shared = pytree.tree_leaves(compute(call_overload, copy_sample(sample)))
    return all(torch.allclose(one, other, equal_nan=True) for one, other in zip(shared, results, strict=True))


def _make_sample(call: Call, overload: Overload, names: Sequence[str], outs: Sequence[torch.Tensor]) -> SampleInput:
    return call.make_sample(overload, **dict(zip(names, outs, strict=True)))


def _compute(call: Call) -> list[torch.Tensor]:
    results = pytree.tree_leaves(call.overload(*call.args, **call.kwargs))
    return results if all(isinstance(each, torch.Tensor) for each in results) else []


def _fill(count: int, result: torch.Tensor) -> torch.Tensor:
    memory: torch.Tensor = torch.full((count,), _FILLING, dtype=result.dtype)
    return memory


OUTS = Variation("outs", list_outs, Operators.ALL, calls_overloads=True)
