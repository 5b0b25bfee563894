"""Finds how an operator pools windows: the way that computes what all recorded calls return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

import torch

from porter.core import dtypes
from porter.core.dtypes import BFLOAT, HALF, DType
from porter.loops.fit import MIN_CALLS
from porter.loops.windows import Pooling, Window
from porter.recording.agreement import Results, agrees_with_all
from porter.recording.calls import OpCall
from porter.recording.record import RecordedRun, run_call

_TOLERANCES = {HALF: 4e-3, BFLOAT: 4e-2}
_VARIED = 24  # calls
_DIMS = 2  # that windows move over, behind one or two others
_LISTS, _DILATION = ("kernel_size", "stride", "padding"), "dilation"  # what ATen calls them


def find_window(runs: Sequence[RecordedRun], run: Callable[[OpCall], RecordedRun] = run_call) -> Window | None:
    """The way that computes the results of every call; None if none does, or several do, or for few calls.

    Some calls are `run` again with other flags: samples often set several alike.
    """
    if len(runs) < MIN_CALLS or not any(_list_candidates(runs[0].call, len(runs[0].results))):
        return None
    found = []
    ordered = sorted(runs, key=lambda each: sum(made.numel() for made in each.results))
    varied = list(_vary_flags(runs, run))
    for candidate in _list_candidates(ordered[0].call, len(ordered[0].results)):

        def computes(run: RecordedRun, results: Results, candidate: Window = candidate) -> bool:
            return _computes(candidate, run, results)

        if agrees_with_all(ordered, computes, varied):
            found.append(candidate)
    types = tuple(dict.fromkeys(_dtype(each.results[0]) for each in runs))
    return replace(found[0], dtypes=types) if len(found) == 1 else None


def _vary_flags(runs: Sequence[RecordedRun], run: Callable[[OpCall], RecordedRun]) -> Iterator[RecordedRun]:
    """Some of the calls with paddings, without a divisor, and with each flag as it is and the other way."""
    padded = [each.call for each in runs if any(_read_list(each.call.arguments.get(_LISTS[2])))]
    for call in padded[:: max(1, len(padded) // _VARIED)]:
        options = [each.name for each in call.overload._schema.arguments if str(each.type) == "Optional[int]"]
        plain = OpCall(call.overload, {**call.arguments, **dict.fromkeys(options)})
        flags = [(name, value) for name, value in call.arguments.items() if isinstance(value, bool)]
        for varied in (plain, *(plain.with_argument(name, not value) for name, value in flags)):
            with suppress(Exception):  # the results of a gradient are of sizes that follow from flags
                yield run(varied)


def _list_candidates(call: OpCall, results: int) -> Iterator[Window]:
    """The ways that the arguments of a schema allow for."""
    types = {each.name: str(each.type) for each in call.overload._schema.arguments if not each.is_out}
    if not all(types.get(each) == "List[int]" for each in _LISTS):
        return
    dilation = next((name for name in types if name == _DILATION), "")
    tensors = [name for name, type_ in types.items() if type_ == "Tensor"]
    flags = [name for name, type_ in types.items() if type_ == "bool"]
    divisors = [name for name, type_ in types.items() if type_ == "Optional[int]"]
    whole = [name for name in tensors if not call.tensors()[name].is_floating_point()]
    indices = whole if len(whole) < len(tensors) else []
    for source in (each for each in tensors if each not in indices):
        others = [each for each in tensors if each != source and each not in indices]
        if len(others) > 1:
            continue
        gradient, positions = next(iter(others), ""), next(iter(indices), "")
        plain = Window(
            Pooling.MAXIMUM, source, *_LISTS, dilation, gradient=gradient, indices=positions, results=results
        )
        yield plain
        for counts, divisor in product(flags, divisors):
            yield replace(plain, pooling=Pooling.AVERAGE, counts_padding=counts, divisor=divisor)


def _dtype(tensor: torch.Tensor) -> DType:
    return dtypes.BY_TORCH[str(tensor.dtype).removeprefix("torch.")]


@dataclass(frozen=True)
class _Axis:
    """The windows along a dimension: the positions of their elements, and which of these are inside."""

    at: torch.Tensor  # of windows by elements
    inside: torch.Tensor
    counted: torch.Tensor  # elements of windows, with those of the padding
    first: torch.Tensor  # position in each window that is not in the padding before the source


def _read_axes(
    found: Window, arguments: Mapping[str, object], source: Sequence[int], windows: Sequence[int]
) -> list[_Axis]:
    lists = [_read_list(arguments.get(name)) for name in (found.size, found.stride, found.padding, found.dilation)]
    sizes, steps, pads, rates = lists[0], lists[1] or lists[0], lists[2], lists[3] or [1, 1]
    axes = []
    for k in range(_DIMS):
        size, count = source[k - _DIMS], windows[k - _DIMS]
        start = torch.arange(count) * steps[k] - pads[k]
        at = start[:, None] + torch.arange(sizes[k]) * rates[k]
        counted = (start + sizes[k]).clamp(max=size + pads[k]) - start
        first = start + ((-start).clamp(min=0) + rates[k] - 1) // rates[k] * rates[k]
        axes.append(_Axis(at.clamp(0, size - 1), (at >= 0) & (at < size), counted, first))
    return axes


def _read_list(given: object) -> list[int]:
    listed = [int(each) for each in given] if isinstance(given, (list, tuple)) else []
    return listed * _DIMS if len(listed) == 1 else listed


def _computes(found: Window, run: RecordedRun, results: Results) -> bool:
    if len(results) != found.results:
        return False
    source, shape = run.given[found.source], results[0].shape
    windows = run.given[found.gradient].shape if found.gradient else shape
    if source.ndim != len(windows) or source.shape[:-_DIMS] != windows[:-_DIMS]:
        return False
    try:
        made = pool(found, run.given, run.call.arguments, windows)
    except (RuntimeError, IndexError):  # the lists are of other dimensions
        return False
    return all(_agrees(each, result) for each, result in zip(made, results, strict=True))


def _agrees(made: torch.Tensor, result: torch.Tensor) -> bool:
    if made.shape != result.shape:
        return False
    dtype = _dtype(result)
    tolerance = _TOLERANCES.get(dtype, 1e-5) if result.is_floating_point() else 0.0
    return torch.allclose(made.double(), result.double(), rtol=tolerance, atol=tolerance, equal_nan=True)


def pool(
    found: Window, given: Mapping[str, torch.Tensor], arguments: Mapping[str, object], windows: Sequence[int]
) -> list[torch.Tensor]:
    """The results, for windows of a shape."""
    source = given[found.source]
    rows, columns = _read_axes(found, arguments, source.shape, windows)
    width = source.shape[-1]
    at = (rows.at[:, None, :, None] * width + columns.at[None, :, None, :]).flatten(2)  # by window, elements
    inside = (rows.inside[:, None, :, None] & columns.inside[None, :, None, :]).flatten(2)
    planes = source.flatten(-_DIMS)
    if found.pooling is Pooling.MAXIMUM:
        return _pool_maximum(found, given, at, inside, rows.first[:, None] * width + columns.first)
    wide = torch.float64 if source.is_floating_point() else torch.int64
    divisor = _find_divisor(found, arguments, rows, columns)
    if not found.gradient:
        total = (planes[..., at].to(wide) * inside).sum(-1)
        return [_divide(total, divisor)]
    shares = _divide(given[found.gradient].to(wide), divisor)[..., None] * inside
    made = torch.zeros(planes.shape, dtype=wide)
    return [made.index_add(-1, at.flatten(), shares.flatten(-3)).reshape(source.shape)]


def _divide(total: torch.Tensor, divisor: torch.Tensor) -> torch.Tensor:
    return total / divisor if total.is_floating_point() else torch.div(total, divisor, rounding_mode="trunc")


def _find_divisor(found: Window, arguments: Mapping[str, object], rows: _Axis, columns: _Axis) -> torch.Tensor:
    given = arguments.get(found.divisor)
    if isinstance(given, int) and given:
        return torch.tensor(given)
    if arguments.get(found.counts_padding):
        return rows.counted[:, None] * columns.counted[None]
    return (rows.inside.sum(-1)[:, None] * columns.inside.sum(-1)[None]).clamp(min=1)


def _pool_maximum(
    found: Window, given: Mapping[str, torch.Tensor], at: torch.Tensor, inside: torch.Tensor, first: torch.Tensor
) -> list[torch.Tensor]:
    """Maxima and their positions: the `first` one of a window without elements."""
    source = given[found.source]
    planes = source.flatten(-_DIMS)
    if found.indices:
        position = given[found.indices].long()
    else:
        lowest = -torch.inf if source.is_floating_point() else torch.iinfo(source.dtype).min
        wide = planes.to(torch.float64 if source.is_floating_point() else torch.int64)
        values, best = torch.where(inside, wide[..., at], lowest).max(-1)
        position = torch.gather(at.expand(*best.shape, -1), -1, best[..., None])[..., 0]
        position = torch.where(inside.any(-1), position, first)
        if not found.gradient:
            return [values, position][: found.results]
    made = torch.zeros(planes.shape, dtype=torch.float64)
    added = (given[found.gradient].double() * inside.any(-1)).flatten(-_DIMS)
    position = torch.where(inside.any(-1), position, 0).flatten(-_DIMS)
    return [made.scatter_add(-1, position, added).reshape(source.shape)]
