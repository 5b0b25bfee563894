"""Finds how an operator pools windows, or resamples: the way that computes what all recorded calls return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

import torch

from porter.metal.forms.pooling import Pooled, Pooling
from porter.metal.forms.resampling import Resampling, Sampling
from porter.recording.calls import OpCall, read_dtype
from porter.recording.forms.agreement import TOLERANCES, Results, find_only, read_types, tell_form
from porter.recording.runs import RecordedRun, run_call

_VARIED = 24  # calls
_DIMS = 2  # that windows move over, behind one or two others
_LISTS, _DILATION = ("kernel_size", "stride", "padding"), "dilation"  # what ATen calls them
_LEADING = 2  # dimensions that are not resampled: batches and channels


def find_pooling(runs: Sequence[RecordedRun], run: Callable[[OpCall], RecordedRun] = run_call) -> Pooling | None:
    """The way that computes the results of every call; None if none does, or several do, or for few calls.

    Some calls are `run` again with other flags: samples often set several alike.
    """
    if not tell_form(runs, (1, 2)) or not any(_list_poolings(runs[0].call, len(runs[0].results))):
        return None
    candidates = _list_poolings(runs[0].call, len(runs[0].results))
    return find_only(candidates, runs, _computes_pooled, list(_vary_flags(runs, run)))


def _vary_flags(runs: Sequence[RecordedRun], run: Callable[[OpCall], RecordedRun]) -> Iterator[RecordedRun]:
    """Some of the calls with paddings, without a divisor, and with each flag as it is and the other way."""
    padded = [each.call for each in runs if any(_read_list(each.call.arguments.get(_LISTS[2])))]
    for call in padded[:: max(1, len(padded) // _VARIED)]:
        options = [each.name for each in call.overload._schema.arguments if str(each.type) == "Optional[int]"]
        plain = call.with_arguments(dict.fromkeys(options))
        flags = [(name, value) for name, value in call.arguments.items() if isinstance(value, bool)]
        for varied in (plain, *(plain.with_arguments({name: not value}) for name, value in flags)):
            with suppress(Exception):  # the results of a gradient are of sizes that follow from flags
                yield run(varied)


def _list_poolings(call: OpCall, results: int) -> Iterator[Pooling]:
    """The ways that the arguments of a schema allow for."""
    types = read_types(call)
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
        plain = Pooling(
            Pooled.MAXIMUM, source, *_LISTS, dilation, gradient=gradient, indices=positions, results=results
        )
        yield plain
        for counts, divisor in product(flags, divisors):
            yield replace(plain, pooled=Pooled.AVERAGE, counts_padding=counts, divisor=divisor)


@dataclass(frozen=True)
class _Axis:
    """The windows along a dimension: the positions of their elements, and which of these are inside."""

    at: torch.Tensor  # of windows by elements
    inside: torch.Tensor
    counted: torch.Tensor  # elements of windows, with those of the padding
    first: torch.Tensor  # position in each window that is not in the padding before the source


def _read_axes(
    form: Pooling, arguments: Mapping[str, object], source: Sequence[int], windows: Sequence[int]
) -> list[_Axis]:
    lists = [_read_list(arguments.get(name)) for name in (form.size, form.stride, form.padding, form.dilation)]
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


def _read_list(value: object) -> list[int]:
    listed = [int(each) for each in value] if isinstance(value, (list, tuple)) else []
    return listed * _DIMS if len(listed) == 1 else listed


def _computes_pooled(form: Pooling, run: RecordedRun, results: Results) -> bool:
    if len(results) != form.results:
        return False
    source, shape = run.given[form.source], results[0].shape
    windows = run.given[form.gradient].shape if form.gradient else shape
    if source.ndim != len(windows) or source.shape[:-_DIMS] != windows[:-_DIMS]:
        return False
    try:
        computed = pool(form, run.given, run.call.arguments, windows)
    except (RuntimeError, IndexError):  # the lists are of other dimensions
        return False
    return all(_agrees(each, result) for each, result in zip(computed, results, strict=True))


def _agrees(computed: torch.Tensor, result: torch.Tensor) -> bool:
    if computed.shape != result.shape:
        return False
    dtype = read_dtype(result)
    tolerance = TOLERANCES.get(dtype, 1e-5) if result.is_floating_point() else 0.0
    return torch.allclose(computed.double(), result.double(), rtol=tolerance, atol=tolerance, equal_nan=True)


def pool(
    form: Pooling, tensors: Mapping[str, torch.Tensor], arguments: Mapping[str, object], windows: Sequence[int]
) -> list[torch.Tensor]:
    """The results, for windows of a shape."""
    source = tensors[form.source]
    rows, columns = _read_axes(form, arguments, source.shape, windows)
    width = source.shape[-1]
    at = (rows.at[:, None, :, None] * width + columns.at[None, :, None, :]).flatten(2)  # by window, elements
    inside = (rows.inside[:, None, :, None] & columns.inside[None, :, None, :]).flatten(2)
    planes = source.flatten(-_DIMS)
    if form.pooled is Pooled.MAXIMUM:
        return _pool_maximum(form, tensors, at, inside, rows.first[:, None] * width + columns.first)
    wide = torch.float64 if source.is_floating_point() else torch.int64
    divisor = _find_divisor(form, arguments, rows, columns)
    if not form.gradient:
        total = (planes[..., at].to(wide) * inside).sum(-1)
        return [_divide(total, divisor)]
    shares = _divide(tensors[form.gradient].to(wide), divisor)[..., None] * inside
    computed = torch.zeros(planes.shape, dtype=wide)
    return [computed.index_add(-1, at.flatten(), shares.flatten(-3)).reshape(source.shape)]


def _divide(total: torch.Tensor, divisor: torch.Tensor) -> torch.Tensor:
    return total / divisor if total.is_floating_point() else torch.div(total, divisor, rounding_mode="trunc")


def _find_divisor(form: Pooling, arguments: Mapping[str, object], rows: _Axis, columns: _Axis) -> torch.Tensor:
    divisor = arguments.get(form.divisor)
    if isinstance(divisor, int) and divisor:
        return torch.tensor(divisor)
    if arguments.get(form.counts_padding):
        return rows.counted[:, None] * columns.counted[None]
    return (rows.inside.sum(-1)[:, None] * columns.inside.sum(-1)[None]).clamp(min=1)


def _pool_maximum(
    form: Pooling, tensors: Mapping[str, torch.Tensor], at: torch.Tensor, inside: torch.Tensor, first: torch.Tensor
) -> list[torch.Tensor]:
    """Maxima and their positions: the `first` one of a window without elements."""
    source = tensors[form.source]
    planes = source.flatten(-_DIMS)
    if form.indices:
        position = tensors[form.indices].long()
    else:
        lowest = -torch.inf if source.is_floating_point() else torch.iinfo(source.dtype).min
        wide = planes.to(torch.float64 if source.is_floating_point() else torch.int64)
        values, best = torch.where(inside, wide[..., at], lowest).max(-1)
        position = torch.gather(at.expand(*best.shape, -1), -1, best[..., None])[..., 0]
        position = torch.where(inside.any(-1), position, first)
        if not form.gradient:
            return [values, position][: form.results]
    computed = torch.zeros(planes.shape, dtype=torch.float64)
    added = (tensors[form.gradient].double() * inside.any(-1)).flatten(-_DIMS)
    position = torch.where(inside.any(-1), position, 0).flatten(-_DIMS)
    return [computed.scatter_add(-1, position, added).reshape(source.shape)]


def find_resampling(runs: Sequence[RecordedRun]) -> Resampling | None:
    """The way that computes the result of every call; None if none does, or several do, or for few calls."""
    return find_only(_list_resamplings(runs[0].call), runs, _computes_resampled) if tell_form(runs) else None


def _list_resamplings(call: OpCall) -> Iterator[Resampling]:
    """The ways that the arguments of a schema allow for: one tensor, and an optional number for each dimension."""
    types = read_types(call)
    tensors = [name for name, type_ in types.items() if type_ == "Tensor"]
    scales = tuple(name for name, type_ in types.items() if type_ == "Optional[float]")
    flags = [name for name, type_ in types.items() if type_ == "bool"]
    lists = [name for name, type_ in types.items() if type_ == "List[int]"]
    if len(tensors) != 1 or not scales or not lists or len(flags) > 1:
        return
    for sampling, is_gradient in product(Sampling, (False, True)):
        is_linear = sampling is Sampling.LINEAR
        if is_gradient >= is_linear and is_linear >= bool(flags):  # loops compute a linear result as it is
            yield Resampling(sampling, tensors[0], scales, flags[0] if flags else "", is_gradient)


def _computes_resampled(candidate: Resampling, run: RecordedRun, results: Results) -> bool:
    source, result = run.given[candidate.source], results[0]
    rank = len(candidate.scales) + _LEADING
    if (
        len(results) != 1
        or source.ndim != rank
        or result.ndim != rank
        or source.shape[:_LEADING] != result.shape[:_LEADING]
    ):
        return False
    computed = resample(candidate, source.double(), result.shape, run.call.arguments)
    tolerance = 0.0 if not candidate.is_gradient else TOLERANCES.get(read_dtype(result), 1e-5)
    scale = max(1.0, result.double().abs().max().item()) if result.numel() else 1.0
    return torch.allclose(computed, result.double(), rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def resample(
    form: Resampling, source: torch.Tensor, shape: Sequence[int], arguments: Mapping[str, object]
) -> torch.Tensor:
    """The result, of a shape, by the weights that every element has in each dimension."""
    computed = source
    for d, scale in enumerate(form.scales, _LEADING):
        small, large = (shape[d], source.shape[d]) if form.is_gradient else (source.shape[d], shape[d])
        weights = _weigh(form, small, large, arguments.get(scale), bool(arguments.get(form.corners)))
        weights = weights.T if form.is_gradient else weights
        computed = torch.movedim(torch.tensordot(weights.to(computed.dtype), computed, ([1], [d])), 0, d)
    return computed


def _weigh(form: Resampling, small: int, large: int, scale: object, aligned: bool) -> torch.Tensor:
    """How much of each of the `small` elements each of the `large` ones reads, in float as kernels compute it."""
    i = torch.arange(large, dtype=torch.float32)
    factor = scale if isinstance(scale, float) and scale > 0 else 0.0
    one = torch.tensor(1.0, dtype=torch.float32)
    ratio = one * (1.0 / factor) if factor else one * small / large
    if aligned:
        ratio = one * (small - 1) / (large - 1) if large > 1 else one * 0
    if form.sampling is Sampling.LINEAR:
        at = i * ratio if aligned else ((i + 0.5) * ratio - 0.5).clamp(min=0)
    else:
        at = (i + (0.5 if form.sampling is Sampling.NEAREST_EXACT else 0.0)) * ratio
    first = at.floor().long().clamp(max=small - 1)
    weights = torch.zeros(large, small, dtype=torch.float64)
    rows = torch.arange(large)
    if form.sampling is not Sampling.LINEAR:
        weights[rows, first] = 1
        return weights
    share = (at - first).clamp(0, 1).double()
    weights.index_put_((rows, first), 1 - share, accumulate=True)
    weights.index_put_((rows, (first + 1).clamp(max=small - 1)), share, accumulate=True)
    return weights
